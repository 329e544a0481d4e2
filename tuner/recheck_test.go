package tuner_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// A tiring device's programs are right at first. From what it is asked to run, fault tells what is
// wrong after that.
type tiring struct {
	device.Device
	fault func(p *tiringProgram, n int) mistake
}

// A mistake is what the latest run did wrong.
type mistake int

const (
	nothing  mistake = iota
	zeros            // all values are 0
	oneValue         // one value is wrong
	idle             // nothing was computed
)

type tiringProgram struct {
	device.Program
	fault func(p *tiringProgram, n int) mistake
	runs  int // so far
	now   mistake
}

func (d tiring) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return &tiringProgram{Program: p, fault: d.fault}, err
}

func (p *tiringProgram) Run(n int) (device.Sample, error) {
	p.runs += n
	if p.now = p.fault(p, n); p.now == idle {
		return device.Sample{Wall: 100 * time.Nanosecond * time.Duration(n)}, nil
	}
	b, err := p.Program.Run(n)
	b.Wall = 10 * time.Microsecond * time.Duration(n) // whatever else the machine does
	return b, err
}

func (p *tiringProgram) Read(m *schedule.Matrix, dst []float32) error {
	err := p.Program.Read(m, dst)
	switch p.now {
	case zeros:
		clear(dst)
	case oneValue:
		dst[len(dst)-1] += 3
	}
	return err
}

// faults are the ways in which a device computes wrongly that a check of its first run cannot find.
var faults = map[string]func(p *tiringProgram, n int) mistake{
	"zeros after 50 runs": func(p *tiringProgram, _ int) mistake {
		if p.runs > 50 {
			return zeros
		}
		return nothing
	},
	"zeros of runs back to back": func(_ *tiringProgram, n int) mistake {
		if n > 1 {
			return zeros
		}
		return nothing
	},
	"one value in one run of 20": func(p *tiringProgram, _ int) mistake {
		if p.runs%20 == 19 {
			return oneValue
		}
		return nothing
	},
	"nothing after three runs": func(p *tiringProgram, _ int) mistake {
		if p.runs > 3 {
			return idle
		}
		return nothing
	},
}

// recheckedPoints are points with and without sequences of equal length, and with one sequence.
func recheckedPoints() []record.Point {
	ragged, one, served := small(), small(), served()
	ragged.Batch, ragged.Lengths = 3, "2+4+5"
	one.Batch, one.Pass = 1, "forward"
	served.Steps = 1
	return []record.Point{small(), ragged, one, served}
}

// TestFaultsAfterTheCheck: an answer that is right when it is checked and wrong when it is timed is
// incorrect, whether techniques are measured, tuned or only verified. Of the samples of a fault of few
// runs, enough are checked.
func TestFaultsAfterTheCheck(t *testing.T) {
	tuner.SetRechecks(t, 1e9, 25)
	for name, fault := range faults {
		d := tiring{open(t), fault}
		for i, p := range recheckedPoints() {
			if p.Calls > 0 && name != "zeros after 50 runs" { // calls run one by one, and each is not checked
				continue
			}
			measured := &tuner.Sweep{Device: d, Settings: quick()}
			for mode, s := range map[string]*tuner.Sweep{"sweep": measured, "verify": once(&tuner.Sweep{Device: d})} {
				if p.Calls > 0 && mode == "verify" {
					continue
				}
				s.Now = ticking(100 * time.Microsecond)
				recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, "naive", "cudnnstyle"))
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range recs {
					if r.Status != record.Incorrect || r.Stats != nil || !strings.Contains(*r.Reason, "differs from the reference") {
						t.Errorf("%s: %s of %v: %s is %s: %v", name, mode, p, r.Impl.Label, r.Status, r.Reason)
					}
				}
			}
			if i > 0 {
				continue
			}
			u, kept := tune(t, d)
			u.Now = ticking(100 * time.Microsecond)
			v, err := u.Tune(t.Context(), p, specs(t, "naive", "scc"), record.Impl{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range kept {
				if r.Status == record.OK {
					t.Errorf("%s: tune: %s is ok: %+v, %+v", name, r.Impl.Label, r.Stats, r.Samples)
				}
			}
			if v.WinnerRecord() != nil {
				t.Errorf("%s: tune: the winner is %s", name, v.WinnerRecord().Label())
			}
		}
	}
}

// TestFaultsOfLargeRuns: so is the answer of a run that is too large for the whole reference.
func TestFaultsOfLargeRuns(t *testing.T) {
	tuner.SetRechecks(t, 1e9, 25)
	tuner.SetReferenceFLOPs(t, 2e4)
	long := small()
	long.Steps, long.Batch = 40, 6
	forward := long
	forward.Pass, forward.Batch = "forward", 1
	for name, fault := range faults {
		s := &tuner.Sweep{Device: tiring{open(t), fault}, Settings: quick()}
		s.Now = ticking(100 * time.Microsecond)
		recs, err := sweep(t, s, context.Background(), []record.Point{long, forward}, specs(t, "naive", "persistent"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			if r.Status != record.Incorrect || r.Verify.OK {
				t.Errorf("%s: %s at %v is %s: %v", name, r.Impl.Label, r.Point, r.Status, r.Reason)
			}
		}
	}
}

// TestFaultsThatAreNotTimed: where a sample is one run, a fault of runs back to back is in no time.
func TestFaultsThatAreNotTimed(t *testing.T) {
	s := &tuner.Sweep{Device: tiring{open(t), faults["zeros of runs back to back"]}, Settings: quick()}
	s.Now = ticking(60 * time.Millisecond) // longer than 50 of quick's samples
	recs, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, "naive", "persistent"))
	if err != nil || len(recs) != 2 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	for _, r := range recs {
		if r.Status != record.OK || slices.Max(r.Samples.Iters) != 1 {
			t.Errorf("%s is %s: %v, %+v", r.Impl.Label, r.Status, r.Reason, r.Samples)
		}
	}
}

// TestHonestIsRechecked: no technique fails the checks of its samples, at a point of every kind.
func TestHonestIsRechecked(t *testing.T) {
	tuner.SetRechecks(t, 1e9, 2)
	base := small()
	base.Batch, base.Hidden, base.Input = 4, 8, 6
	var points []record.Point
	add := func(change func(*record.Point)) {
		p := base
		change(&p)
		points = append(points, p)
	}
	for _, c := range []string{"lstm", "gru", "rnn-relu", "lstm-peephole", "mingru", "rg-lru", "slstm"} {
		add(func(p *record.Point) { p.Cell = c })
		add(func(p *record.Point) { p.Cell, p.Pass = c, "forward" })
		add(func(p *record.Point) { p.Cell, p.Lengths = c, "2+2+4+5" })
	}
	add(func(p *record.Point) { p.Direction, p.Output = "both", 5 })
	add(func(p *record.Point) { p.Direction = "alternate" })
	add(func(p *record.Point) { p.Direction, p.Lengths = "reverse", "2+2+4+5" })
	add(func(p *record.Point) { p.Resets = 30 })
	add(func(p *record.Point) { p.History = 2 })
	add(func(p *record.Point) { p.Projection, p.Output = 4, 5 })
	add(func(p *record.Point) { p.Heads = 4 })
	add(func(p *record.Point) { p.OneHot, p.Output, p.Weighted = true, 7, true })
	add(func(p *record.Point) { p.Symbols, p.Embedding, p.Output = 5, 3, 4 })
	add(func(p *record.Point) { p.Hidden, p.Batch, p.Pass = 1, 1, "forward" })
	add(func(p *record.Point) { p.Precision = "bf16" })
	all := specs(t, "naive", "cudnnstyle", "cudnnstyle:streams=2", "persistent", "scc", "scan")
	for _, flops := range []float64{4e9, 2e4} {
		tuner.SetReferenceFLOPs(t, flops)
		s := &tuner.Sweep{Device: open(t), Techniques: impl.All(), Settings: quick()}
		s.Settings.Rounds, s.Settings.MaxRounds = 2, 2
		recs, err := sweep(t, s, context.Background(), points, all)
		if err != nil {
			t.Fatal(err)
		}
		ok := 0
		for _, r := range recs {
			if r.Status == record.OK {
				ok++
			}
			if !slices.Contains([]record.Status{record.OK, record.Skipped}, r.Status) {
				t.Errorf("%v %s: %s: %s", r.Point, r.Impl.Label, r.Status, *r.Reason)
			}
		}
		if ok < 2*len(points) {
			t.Errorf("%d records of %d points are ok", ok, len(points))
		}
	}
}
