package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/wisdom"
)

// tinyBook writes the wisdom of one tiny point, changed by edit.
func tinyBook(t *testing.T, edit func(b *wisdom.Book)) {
	t.Helper()
	t.Chdir(t.TempDir())
	rnnbench(t, tinyTune+" --max-evals 4").want(t, exit.Done, nil, []string{"wisdom saved to w.toml"})
	b, err := wisdom.Read("w.toml")
	if err != nil || len(b.Entries) != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	b.Entries[0].Impl, b.Entries[0].Knobs = "cudnnstyle", map[string]int{"fused": 0, "inputbatch": 1, "streams": 1}
	if edit != nil {
		edit(b)
	}
	if err := b.Write("w.toml"); err != nil {
		t.Fatal(err)
	}
}

// TestUntuned: the choices of auto on a processor without wisdom for a point.
func TestUntuned(t *testing.T) {
	t.Setenv("RNNBENCH_WISDOM", "none.toml")
	rnnbench(t, "sweep --dry-run --impl auto --cell gilr,lstm -H 8,300 -B 2,16 -T 8").want(t, exit.Done, nil,
		[]string{"auto uses ", ": predicted to take "})
	for _, args := range []string{"--cell lstm", "--cell lstm -T 1", "--cell lstm --pass train --history 4", "--cell gilr --streams 2"} {
		rnnbench(t, "wisdom lookup -H 8 -B 2 -T 8 -o csv "+args).want(t, exit.Done, []string{",predicted,0,predicted to take "}, nil)
	}
}

func TestAuto(t *testing.T) {
	tinyBook(t, nil)
	grid := " -H 8,16,512 -B 2 -T 3 --wisdom w.toml"
	o := rnnbench(t, "sweep --impl auto,naive,cudnnstyle:fused=0:inputbatch=1:streams=1"+grid+quickly)
	o.want(t, exit.Done, []string{"auto"}, []string{
		"auto: tuned entries for 1 point", "auto: nearest tuned entries for 1 point", "auto uses ", " at 1 point: predicted to take ",
	})
	_, recs, _, err := record.Read("out")
	if err != nil || len(recs) != 9 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	want := map[int]struct {
		match string
		fused int
		why   string
	}{8: {"exact", 0, "the fastest of"}, 16: {"nearest", 0, "at lstm forward H=8 B=2 T=3 L=1, 1 doubling away"}, 512: {"predicted", 0, "predicted to take"}}
	for _, r := range recs {
		if r.Impl.Label != "auto" {
			if r.Impl.Choice != nil {
				t.Errorf("%s was chosen by the user", r.Impl.Label)
			}
			continue
		}
		w := want[r.Point.Hidden]
		if c := r.Impl.Choice; c == nil || c.By != "auto" || c.Match != w.match || !strings.Contains(c.Why, w.why) || r.Impl.Knobs["fused"] != w.fused {
			t.Errorf("H=%d: %+v %+v", r.Point.Hidden, r.Impl, r.Impl.Choice)
		}
	}
	rnnbench(t, "sweep --resume out --wisdom w.toml").want(t, exit.Done, nil, []string{"9 records"})
	rnnbench(t, "show --where impl=auto --baseline auto -o csv").want(t, exit.Done, []string{",auto,cudnnstyle,"}, nil)
	rnnbench(t, "verify --impl auto"+grid).want(t, exit.Done, []string{"auto"}, []string{"auto: tuned entries for 1 point"})
	rnnbench(t, "explain --impl auto --no-limits -H 8 -B 2 -T 3 --wisdom w.toml").want(t, exit.Done, []string{"fused=0"}, []string{"auto: tuned entries for 1 point"})
	rnnbench(t, "export --impl auto -H 8 -B 2 -T 3 --wisdom w.toml -f x.npz").want(t, exit.Done, nil, []string{"auto: tuned entries for 1 point"})
	rnnbench(t, "wisdom lookup -o csv"+grid).want(t, exit.Done, []string{",exact,0,", ",nearest,1,", ",predicted,0,"}, nil)
}

// TestAutoAdapts: the choices of auto for settings that do not fit the point, techniques that
// cannot run, and a vendor's library.
func TestAutoAdapts(t *testing.T) {
	far := func(b *wisdom.Book, hidden int, impl string, knobs map[string]int) {
		e := b.Entries[0]
		e.Point.Hidden, e.Point.Input, e.Impl, e.Knobs = hidden, hidden, impl, knobs
		b.Put(e)
	}
	tinyBook(t, func(b *wisdom.Book) {
		b.Entries[0].Impl = "cudnn" // at 8 units
		far(b, 12, "scan", nil)     // scan declines an LSTM
		far(b, 14, "cudnnstyle", map[string]int{"fused": 0, "nonsense": 3})
		far(b, 16, "cudnnstyle", map[string]int{"inputbatch": 64, "streams": 1, "fused": 0})
		b.Entries[3].Tool = "v0.0.1"
	})
	for _, flag := range []string{"", " --with-vendor"} { // which this device has not
		rnnbench(t, "wisdom lookup -H 8 -B 2 -T 3 -o csv --wisdom w.toml"+flag).want(t, exit.Done, []string{
			",cudnnstyle:fused=0:streams=1,nearest,1,", "stale: rnnbench v0.0.1, now", "scan of lstm forward H=12 B=2 T=3 L=1 cannot run here: scan: unsupported",
		}, nil)
	}
	rnnbench(t, "sweep --impl auto -H 8 -B 2 -T 3 --wisdom w.toml"+quickly).want(t, exit.Done, nil, []string{"warning: some tuned entries are from other versions (rnnbench v0.0.1"})
	if err := os.WriteFile("w.toml", []byte("schema = 'rnnbench.wisdom/9'"), 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "sweep --impl auto -H 8 --wisdom w.toml").want(t, exit.Error, nil, []string{"w.toml is not a wisdom file that this version reads", "hint: use --wisdom FILE"})
	rnnbench(t, "sweep --impl naive -H 8 --wisdom w.toml --dry-run").want(t, exit.Done, nil, nil)
	t.Setenv("RNNBENCH_WISDOM", "nothere.toml")
	rnnbench(t, "verify --impl auto -H 8 -B 2 -T 3").want(t, exit.Done, nil, []string{"auto uses ", " at 1 point: predicted to take "})
}

// predictedPoints returns at how many points auto says that it follows a prediction.
func predictedPoints(text string) (sum int) {
	_, said, _ := strings.Cut(text, "auto uses ")
	said, _, _ = strings.Cut(said, ": predicted")
	for _, m := range regexp.MustCompile(` at (\d+) points?`).FindAllStringSubmatch(said, -1) {
		n, _ := strconv.Atoi(m[1])
		sum += n
	}
	return sum
}

// TestAutoPassesOverWhatIsUnknown: auto warns once about entries whose technique or knobs this
// program does not have, and takes the next choice.
func TestAutoPassesOverWhatIsUnknown(t *testing.T) {
	const (
		line    = "sweep --dry-run -H 8,9 -B 2 -T 3 --impl auto --wisdom w.toml"
		warning = "warning: the tuned entry for lstm forward H=8 B=2 T=3 L=1 cannot be used: "
	)
	for _, c := range []struct {
		impl  string
		knobs map[string]int
		why   string
	}{
		{"cudnnstyle", map[string]int{"fused": 0, "foo": 7}, `unknown knob "foo"`},
		{"cudnstyle", map[string]int{"fused": 0}, `unknown technique "cudnstyle": did you mean cudnnstyle?`},
	} {
		tinyBook(t, func(b *wisdom.Book) { b.Entries[0].Impl, b.Entries[0].Knobs = c.impl, c.knobs })
		o := rnnbench(t, line)
		o.want(t, exit.Done, nil, []string{warning + c.why, "auto uses ", ": predicted to take "})
		if n := predictedPoints(o.errors); n != 2 { // by whatever techniques
			t.Errorf("%d points are predicted, want 2: %s", n, o.errors)
		}
		if n := strings.Count(o.errors, "cannot be used"); n != 1 {
			t.Errorf("told %d times: %s", n, o.errors)
		}
		rnnbench(t, "wisdom lookup -H 8 -B 2 -T 3 -o csv --wisdom w.toml").want(t, exit.Done, []string{",predicted,0", "cannot be used"}, nil)
		tinyBook(t, func(b *wisdom.Book) {
			next := b.Entries[0]
			next.Point.Hidden, next.Point.Input = 10, 10
			b.Put(next)
			b.Entries[0].Impl, b.Entries[0].Knobs = c.impl, c.knobs
		})
		rnnbench(t, line).want(t, exit.Done, nil, []string{warning + c.why, "auto: nearest tuned entries for 2 points"})
	}
	// A knob that exists only at the entry's own point is known, and one that is gone was at 0.
	tinyBook(t, func(b *wisdom.Book) {
		b.Entries[0].Impl, b.Entries[0].Knobs = "persistent", map[string]int{"sequences": 1, "gone": 0}
	})
	o := rnnbench(t, "sweep --dry-run -H 8 -B 1 -T 3 --impl auto --wisdom w.toml")
	o.want(t, exit.Done, nil, []string{"auto: nearest tuned entries for 1 point"})
	if strings.Contains(o.errors, "cannot be used") {
		t.Error(o.errors)
	}
}

func TestWisdom(t *testing.T) {
	tinyBook(t, func(b *wisdom.Book) {
		b.Entries[0].Complete = false
		other := b.Entries[0]
		other.Device, other.Complete, other.Time = "cuda-x", true, time.Now().Add(-48*time.Hour)
		b.Put(other)
	})
	rnnbench(t, "wisdom show --wisdom w.toml").want(t, exit.Done, []string{"cuda-x", "cudnnstyle:fused=0"}, []string{"2 entries in w.toml"})
	o := rnnbench(t, "wisdom export --device cuda-x --wisdom w.toml")
	o.want(t, exit.Done, []string{"schema = 'rnnbench.wisdom/1'", "cuda-x"}, nil)
	if err := os.WriteFile("x.toml", []byte(o.out), 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "wisdom export --device cuda-y --wisdom w.toml").want(t, exit.Usage, nil, []string{"unknown device in w.toml \"cuda-y\": "})
	rnnbench(t, "wisdom export --device cuda-x --wisdom none.toml").want(t, exit.Usage, nil, []string{"rnnbench: --wisdom: file none.toml does not exist\nhint"})
	rnnbench(t, "wisdom merge x.toml --wisdom new.toml").want(t, exit.Done, nil, []string{"x.toml: merged 1 of 1 entry;", "1 entry in new.toml"})
	rnnbench(t, "wisdom merge w.toml --wisdom new.toml").want(t, exit.Done, nil, []string{"merged 1 of 2 entries;", "2 entries in new.toml"})
	rnnbench(t, "wisdom merge nothere.toml --wisdom new.toml").want(t, exit.Error, nil, []string{"nothere.toml"})
	rnnbench(t, "wisdom prune --incomplete --dry-run --wisdom new.toml").want(t, exit.Done, nil, []string{"1 entry would be removed, 1 would stay"})
	rnnbench(t, "wisdom prune --incomplete --wisdom new.toml").want(t, exit.Done, nil, []string{"1 entry removed, 1 stay in new.toml"})
	rnnbench(t, "wisdom prune --older-than 24h --wisdom new.toml").want(t, exit.Done, []string{"cuda-x"}, []string{"1 entry removed, 0 stay"})
	rnnbench(t, "wisdom show --wisdom new.toml").want(t, exit.Done, nil, []string{"0 entries", "hint: rnnbench tune"})
	rnnbench(t, "wisdom export --wisdom w.toml -f y.toml").want(t, exit.Done, nil, nil)
	if b, err := wisdom.Read("y.toml"); err != nil || len(b.Entries) != 2 {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestWritesThroughLinks: a link stays a link when a command writes to it.
func TestWritesThroughLinks(t *testing.T) {
	tinyBook(t, nil)
	for _, c := range []struct{ file, line string }{
		{"new.toml", "wisdom merge w.toml --wisdom"}, {"w2.toml", "wisdom export --wisdom w.toml -f"},
		{"x.npz", "export -H 4 -B 1 -T 2 -f"}, {"f.svg", "plot -f"}, {"p.html", "report -f"},
	} {
		if err := os.Symlink("real-"+c.file, c.file); err != nil {
			t.Skip(err) // some systems have none
		}
		rnnbench(t, c.line+" "+c.file).want(t, exit.Done, nil, nil)
		if to, err := os.Readlink(c.file); err != nil || !exists(to) {
			t.Errorf("%s: the link was replaced, %v", c.line, err)
		}
	}
}

// TestAutoWithoutHome: without a home folder, auto has no wisdom and still chooses.
func TestAutoWithoutHome(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, "")
	}
	rnnbench(t, "sweep --dry-run -H 8 -B 2 -T 3 --impl auto").want(t, exit.Done, nil, []string{"auto uses ", " at 1 point"})
}

// TestRace: a dry run races nothing, and a run takes --auto race.
func TestRace(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("RNNBENCH_WISDOM", "w.toml")
	const line = "sweep -H 8 -B 2 -T 3 --impl auto --auto race"
	rnnbench(t, line+" --dry-run").want(t, exit.Done, nil, nil)
	if _, err := os.Stat("w.toml"); err == nil {
		t.Error("a dry run has raced")
	}
	rnnbench(t, line+quickly).want(t, exit.Done, nil, nil)
}

// TestWisdomHelpNamesMatches: the help explains every match that a record can name.
func TestWisdomHelpNamesMatches(t *testing.T) {
	o := rnnbench(t, "wisdom --help")
	for _, match := range []string{string(wisdom.Exact), string(wisdom.Nearest), auto.Predicted, auto.Raced, auto.Default} {
		if !strings.Contains(o.out, "\n  "+match+" ") {
			t.Errorf("the help does not explain the match %q", match)
		}
	}
}
