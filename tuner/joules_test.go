package tuner

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/search"
)

// A thrifty device simulates clock and counter. A run takes less energy, the more operations its
// schedule has, so slow schedules are thrifty. At rest it takes 10 W.
type thrifty struct {
	*cpu.Device
	at             time.Duration
	joules, shown  float64
	tick, lastTick time.Duration
	err            error
	looks          int
}

const restWatts = 10

// pass advances the clock by t and the counter by joules.
func (d *thrifty) pass(t time.Duration, joules float64) {
	d.at, d.joules = d.at+t, d.joules+joules
	if d.tick > 0 && d.at-d.lastTick >= d.tick {
		d.lastTick, d.shown = d.at.Truncate(d.tick), d.joules
	}
}

func (d *thrifty) Power() (device.Power, error) {
	d.looks++
	d.pass(100*time.Microsecond, 100e-6*restWatts)
	return device.Power{Source: "test", Joules: d.shown}, d.err
}

func (d *thrifty) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return thriftyProgram{p, d, 1 / float64(len(s.Nodes))}, err
}

type thriftyProgram struct {
	device.Program
	on   *thrifty
	each float64
}

const eachRun = 2 * time.Millisecond // on the device's clock

func (p thriftyProgram) Run(n int) (device.Sample, error) {
	s, err := p.Program.Run(n)
	for range n {
		p.on.pass(eachRun, p.each)
	}
	return s, err
}

// leastEnergy tunes naive against cudnnstyle for energy on d.
func leastEnergy(t *testing.T, d *thrifty) (*Tune, func() (*Verdict, error)) {
	t.Helper()
	c, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	d.Device = c
	settings := config.Default()
	settings.Warmup, settings.MinTime, settings.MinIters = 0, 0, 1
	kept := map[string]*record.Record{}
	u := &Tune{
		Sweep: Sweep{Device: d, Techniques: impl.All(), Settings: settings, Emit: func(r *record.Record) error {
			one := *r
			kept[r.Key()] = &one
			return nil
		}},
		Depth: 0, Objective: record.OfEnergy, Search: search.Options{Strategy: "exhaustive", Rounds: 3},
		Recall:  func(key string) *record.Record { return kept[key] },
		windows: windows{Length: 10 * time.Millisecond, Settle: 5 * time.Millisecond, Rest: 100 * time.Millisecond, Chunk: 25 * time.Millisecond, Ticks: leastTicks},
	}
	u.windows.now = func() time.Time { return time.Unix(0, int64(d.at)) }
	p := record.Point{Cell: "gru", Pass: "forward", Hidden: 4, Input: 4, Batch: 1, Steps: 6, Layers: 1, Precision: "fp32"}
	return u, func() (*Verdict, error) {
		return u.Tune(t.Context(), p, []grid.Spec{{Name: "naive", Label: "naive"}, {Name: "cudnnstyle", Label: "cudnnstyle"}}, record.Impl{})
	}
}

// TestTuneForEnergy: the candidate that takes least energy wins, though it is slower. A sample is so
// long that a tick is at most 2 % of it. Tunes for time and for energy do not share records.
func TestTuneForEnergy(t *testing.T) {
	d := &thrifty{tick: 4 * time.Millisecond}
	u, tune := leastEnergy(t, d)
	v, err := tune()
	if err != nil {
		t.Fatal(err)
	}
	w := v.WinnerRecord()
	if w == nil || w.Impl.Name != "naive" || v.Second < 0 || v.Records[v.Second].Impl.Name != "cudnnstyle" || v.Lead < 0.5 {
		t.Fatalf("%+v", v.Result)
	}
	e := w.Energy
	if w.Mode.Objective != record.OfEnergy || e == nil || e.Joules == nil || len(e.Windows) != 3 || w.Stats.N != 3 || *e.Idle < 9 || *e.Idle > 11 {
		t.Fatalf("%+v, %+v", w.Mode, e)
	}
	want := 1/float64(w.Work.Ops) + 100e-6*restWatts // one reading after each run
	for _, j := range e.Windows {
		if off := j/want - 1; math.Abs(off) > resolution {
			t.Errorf("%.4g J, want about %.4g", j, want)
		}
	}
	if length := u.joules.windows.Length; length < 50*d.tick {
		t.Errorf("samples of %v by a counter that ticks every %v", length, d.tick)
	}
	seconds, joules := v.Cost()
	entry := v.Entry("hot", "v1", nil)
	if seconds != w.Seconds() || entry.Objective != record.OfEnergy || entry.Seconds != seconds || math.Abs(entry.Joules/joules-1) > 0.02 {
		t.Errorf("%v s, %v J, entry %+v", seconds, joules, entry)
	}

	looks := d.looks
	again, err := tune()
	if err != nil || again.Known != 2 || again.Evaluations != 0 || again.Winner != v.Winner || d.looks != looks {
		t.Errorf("again: %d known, %d samples, %v", again.Known, again.Evaluations, err)
	}
	if _, joules := again.Cost(); math.Abs(joules / *e.Joules - 1) > 1e-9 {
		t.Errorf("%v J, and %v J when known", *e.Joules, joules)
	}
	u.Objective, u.joules = "", nil
	if fast, err := tune(); err != nil || fast.Known != 0 || fast.Objective != "" || slices.ContainsFunc(fast.Records, func(r *record.Record) bool { return r.Energy != nil }) {
		t.Errorf("for time, %d are known: %v", fast.Known, err)
	}
}

// TestTuneWithoutCounter: a faulty counter ends the tune with an error that says so.
func TestTuneWithoutCounter(t *testing.T) {
	for want, d := range map[string]*thrifty{"does not tick": {}, "broken": {tick: 1, err: errors.New("broken")}} {
		_, tune := leastEnergy(t, d)
		if _, err := tune(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	d := &thrifty{tick: time.Millisecond}
	u, tune := leastEnergy(t, d)
	u.Watch = func(e Event) {
		if e.Phase == Metering && e.Label == "naive" {
			d.tick = 0 // it stops
		}
	}
	if _, err := tune(); !errors.Is(err, errCounter) {
		t.Errorf("%v", err)
	}
	u.Device = struct{ device.Device }{d}
	u.joules = nil
	if _, err := tune(); err == nil || !strings.Contains(err.Error(), "has no energy meter") {
		t.Error(err)
	}
}

// TestLongTicks: samples are longer if the counter ticks more slowly under load than at rest.
func TestLongTicks(t *testing.T) {
	for _, tick := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		m := &meter{watts: 100, tick: tick}
		w := m.windows()
		w.Length, w.Ticks = 20*time.Millisecond, leastTicks
		got, err := w.of(t.Context(), m, func() (int, error) { m.at += time.Millisecond / 2; return 1, nil })
		if err != nil {
			t.Fatalf("tick %v: %v", tick, err)
		}
		if off := math.Abs(got.joules/float64(got.runs)/(100*0.5e-3) - 1); got.seconds < 49*tick.Seconds() || off > resolution {
			t.Errorf("tick %v: %v s, %.1f %% off", tick, got.seconds, 100*off)
		}
	}
}
