package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/wisdom"
)

// tinyTune takes a moment.
const tinyTune = "tune -H 8 -B 2 -T 3 --depth 1 --impl naive,cudnnstyle --wisdom w.toml --max-rounds 6 --min-time 0s --min-iters 1"

func TestTune(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, tinyTune+" -o json")
	o.want(t, exit.Done, nil, []string{"1 point: naive, cudnnstyle, up to 1 knob changed", "1 of 1 point tuned", "records in out", "wisdom saved to w.toml"})
	var rows []struct {
		Impl, Runner_Up         string
		Time                    float64 `json:"time_s"`
		Candidates, Evaluations int
		Dropped                 int
	}
	if err := json.Unmarshal([]byte(o.out), &rows); err != nil || len(rows) != 1 || rows[0].Impl == "" || rows[0].Time <= 0 || rows[0].Evaluations < rows[0].Candidates-rows[0].Dropped {
		t.Fatalf("%v: %s", err, o.out)
	}
	m, recs, _, err := record.Read("out")
	if err != nil || tuner.CanRun(pointers(recs)) != rows[0].Candidates-rows[0].Dropped || m.Winners[0].Dropped != rows[0].Dropped || m.Exit == nil || *m.Exit != exit.Done {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	b, err := wisdom.Read("w.toml")
	if err != nil || len(b.Entries) != 1 || b.Entries[0].Run != m.Run || !b.Entries[0].Complete || b.Entries[0].RunnerUp != rows[0].Runner_Up {
		t.Fatalf("%+v, %v", b, err)
	}

	// Nothing is measured twice. A tune that knows all records creates no run.
	o = rnnbench(t, tinyTune)
	o.want(t, exit.Done, []string{"known before", rows[0].Impl}, []string{"0 samples", "all records were known already"})
	if runs, _ := filepath.Glob("out/*/manifest.json"); len(runs) != 1 {
		t.Errorf("runs %v", runs)
	}
	rnnbench(t, tinyTune+" --fresh").want(t, exit.Done, nil, []string{"records in out"})
	rnnbench(t, tinyTune+" --impl naive,cudnnstyle,scc").want(t, exit.Done, []string{"known before"}, []string{"records in out"})

	// Neither a sweep nor a tune of another depth can resume a tune.
	for line, want := range map[string]string{
		"sweep": "is not a run of sweep, but of tune",
		strings.Replace(tinyTune, "--depth 1", "--depth 0", 1): "cannot be resumed: its plan",
	} {
		rnnbench(t, line+" --resume out/"+m.Run).want(t, exit.Usage, nil, []string{want})
	}
	rnnbench(t, tinyTune+" --resume out/"+m.Run).want(t, exit.Done, nil, []string{"0 samples"})
}

func pointers(recs []record.Record) (list []*record.Record) {
	for i := range recs {
		list = append(list, &recs[i])
	}
	return list
}

// TestTuneAside: runs of --regret, --check and --profile do not become the latest run. The report
// of a tune names its winner.
func TestTuneAside(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tinyTune).want(t, exit.Done, nil, nil)
	m, _, _, err := record.Read("out")
	if err != nil || len(m.Winners) != 1 {
		t.Fatalf("%+v, %v", m.Winners, err)
	}
	for _, line := range []string{tinyTune + " --regret", tinyTune + " --check", "sweep -H 8 -B 2 -T 3 --impl naive --profile"} {
		rnnbench(t, line).want(t, exit.Done, nil, nil)
		if now, _, _, err := record.Read("out"); err != nil || now.Run != m.Run {
			t.Errorf("after %q the latest run is %s, was %s: %v", line, now.Run, m.Run, err)
		}
	}
	rnnbench(t, "report -f page.html").want(t, exit.Done, nil, nil)
	page, err := os.ReadFile("page.html")
	if err != nil || !bytes.Contains(page, []byte("Tune chose "+html.EscapeString(m.Winners[0].Label)+" at 1.")) {
		t.Errorf("the report does not name the winner %q: %v", m.Winners[0].Label, err)
	}
	rnnbench(t, tinyTune+" --dry-run -o csv").want(t, exit.Done, []string{fmt.Sprintf(",%d,", candidatesOf(t, "out"))}, nil)
}

// TestTuneKeepsSamples: an interrupted tune saves the samples of its point, and the same command
// completes the records.
func TestTuneKeepsSamples(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &trigger{word: `"event":"lead"`, f: cancel}
	if code := run(ctx, strings.Fields(tinyTune+" --progress json"), strings.NewReader(""), io.Discard, stderr); code != exit.Interrupted {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	stops := func() map[string]int {
		_, recs, _, err := record.Read("out")
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, r := range recs {
			if r.Stats != nil {
				count[r.Stats.Stop]++
			}
		}
		return count
	}
	if n := stops()["interrupted"]; n == 0 {
		t.Errorf("no samples of the point are kept: %v", stops())
	}
	rnnbench(t, tinyTune+" --resume out").want(t, exit.Done, nil, []string{"1 of 1 point tuned"})
	if n := stops()["interrupted"]; n != 0 {
		t.Errorf("%d records are still cut short", n)
	}
}

// candidatesOf counts the candidates of a run of one point.
func candidatesOf(t *testing.T, dir string) int {
	m, recs, _, err := record.Read(dir)
	if err != nil || len(m.Winners) != 1 {
		t.Fatal(m.Winners, err)
	}
	return tuner.CanRun(pointers(recs)) + m.Winners[0].Dropped
}

func TestTuneDryRun(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tinyTune+" --dry-run -o csv").want(t, exit.Done, []string{"point,candidates,same,dropped\nlstm forward H=8 B=2 T=3 L=1,"}, nil)
	if exists("out") || exists("w.toml") {
		t.Error("a dry run leaves something behind")
	}
}

func TestTuneFrom(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tinyGrid+" --impl naive,cudnnstyle,scc").want(t, exit.Done, nil, nil)
	for _, strategy := range []string{"racing", "exhaustive", "random"} {
		o := rnnbench(t, "tune --from out --wisdom w.toml --search "+strategy)
		o.want(t, exit.Done, []string{"lstm forward H=8", "lstm forward H=16", strategy + ": within 3 % of the fastest at"}, []string{"wisdom saved to w.toml"})
	}
	b, err := wisdom.Read("w.toml")
	if err != nil || len(b.Entries) != 2 {
		t.Errorf("%+v, %v", b, err)
	}
	rnnbench(t, "tune --from out --no-wisdom --where hidden=8 -o csv").want(t, exit.Done, []string{"lstm forward H=8"}, nil)
	rnnbench(t, "tune --from nothere --no-wisdom").want(t, exit.Error, nil, []string{"nothere"})
	if err := os.WriteFile("bad.toml", []byte("schema = 'x'"), 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "tune --from out --wisdom bad.toml").want(t, exit.Error, nil, []string{"bad.toml is not a wisdom file"})
}

// TestTuneFromHeedsItsFlags: --from refuses flags that select points to measure, and does not
// search if a flag asks for something else.
func TestTuneFromHeedsItsFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tinyGrid+" --impl naive,cudnnstyle,scan").want(t, exit.Done, nil, nil)
	const line = "tune --from out --wisdom w.toml"
	rnnbench(t, line+" --dry-run --where hidden=16 -o csv").want(t, exit.Done, []string{"point,candidates,same,dropped\nlstm forward H=16 B=2 T=3 L=1,2,0,0\n"},
		[]string{"1 point: 2 candidates in 3 records"})
	o := rnnbench(t, line+" --print-config --max-rounds 7")
	o.want(t, exit.Done, []string{"max_rounds = 7"}, nil)
	if without := rnnbench(t, "tune --print-config --max-rounds 7"); o.out != without.out || o.errors != "" {
		t.Errorf("not as without --from: %s%s", o.out, o.errors)
	}
	for _, flag := range []string{"--hidden 999", "--cell gru", "--point H=4", "--preset quick", "--zip hidden,batch", "--impl naive", "--skip-impl naive"} {
		name, _, _ := strings.Cut(flag, " ")
		rnnbench(t, line+" "+flag).want(t, exit.Usage, nil, []string{name + " selects points to measure", "hint: select records with --where"})
	}
	for _, flag := range []string{"--device cpu", "--threads 1", "--budget 1s", "--resume out"} {
		name, _, _ := strings.Cut(flag, " ")
		rnnbench(t, line+" "+flag).want(t, exit.Usage, nil, []string{name + " applies to measuring"})
	}
	if exists("w.toml") {
		t.Error("there is wisdom of no search")
	}
}

// TestTuneStops ends a tune by --max-evals and by --budget.
func TestTuneStops(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tinyTune+" --max-evals 3").want(t, exit.Done, []string{"budget exhausted"}, []string{"budget exhausted: 1 point not fully tuned", "run the same command to tune the rest"})
	rnnbench(t, tinyTune).want(t, exit.Done, nil, []string{"1 of 1 point tuned"})
	b, err := wisdom.Read("w.toml")
	if err != nil || len(b.Entries) != 1 || !b.Entries[0].Complete {
		t.Errorf("%+v, %v", b, err)
	}
	o := rnnbench(t, tinyTune+" --fresh --budget 1ns")
	o.want(t, exit.Error, nil, []string{"nothing was measured"})
	if bytes.Contains([]byte(o.errors), []byte("panic")) {
		t.Error(o.errors)
	}
}

// TestTuneTimesNothing: a tune distinguishes a budget that was spent before a candidate was timed
// from candidates that cannot run, in all its messages.
func TestTuneTimesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	line := strings.Replace(tinyTune, "-H 8", "-H 8,9", 1)
	o := rnnbench(t, line+" --budget 1us")
	o.want(t, exit.Error, nil, []string{"0 of 2 points tuned, 0 samples", "rnnbench: nothing was measured: budget exhausted before a candidate was timed",
		"hint: run the same command with a larger --budget"})
	for _, wrong := range []string{"nothing can run", "no point succeeded", "not tuned to the end", "skipped"} {
		if strings.Contains(o.errors, wrong) {
			t.Errorf("%q: %s", wrong, o.errors)
		}
	}
}

// TestRegret reports how much slower auto is than the fastest at a tuned point, near it and far
// from it; among records and by measuring.
func TestRegret(t *testing.T) {
	tinyBook(t, nil)
	before, err := os.ReadFile("w.toml")
	if err != nil {
		t.Fatal(err)
	}
	o := rnnbench(t, strings.NewReplacer("-H 8", "-H 8,16,512", "naive,", "naive,persistent,").Replace(tinyTune)+" --regret")
	o.want(t, exit.Done, []string{"exact: regret", "nearest: regret", "predicted: regret", "over 1 point", "cudnnstyle:fused=0"}, nil)
	if after, err := os.ReadFile("w.toml"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the wisdom has changed, %v", err)
	}
	// A sweep measures every candidate at every point, unlike a tune.
	sweep := strings.Replace(tinyGrid, "-H 8,16", "-H 8,16,512", 1)
	rnnbench(t, sweep+" --impl naive,persistent,cudnnstyle,cudnnstyle:fused=0 --out all").want(t, exit.Done, nil, nil)
	rnnbench(t, "tune --from all --where hidden=8 --wisdom y.toml").want(t, exit.Done, nil, nil)
	rnnbench(t, "tune --from all --regret --wisdom y.toml").want(t, exit.Done, []string{"exact: regret", "nearest: regret", "default: regret"}, nil)
	rnnbench(t, sweep+" --impl naive --out part").want(t, exit.Done, nil, nil)
	t.Setenv("RNNBENCH_WISDOM", "none.toml") // unlike the file of --wisdom, it may be missing
	rnnbench(t, "tune --from part --regret").want(t, exit.Done, []string{"3 points omitted: auto's choice was not measured"}, nil)
	// The choice does not fall to the next technique, unless auto's own was declined.
	for _, c := range []struct{ name, args, want string }{
		{"without", "--impl naive,cudnnstyle", "1 point omitted: auto's choice was not measured"},
		{"declined", "--impl scan,cudnnstyle --cell gilr --streams 2", "default: regret"},
	} {
		rnnbench(t, "sweep -H 8 -B 2 -T 8 --out "+c.name+" "+c.args+quickly).want(t, exit.Done, nil, nil)
		rnnbench(t, "tune --from "+c.name+" --regret").want(t, exit.Done, []string{c.want}, nil)
	}
}

// TestTuneCheck compares the winner of a search with the fastest of all candidates. Wisdom does not
// change.
func TestTuneCheck(t *testing.T) {
	tinyBook(t, nil)
	before, err := os.ReadFile("w.toml")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Replace(tinyTune, "-H 8", "-H 8,16", 1) + " --check --threads 1"
	o := rnnbench(t, line)
	o.want(t, exit.Done, []string{"fastest of all", "tuned is slower by", "in turns over", "tuning took"}, []string{"2 of 2 points tuned"})
	if strings.Contains(o.errors, "wisdom saved") {
		t.Error(o.errors)
	}
	if after, err := os.ReadFile("w.toml"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the wisdom has changed, %v", err)
	}
	var rows []struct {
		Timed    int     `json:"timed"`
		AllTimed int     `json:"all_timed"`
		Took     float64 `json:"took_s"`
		Slower   float64 `json:"slower"`
	}
	if err := json.Unmarshal([]byte(rnnbench(t, line+" --search random --max-evals 4 -o json").out), &rows); err != nil || len(rows) != 2 {
		t.Fatalf("%v: %d rows", err, len(rows))
	}
	for _, r := range rows { // limits of the search do not apply to the exhaustive one
		if r.Timed < 1 || r.Timed > 4 || r.AllTimed <= r.Timed || r.Took <= 0 || r.Slower <= -1 {
			t.Errorf("%+v", r)
		}
	}
}

// TestTuneTrustsWhatWasChecked: tune measures again what a sweep did not check.
func TestTuneTrustsWhatWasChecked(t *testing.T) {
	t.Chdir(t.TempDir())
	sweep := strings.Replace(tinyGrid, "-H 8,16", "-H 8", 1) + " --impl naive"
	tune := strings.Replace(tinyTune, "naive,cudnnstyle", "naive", 1)
	rnnbench(t, sweep+" --no-verify").want(t, exit.Done, nil, nil)
	rnnbench(t, "tune --from out --no-wisdom").want(t, exit.Error, nil, []string{"no record can win: 1 record, none verified", "hint: tune accepts only verified records"})
	rnnbench(t, tune).want(t, exit.Done, nil, []string{"records in out"})
	rnnbench(t, tune).want(t, exit.Done, []string{"known before"}, nil)
	t.Setenv("RNNBENCH_VERIFY", "off")
	rnnbench(t, tune).want(t, exit.Usage, nil, []string{"tune must check answers", "hint: remove verify"})
}

// TestUnverifiedIsMarked: times of unchecked answers are marked wherever they are shown.
func TestUnverifiedIsMarked(t *testing.T) {
	t.Chdir(t.TempDir())
	line := strings.Replace(tinyGrid, "-H 8,16", "-H 8", 1) + " --impl naive"
	note := "Unverified (answers may be wrong): naive."
	rnnbench(t, line+" --no-verify --out unchecked").want(t, exit.Done, []string{"unverified", note}, nil)
	rnnbench(t, "show unchecked -o csv").want(t, exit.Done, []string{"unverified"}, nil)
	rnnbench(t, line).want(t, exit.Done, nil, nil)
	if o := rnnbench(t, "show"); strings.Contains(o.out, "nverified") {
		t.Errorf("what was checked is marked: %s", o.out)
	}
	rnnbench(t, "compare unchecked out").want(t, exit.Done, []string{note}, nil)
	rnnbench(t, "plot unchecked --x hidden -f a.svg").want(t, exit.Done, nil, nil)
	rnnbench(t, "report unchecked -f a.html").want(t, exit.Done, nil, nil)
	for _, file := range []string{"a.svg", "a.html"} {
		if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "Unverified") {
			t.Errorf("%s has no mark: %v", file, err)
		}
	}
}

// TestTuneNeedsItsBook: tune measures nothing if it could not save the winners.
func TestTuneNeedsItsBook(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Symlink("nowhere", "link"); err != nil { // it can be neither read nor created
		t.Fatal(err)
	}
	line := "tune -H 8 -B 2 -T 3 --impl naive --max-rounds 2 --min-time 0s --wisdom link/w.toml"
	o := rnnbench(t, line)
	o.want(t, exit.Error, nil, []string{"cannot write link/w.toml", "hint: use --wisdom FILE"})
	if exists(config.Dir) || strings.Contains(o.errors, "follows it") {
		t.Errorf("it went on: %s", o.errors)
	}
	rnnbench(t, line+" --dry-run").want(t, exit.Done, nil, nil)
}

// TestTuneWithoutWinner: a tune without a winner does not claim to save wisdom.
func TestTuneWithoutWinner(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "tune -H 8 -B 2 -T 3 --impl scan --wisdom w.toml")
	o.want(t, exit.Error, []string{"none"}, []string{"no point succeeded", "lstm is not a linear recurrence"})
	if strings.Contains(o.errors, "follows it") || exists("w.toml") {
		t.Errorf("wisdom of nothing: %s", o.errors)
	}
}

// TestTuneBesideAnother: tune keeps entries that another process writes to the wisdom file
// between its own reading and writing.
func TestTuneBesideAnother(t *testing.T) {
	tinyBook(t, func(b *wisdom.Book) { b.Entries[0].Point.Hidden = 99 })
	if err := os.Rename("w.toml", "other.toml"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{tinyTune, "tune --from out --wisdom w.toml"} {
		another := &trigger{word: "1 point", f: func() {
			rnnbench(t, "wisdom merge other.toml --wisdom w.toml").want(t, exit.Done, nil, []string{"merged 1 of 1 entry;"})
		}}
		code := run(t.Context(), strings.Fields(line), strings.NewReader(""), another, another)
		if b, err := wisdom.Read("w.toml"); code != exit.Done || another.f != nil || err != nil || len(b.Entries) != 2 {
			t.Errorf("exit code %d, %+v, %v: %s", code, b, err, another)
		}
		if err := os.Remove("w.toml"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTuneLosesItsBook: tune does not claim to have saved winners if it could not.
func TestTuneLosesItsBook(t *testing.T) {
	t.Chdir(t.TempDir())
	var stdout bytes.Buffer
	stderr := &trigger{word: "1 point: ", f: func() {
		if err := errors.Join(os.RemoveAll("books"), os.WriteFile("books", nil, 0o666)); err != nil {
			t.Error(err)
		}
	}}
	line := "tune -H 8 -B 2 -T 3 --impl naive --max-rounds 2 --min-time 0s --wisdom books/w.toml"
	code := run(t.Context(), strings.Fields(line), strings.NewReader(""), &stdout, stderr)
	if text := stderr.String(); code != exit.Error || !strings.Contains(text, "cannot write books/w.toml") || strings.Contains(text, "wisdom saved") {
		t.Errorf("exit code %d: %s", code, text)
	}
	if _, recs, _, err := record.Read(config.Dir); err != nil || len(recs) != 1 {
		t.Errorf("%d records, %v", len(recs), err)
	}
}
