package rival_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rival"
	"rnnbench/rival/internal/cheat"
	"rnnbench/rnn"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// cheatVerb is the first argument of this test binary as a rival that cheats.
const cheatVerb = "cheat"

// cheats returns a function that opens a rival that cheats.
func cheats(t *testing.T) func(how string) *rival.Rival {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(how string) *rival.Rival {
		r, err := rival.Open(rival.Options{Name: "cheat", Command: []string{program, cheatVerb, how}, On: device.Info{Name: "cpu", Key: "cpu-test", Workers: 1}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
}

// layer is a point of a few hundred microseconds.
var layer = record.Point{Cell: "rnn-tanh", Pass: "forward", Input: 32, Hidden: 32, Layers: 1, Batch: 4, Steps: 40, Precision: "fp32"}

// against sweeps naive and a rival at points, and returns their records.
func against(ctx context.Context, t *testing.T, r *rival.Rival, m config.Measure, points ...record.Point) ([]record.Record, error) {
	t.Helper()
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var recs []record.Record
	s := tuner.Sweep{Device: d, Techniques: append(impl.All(), r), Settings: m, Emit: func(rec *record.Record) error {
		recs = append(recs, *rec)
		return nil
	}}
	now := time.Unix(0, 0)
	s.Now = func() time.Time { // whatever a request takes, a warm-up has five, and a sample 2,000 runs at most
		now = now.Add(m.Warmup / 10)
		return now
	}
	specs := []grid.Spec{{Name: "naive", Label: "naive"}, {Name: "cheat", Label: "cheat"}}
	var tasks []tuner.Task
	for _, p := range points {
		tasks = append(tasks, tuner.Task{Point: p, Specs: specs})
	}
	return recs, s.Run(ctx, tasks)
}

// briefly are settings whose samples are long beside the start of a run.
func briefly() config.Measure {
	m := config.Default()
	m.Rounds, m.MaxRounds, m.Warmup, m.MinTime = 4, 4, 40*time.Millisecond, 5*time.Millisecond
	return m
}

// TestCheats: no rival that cheats is timed as right, and its record says what is wrong.
func TestCheats(t *testing.T) {
	for how, want := range map[string][]string{ // how it ends, and words of the reason
		"honest":   {"ok"},
		"cache":    {"incorrect impossible", "differs from the reference", "does not grow"},
		"prepare":  {"impossible", "does not grow"},
		"read":     {"impossible", "does not grow"},
		"first":    {"impossible", "does not grow"},
		"thread":   {"impossible failed", "does not grow", late},
		"one":      {"impossible", "does not grow"},
		"each":     {"impossible failed", "does not grow", late},
		"fiftieth": {"failed", late},
		"tiny":     {"impossible failed", "does not grow", late},
	} {
		caught(t, how, want, layer)
	}
}

// TestCheatsOfCalls: nor is one that cheats where it is called step by step.
func TestCheatsOfCalls(t *testing.T) {
	p := layer
	p.Calls = 120
	for how, want := range map[string][]string{
		"honest":   {"ok"},
		"still":    {"incorrect", "it was right before it was timed, but wrong afterwards"},
		"uncalled": {"incorrect impossible", "it was right before it was timed, but wrong afterwards", "by this program's clock"},
		"brief":    {"impossible failed", "by this program's clock", late},
		"one":      {"impossible", "does not grow"},
	} {
		caught(t, how, want, p)
	}
}

const late = "the answer came only after"

// caught sweeps a rival that cheats, and naive beside it. want is how it may end, and words of the reason.
func caught(t *testing.T, how string, want []string, p record.Point) {
	t.Helper()
	open := cheats(t)
	recs, err := against(t.Context(), t, open(how), briefly(), p)
	wasLate := func(r record.Record) bool { return r.Reason != nil && strings.Contains(*r.Reason, late) }
	for again := 0; again < 9 && !slices.Contains(want, late) && slices.ContainsFunc(recs, wasLate); again++ {
		recs, err = against(t.Context(), t, open(how), briefly(), p) // its answers had to wait for a processor
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		r, reason := &recs[i], ""
		if r.Reason != nil {
			reason = *r.Reason
		}
		switch {
		case r.Rival == nil:
			if r.Status != record.OK {
				t.Errorf("%s: naive is %s: %s", how, r.Status, reason)
			}
		case !slices.Contains(strings.Fields(want[0]), string(r.Status)):
			t.Errorf("%s is %s: %q", how, r.Status, reason)
		case len(want) > 1 && !slices.ContainsFunc(want[1:], func(w string) bool { return strings.Contains(reason, w) }):
			t.Errorf("%s: %s: %q", how, r.Status, reason)
		}
	}
}

// TestSideBySide: two rivals prepare at the same time, since each waits for the other. Both are timed.
func TestSideBySide(t *testing.T) {
	how := cheat.Together + t.TempDir()
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	open := cheats(t)
	timed := 0
	s := tuner.Sweep{Device: d, Techniques: []rnn.Technique{open(how)}, Settings: briefly(), Emit: func(r *record.Record) error {
		if r.Status == record.OK {
			timed++
		} else {
			t.Errorf("%s: %v", r.Status, *r.Reason)
		}
		return nil
	}}
	specs := []grid.Spec{{Name: "cheat", Label: "one"}, {Name: "cheat", Label: "other"}}
	if err := s.Run(t.Context(), []tuner.Task{{Point: layer, Specs: specs}}); err != nil || timed != 2 {
		t.Errorf("%v, %d timed", err, timed)
	}
}

// TestInterruptedRival: the end of the context ends a rival in a run, and leaves no record of it.
func TestInterruptedRival(t *testing.T) {
	r := cheats(t)("hang")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	time.AfterFunc(time.Second, stop) // a request would otherwise last a minute
	recs, err := against(ctx, t, r, briefly(), layer)
	if !errors.Is(err, context.Canceled) || slices.ContainsFunc(recs, func(r record.Record) bool { return r.Rival != nil }) {
		t.Errorf("%v, %d records", err, len(recs))
	}
}

// TestBudgetEndsPreparation: the end of the budget ends a rival that compiles, and keeps the points before. A
// compiler may otherwise take ten minutes.
func TestBudgetEndsPreparation(t *testing.T) {
	m, longer := briefly(), layer
	m.Budget, longer.Steps = 3*time.Second, 41
	began := time.Now()
	recs, err := against(t.Context(), t, cheats(t)(cheat.Stall), m, layer, longer)
	if !errors.Is(err, tuner.ErrBudget) || time.Since(began) > 5*time.Minute {
		t.Errorf("the sweep ended after %v with %v", time.Since(began), err)
	}
	if len(recs) != 2 || slices.ContainsFunc(recs, func(r record.Record) bool { return r.Point.Steps != 40 || r.Status != record.OK }) {
		t.Errorf("%d records, want those of the first point", len(recs))
	}
}
