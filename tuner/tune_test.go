package tuner_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/search"
)

// tune returns a tune for tests and its records so far, by key. Its device has no cost model, so every
// candidate takes part.
func tune(t *testing.T, d device.Device) (*tuner.Tune, map[string]*record.Record) {
	d = struct{ device.Device }{d}
	kept := map[string]*record.Record{}
	u := &tuner.Tune{
		Sweep:  tuner.Sweep{Device: d, Techniques: impl.All(), Settings: quick()},
		Depth:  1,
		Search: search.Options{Strategy: "racing", Rounds: 6, Tie: 0.01, Margin: 0.02},
	}
	u.Settings.Warmup = 0
	u.Emit = func(r *record.Record) error {
		// An earlier winner runs again beside new candidates, and so does a candidate that a
		// budget cut short.
		if old := kept[r.Key()]; old != nil && (old.Stats == nil || old.Stats.Stop == "outraced") {
			t.Errorf("%s is recorded twice", r.Impl.Label)
		}
		one := *r
		kept[r.Key()] = &one
		return nil
	}
	u.Recall = func(key string) *record.Record { return kept[key] }
	return u, kept
}

func TestTuneFindsAWinner(t *testing.T) {
	u, kept := tune(t, openWith(t, 2))
	v, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle", "scan"), record.Impl{})
	if err != nil {
		t.Fatal(err)
	}
	w := v.WinnerRecord()
	if w == nil || w.Status != record.OK || w.Verify == nil || !w.Verify.OK || w.Stats.N != 6 && v.Rounds != w.Stats.N {
		t.Fatalf("winner %+v", w)
	}
	outraced, skipped, labels := 0, 0, map[string]bool{}
	for _, r := range kept {
		switch {
		case r.Status == record.Skipped:
			skipped++
		case r.Stats.Stop == "outraced":
			outraced++
		}
		if labels[r.Impl.Label] {
			t.Errorf("two candidates are labelled %s", r.Impl.Label)
		}
		labels[r.Impl.Label] = true
	}
	if len(kept) != len(v.Records) || outraced < len(kept)/3 || skipped != 1 || v.Same == 0 { // scan declines an LSTM, once
		t.Errorf("%d records of %d candidates, %d outraced, %d skipped, %d the same", len(kept), len(v.Records), outraced, skipped, v.Same)
	}
	if !labels["naive"] || !labels["cudnnstyle"] || !labels["cudnnstyle:fused=0"] || !labels["cudnnstyle:teams=1"] {
		t.Errorf("candidates %v", labels)
	}

	// A second tune measures nothing. With one more technique, a tune measures that technique and
	// the winner.
	emitted := 0
	emit := u.Emit
	u.Emit = func(r *record.Record) error { emitted++; return emit(r) }
	again, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle", "scan"), w.Impl)
	if err != nil {
		t.Fatal(err)
	}
	stays := again.WinnerRecord().Key() == w.Key() || again.WinnerRecord().Seconds() < w.Seconds()/(1+u.Search.Margin)
	if emitted != 0 || again.Evaluations != 0 || !stays {
		t.Errorf("again: %d records, %d samples, winner %s and not %s", emitted, again.Evaluations, again.WinnerRecord().Impl.Label, w.Impl.Label)
	}
	more, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle", "scan", "scc"), w.Impl)
	if err != nil {
		t.Fatal(err)
	}
	var twice []string
	for i, r := range more.Records {
		if ran := more.Left[i] != ""; ran && r.Impl.Name != "scc" {
			twice = append(twice, r.Impl.Label)
		}
	}
	if len(twice) != 1 { // the fastest of the earlier tune
		t.Errorf("measured again: %v", twice)
	}
	if emitted == 0 || more.Evaluations == 0 {
		t.Error("what is new was not measured")
	}
}

// TestTunePrecompiles: a device that compiles kernels precompiles all candidates that will start before
// it compiles the first.
func TestTunePrecompiles(t *testing.T) {
	k := &keen{Device: open(t)}
	u, _ := tune(t, k.Device)
	u.Device = k
	v, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle"), record.Impl{})
	if err != nil {
		t.Fatal(err)
	}
	started := 0
	for _, samples := range v.Samples {
		if len(samples) > 0 {
			started++
		}
	}
	if k.early != len(k.ahead) || k.early < started || started < 2 {
		t.Errorf("%d programs are precompiled, %d of them before the first is compiled; %d candidates start", len(k.ahead), k.early, started)
	}
}

// TestTunePrecompilesInParts: many candidates are precompiled in parts, so that a budget need not wait for all kernels.
// Every candidate that starts was precompiled exactly once.
func TestTunePrecompilesInParts(t *testing.T) {
	k := &keen{Device: open(t)}
	u, _ := tune(t, k.Device)
	u.Device, u.Depth, u.Search.Strategy, u.Settings.Verify = k, 2, "exhaustive", false
	spent := func() bool { return len(k.compiled) > 3 }
	u.Search.Spent = spent
	if _, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle", "persistent"), record.Impl{}); err != nil {
		t.Fatal(err)
	}
	if len(k.ahead) != tuner.SideBySide {
		t.Errorf("until the budget was spent, %d programs were precompiled, want %d", len(k.ahead), tuner.SideBySide)
	}
	k.ahead, k.compiled, u.Search.Spent, u.Search.Rounds = nil, nil, nil, 1
	v, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle", "persistent"), record.Impl{})
	if err != nil || v.Timed() <= tuner.SideBySide || len(k.ahead) != v.Timed() {
		t.Errorf("%v: %d candidates were timed and %d programs precompiled", err, v.Timed(), len(k.ahead))
	}
}

// TestTuneGoesOn interrupts a tune and checks that the next one completes it.
func TestTuneGoesOn(t *testing.T) {
	d := open(t)
	u, kept := tune(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	u.Watch = func(e tuner.Event) {
		if e.Phase == tuner.Done && len(kept) > 5 {
			cancel()
		}
	}
	all := specs(t, "naive", "cudnnstyle")
	if _, err := u.Tune(ctx, small(), all, record.Impl{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	// Interrupted candidates have records with their samples, but are measured again.
	cut := func() (n int) {
		for _, r := range kept {
			if r.Stats != nil && r.Stats.Stop == "interrupted" {
				n++
			}
		}
		return n
	}
	before, whole := len(kept), len(kept)-cut()
	if cut() == 0 || whole == 0 {
		t.Errorf("%d records, %d of them whole", before, whole)
	}
	u.Watch = nil
	v, err := u.Tune(t.Context(), small(), all, record.Impl{})
	if err != nil || len(kept) != len(v.Records) || cut() != 0 {
		t.Errorf("%d records, then %d of %d, %d still cut short: %v", before, len(kept), len(v.Records), cut(), err)
	}
	if v.Known != whole-declined(v) {
		t.Errorf("%d are known of %d whole records, of which %d are declined", v.Known, whole, declined(v))
	}
	if v.Known == 0 || v.WinnerRecord() == nil || v.WinnerRecord().Stats.Stop == "outraced" {
		t.Errorf("%d known, winner %+v", v.Known, v.WinnerRecord())
	}
	// If the budget is spent, samples are kept, but the candidates are measured again later.
	u, kept = tune(t, d)
	u.Search.MaxEvals = 7
	v, err = u.Tune(t.Context(), small(), all, record.Impl{})
	if err != nil || v.Complete || v.Evaluations != 7 || v.WinnerRecord() == nil {
		t.Errorf("%+v, %v", v.Result, err)
	}
	u.Search.MaxEvals = 0
	if v, err = u.Tune(t.Context(), small(), all, record.Impl{}); err != nil || !v.Complete || len(kept) != len(v.Records) {
		t.Errorf("%d of %d records, %v", len(kept), len(v.Records), err)
	}
}

// declined counts the candidates that cannot run.
func declined(v *tuner.Verdict) int { return len(v.Records) - v.Candidates() }

// TestFormBegun: interrupted records are a prior for their own point. It is stronger with more samples,
// and a single record is none.
func TestFormBegun(t *testing.T) {
	newRecord := func(label string, seconds float64, n int) *record.Record {
		r := &record.Record{Point: small(), Status: record.OK, Impl: record.Impl{Label: label}, Samples: &record.Samples{}, Verify: &record.Verify{OK: true}}
		for range n {
			r.Samples.Wall = append(r.Samples.Wall, seconds)
		}
		return r
	}
	expect := func(n int) float64 {
		var f tuner.Prior
		f.Begun(small(), []*record.Record{newRecord("fast", 1, n), newRecord("slow", 3, n)})
		behind, _ := f.Expect(small(), "slow")
		if ahead, _ := f.Expect(small(), "fast"); ahead != 0 {
			t.Errorf("the fastest is expected to be %g behind", ahead)
		}
		return behind
	}
	if few, many := expect(1), expect(20); !(0 < few && few < many && many < math.Log(3)) {
		t.Errorf("expected %g behind by one sample and %g by twenty", few, many)
	}
	var f tuner.Prior
	f.Begun(small(), []*record.Record{newRecord("slow", 3, 5)})
	if behind, _ := f.Expect(small(), "slow"); behind != 0 {
		t.Errorf("one alone is %g behind", behind)
	}
}

// TestSupersedes: the newer record counts, but an interrupted one never replaces a whole one.
func TestSupersedes(t *testing.T) {
	at := func(minute int, stop string) *record.Record {
		return &record.Record{Time: time.Unix(int64(60*minute), 0), Stats: &record.Stats{Stop: stop}}
	}
	for _, c := range []struct {
		r, old *record.Record
		want   bool
	}{
		{at(2, "max_rounds"), at(1, "max_rounds"), true},
		{at(1, "max_rounds"), at(2, "max_rounds"), false},
		{at(2, "interrupted"), at(1, "max_rounds"), false},
		{at(1, "max_rounds"), at(2, "interrupted"), true},
		{at(2, "interrupted"), at(1, "interrupted"), true},
	} {
		if tuner.Supersedes(c.r, c.old) != c.want {
			t.Errorf("%v, %s over %v, %s is not %t", c.r.Time, c.r.Stats.Stop, c.old.Time, c.old.Stats.Stop, c.want)
		}
	}
}

// A quickest technique does nothing and is wrong.
type quickest struct{ rnn.Technique }

func (quickest) Name() string                          { return "quickest" }
func (quickest) Doc() string                           { return "" }
func (quickest) Knobs(rnn.Problem) []knob.Knob         { return nil }
func (quickest) Plan(p *rnn.Plan, k knob.Params) error { return wrong{impl.Lookup("naive")}.Plan(p, k) }

func TestWrongAnswersDoNotWin(t *testing.T) {
	u, kept := tune(t, open(t))
	u.Techniques = append(u.Techniques, quickest{})
	p := small()
	p.Pass = "forward"
	all := specs(t, "naive")
	all = append(all, all[0])
	all[1].Name, all[1].Label = "quickest", "quickest"
	v, err := u.Tune(t.Context(), p, all, record.Impl{})
	if err != nil {
		t.Fatal(err)
	}
	if w := v.WinnerRecord(); w == nil || w.Impl.Name != "naive" {
		t.Errorf("winner %+v", w)
	}
	if len(kept) != 2 || v.Left[1] != search.Out || v.Records[1].Status != record.Incorrect {
		t.Errorf("%d records, %v", len(kept), v.Left)
	}
}

// TestTuneWithinMemory has memory for few candidates at a time, and for none of one kind.
func TestTuneWithinMemory(t *testing.T) {
	u, _ := tune(t, open(t))
	all := specs(t, "naive", "cudnnstyle")
	need := int64(0)
	for _, spec := range all {
		l, err := tuner.LayOut(u.Device, u.Techniques, small(), spec)
		if err != nil {
			t.Fatal(err)
		}
		need = max(need, l.Need())
	}
	u.MaxMemory = need + need/2
	v, err := u.Tune(t.Context(), small(), all, record.Impl{})
	if err != nil || v.WinnerRecord() == nil {
		t.Fatalf("%+v, %v", v, err)
	}
	u, kept := tune(t, u.Device)
	u.MaxMemory = 1
	v, err = u.Tune(t.Context(), small(), all, record.Impl{})
	if err != nil || v.WinnerRecord() != nil || len(kept) == 0 {
		t.Fatalf("%d records, %v", len(kept), err)
	}
	for _, r := range kept {
		if r.Status != record.Skipped || *r.ReasonCode != record.ReasonMemory {
			t.Errorf("%s: %s", r.Impl.Label, r.Status)
		}
	}
}

// TestBoundHoldsOnRecords checks the lower bound on all recorded runs: no run was shorter, so the bound
// cannot discard a winner.
func TestBoundHoldsOnRecords(t *testing.T) {
	manifests, err := filepath.Glob("../results/*/*/manifest.json")
	if err != nil || len(manifests) == 0 {
		t.Fatal("there are no recorded runs")
	}
	bounded, timed := 0, 0 // timed on a processor whose peak is known
	for _, path := range manifests {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "records.jsonl")); err != nil {
			continue
		}
		m, recs, _, err := record.Read(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		for i := range recs {
			r := &recs[i]
			if r.Status != record.OK || len(m.Devices) == 0 || m.Devices[0].Peak == nil {
				continue
			}
			if !record.OnGPU(r.Device) {
				timed++
			}
			b := tuner.Bound(r.Point, r.Device, r.Work.Executed, *m.Devices[0].Peak)
			if b > 0 {
				bounded++
			}
			if b > r.Stats.Min {
				t.Errorf("%s: %v %s: a run took %.3g s and the bound is %.3g s", path, r.Point, r.Impl.Label, r.Stats.Min, b)
			}
		}
	}
	if timed > 0 && bounded == 0 {
		t.Errorf("a bound is known of none of %d records", timed)
	}
}

// TestReplayOfRecords searches among the recorded ladder of Appleyard's steps.
func TestReplayOfRecords(t *testing.T) {
	_, recs, _, err := record.Read("../record/testdata/runs/appleyard-table1")
	if err != nil {
		t.Fatal(err)
	}
	groups := tuner.ByPoint(recs)
	if len(groups) < 2 {
		t.Fatalf("%d points", len(groups))
	}
	for _, group := range groups {
		var labels []string
		for _, r := range group {
			labels = append(labels, r.Impl.Label)
		}
		r, err := tuner.NewReplay(t.Context(), group, record.Impl{}, 0, &tuner.Prior{}, search.Options{Strategy: "exhaustive", Rounds: 30, Tie: 0})
		if err != nil {
			t.Fatal(err)
		}
		if r.Regret() > 0.01 || r.Time <= 0 || r.Winner < 0 {
			t.Errorf("%v: %s of %s, regret %.3f", r.Point, r.WinnerRecord().Impl.Label, strings.Join(labels, ", "), r.Regret())
		}
		if slices.Contains(r.Left, search.Bounded) {
			t.Errorf("%v: without a peak there is no bound", r.Point)
		}
	}
}
