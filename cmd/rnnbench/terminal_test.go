package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
	"rnnbench/tuner/progress"
)

// withoutBusy returns stderr without the lines of busy, which depend on the machine's speed.
func withoutBusy(stderr string) string {
	var lines []string
	for line := range strings.Lines(stderr) {
		if !regexp.MustCompile(`^(measuring (the peak|the memories) |measuring noise|laying out the grid|estimating |opening |reading earlier |computing |drawing |starting rival |choosing techniques|rnnbench [a-z ]* is at work|planned \d)`).MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestColumns(t *testing.T) {
	for _, c := range []struct {
		size     int
		err      error
		variable string
		want     int
	}{
		{132, nil, "90", 132},
		{0, nil, "90", 90},
		{0, errors.New("no terminal"), "", 80},
		{0, nil, "wide", 80},
		{0, nil, "-5", 80},
		{20, nil, "", 40},
	} {
		if got := columns(func() (int, error) { return c.size, c.err }, c.variable); got != c.want {
			t.Errorf("%+v: %d columns", c, got)
		}
	}
}

// TestPipe: without a terminal, tables of numbers keep one row per line, and lists of sentences
// fit a page.
func TestPipe(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	rnnbench(t, "model titanx -H 512 -B 4").want(t, exit.Done, []string{"| base    | rnn-tanh | fp32      | 512 | 4 | 24×1, 8×32 | registers  | 192 B |"}, nil)
	rnnbench(t, "list techniques").want(t, exit.Done, []string{"\nnaive       each product and each point-wise operation run separately on one\n            stream (Appleyard 2016, 2.1)\n"}, nil)
}

// TestBusy: a command prints what it does once it has taken progress.Moment, and not before. Its clock is the test's, so a busy machine is as good as any.
func TestBusy(t *testing.T) {
	for took, want := range map[time.Duration]string{0: "", progress.Moment - 1: "", progress.Moment + 1: "measuring\n"} {
		synctest.Test(t, func(t *testing.T) {
			var b bytes.Buffer
			done := (&program{err: &b}).Busy("measuring")
			time.Sleep(took)
			done()
			time.Sleep(2 * progress.Moment)
			if got := b.String(); got != want {
				t.Errorf("what took %v said %q, want %q", took, got, want)
			}
		})
	}
}

// TestWisdomMissing: a command that reads a named wisdom file reports that it is missing.
func TestWisdomMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, line := range []string{
		"wisdom show --wisdom none.toml", "wisdom lookup -H 8 --wisdom none.toml", "wisdom prune --stale --wisdom none.toml", "wisdom export --wisdom none.toml",
		tinyGrid + " --impl auto --wisdom none.toml", "verify -H 8 --impl auto --wisdom none.toml", "tune -H 8 --regret --wisdom none.toml",
		"explain --point H=8 --impl auto --wisdom none.toml",
	} {
		o := rnnbench(t, line)
		o.want(t, exit.Usage, nil, []string{"rnnbench: --wisdom: file none.toml does not exist\nhint: "})
		if o.out != "" || exists(config.Dir) || exists("none.toml") {
			t.Errorf("%s: stdout %q", line, o.out)
		}
	}
}

// TestAutoShows: the table, the progress and the data say what auto chose, by which match and why.
func TestAutoShows(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("RNNBENCH_WISDOM", "none.toml")
	o := rnnbench(t, tinyGrid+" --impl auto,naive")
	o.want(t, exit.Done, []string{"auto chose", " [1] ", "[1] auto, cost model: predicted to take "}, []string{", predicted)  "})
	var rows []struct {
		Impl   string
		Chosen *string
		Match  *string
		Why    *string `json:"choice_why"`
	}
	data := rnnbench(t, "show -o json")
	if err := json.Unmarshal([]byte(data.out), &rows); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, tinyGrid+" --impl auto --progress json").want(t, exit.Done, nil, []string{`"impl":"auto","chosen":"`, `,"status":"ok"`})
	chosen := 0
	for _, r := range rows {
		if (r.Impl == "auto") != (r.Chosen != nil) {
			t.Errorf("%s: chosen %v", r.Impl, r.Chosen)
		}
		if r.Chosen != nil && *r.Chosen != "" && *r.Match == "predicted" && *r.Why != "" {
			chosen++
		}
	}
	if chosen != 2 {
		t.Errorf("got %s", data.out)
	}
}

func TestSpelledOut(t *testing.T) {
	at := example()
	for _, c := range []struct {
		name, device string
		knobs        map[string]int
		want         string
	}{
		{"naive", "cpu-x", nil, "naive"},
		{"cudnnstyle", "cpu-x", map[string]int{"grouped": 1, "fused": 0, "teams": 0, "streams": 4}, "cudnnstyle:fused=0:streams=4"},
		{"cudnnstyle", "cuda-x", map[string]int{"graph": 0, "split": 1, "fused": 1}, "cudnnstyle:split=1"},
		{"cudnnstyle", "cuda-x", map[string]int{"gone": 0, "went": 2}, "cudnnstyle:went=2"},
		{"unheard-of", "cpu-x", map[string]int{"new": 0}, "unheard-of:new=0"},
	} {
		if got := bench.FormatSpec(c.name, c.knobs, at, c.device); got != c.want {
			t.Errorf("%s on %s: %s", c.name, c.device, got)
		}
	}
}

// TestMemCondition: the condition mem compares the number that a dry run prints.
func TestMemCondition(t *testing.T) {
	needs := func(args ...string) (list []int64) {
		o := rnnbenchWith(t.Context(), "", append(strings.Fields("sweep --dry-run -o csv -H 64,128,256 -B 1 -T 10 --impl naive"), args...)...)
		rows, err := csv.NewReader(strings.NewReader(o.out)).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Fatalf("%v: %s", err, o.errors)
		}
		at := slices.Index(rows[0], "mem_bytes")
		for _, r := range rows[1:] {
			n, err := strconv.ParseInt(r[at], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, n)
		}
		return list
	}
	all := needs()
	if got := needs("--where", "mem<="+strconv.FormatInt(all[1], 10)); !slices.Equal(got, all[:2]) {
		t.Errorf("got %v of %v", got, all)
	}
	if got := needs("--where", "mem>"+strconv.FormatInt(all[1], 10)); !slices.Equal(got, all[2:]) {
		t.Errorf("got %v of %v", got, all)
	}
}

func TestBudgetForecast(t *testing.T) {
	o := rnnbench(t, "sweep --dry-run -H 8 -B 1 -T 2 --impl naive,scan --budget 10h")
	o.want(t, exit.Done, []string{"1 of them skipped (cell)", "budget: 10h0m0s covers all of 2 records\n", "scan: 1 skipped: lstm is not a linear recurrence"}, nil)
}

// TestFoldedProgress: a log has one line for all skipped points.
func TestFoldedProgress(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, tinyGrid+" --impl naive,scan")
	o.want(t, exit.Done, []string{"scan: 2 skipped: lstm is not a linear recurrence"}, []string{"\nscan: 2 skipped: lstm is not a linear recurrence"})
	if n := strings.Count(o.errors, "scan"); n != 1 {
		t.Errorf("%d lines of scan:\n%s", n, o.errors)
	}
	rnnbench(t, "show -o csv").want(t, exit.Done, []string{record.ReasonCell}, nil)
}

// TestListKnobs: the list has the knobs of every kind of device, whatever machine it runs on.
func TestListKnobs(t *testing.T) {
	rnnbench(t, "list knobs -o csv").want(t, exit.Done, []string{"\ncpu,bands,0,", "\ncpu,ahead,0,", "\ncuda,graph,0,", "\ncuda,resident,0,", "\npersistent,inputbatch,"}, nil)
	if o := rnnbench(t, "list knobs -o csv"); strings.Contains(o.out, "\ncuda,clocks,") || strings.Contains(o.out, "\nscan,alone,") {
		t.Error("internal knobs are listed")
	}
}

// TestReportSettings: a page shows no default as a setting.
func TestReportSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tinyGrid+" --impl naive,scan,cudnnstyle:grouped=0:teams=2 --max-memory 1KiB").want(t, exit.Error, nil, nil)
	o := rnnbench(t, "report -f -")
	o.want(t, exit.Done, []string{"grouped=0"}, nil)
	if strings.Contains(o.out, "overlap=1") || strings.Contains(o.out, "inputbatch=8") {
		t.Errorf("defaults are shown as settings")
	}
}
