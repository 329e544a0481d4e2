package tuner_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
)

// served is a point whose sequence takes 120 calls of one step.
func served() record.Point {
	return record.Point{Cell: "lstm", Pass: "forward", Hidden: 9, Input: 7, Batch: 3, Steps: 1, Calls: 120, Layers: 2, Precision: "fp32"}
}

// single is a device with one worker, since on a busy machine each call would wait for a second one.
func single(t *testing.T) *cpu.Device {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestCallsAreTimed: each call is timed alone, and a record keeps their percentiles.
func TestCallsAreTimed(t *testing.T) {
	s := &tuner.Sweep{Device: single(t), Settings: quick()}
	several := served()
	several.Steps, several.Output = 3, 4
	recs, err := sweep(t, s, context.Background(), []record.Point{served(), several}, specs(t, "naive", "cudnnstyle", "scan"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		if r.Impl.Name == "scan" {
			if r.Status != record.Skipped || r.Latency != nil {
				t.Errorf("%v scan: %s, %+v", r.Point, r.Status, r.Latency)
			}
			continue
		}
		l := r.Latency
		if r.Status != record.OK || l == nil {
			t.Fatalf("%v %s: %s without latency: %+v", r.Point, r.Impl.Label, r.Status, *r.Reason)
		}
		if l.Calls != 6*20 || r.Samples.Iters[0] != 20 || r.Stats.N != 6 {
			t.Errorf("%v %s: %d calls timed, %d of them in the first of %d rounds", r.Point, r.Impl.Label, l.Calls, r.Samples.Iters[0], r.Stats.N)
		}
		ends := []float64{0, l.Run.P50, l.P50, l.P90, l.P99, l.Max}
		if !slices.IsSorted(ends) || len(l.Percentiles) != 101 || !slices.IsSorted(l.Percentiles) || l.Percentiles[100] != l.Max || l.Percentiles[0] <= 0 {
			t.Errorf("%v %s: latencies %v and %v", r.Point, r.Impl.Label, ends, l.Percentiles)
		}
		if !slices.Contains(l.Percentiles, l.P50) || r.Stats.Median <= 0 || r.Stats.Median > l.Max {
			t.Errorf("%v %s: a median of %v of calls from %v to %v", r.Point, r.Impl.Label, r.Stats.Median, l.Percentiles[0], l.Max)
		}
		if v := r.Verify; v == nil || !v.OK || v.Method != record.VerifyWhole || v.Steps != 120*r.Point.Steps || v.Sequences != 3 {
			t.Errorf("%v %s: verified as %+v", r.Point, r.Impl.Label, v)
		}
		if slices.Contains(r.Warnings, record.WarnPart) {
			t.Errorf("%v %s: %v", r.Point, r.Impl.Label, r.Warnings)
		}
	}
}

// sluggish is a device whose calls take a millisecond.
type sluggish struct{ device.Device }

type sluggard struct{ device.Program }

func (d sluggish) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return sluggard{p}, err
}

func (p sluggard) Run(n int) (device.Sample, error) {
	time.Sleep(time.Duration(n) * time.Millisecond)
	s, err := p.Program.Run(n)
	s.Wall += time.Duration(n) * time.Second // so that calls are made one at a time
	return s, err
}

// TestCallsEndInTime: if a technique takes too long, its percentiles are of the calls that it made.
func TestCallsEndInTime(t *testing.T) {
	m := quick()
	m.PointTimeout, m.Verify = 5*time.Millisecond, false
	s := &tuner.Sweep{Device: sluggish{single(t)}, Settings: m}
	p := served()
	p.Calls = 1000
	recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, "naive"))
	if err != nil {
		t.Fatal(err)
	}
	if r := recs[0]; r.Status != record.OK || r.Latency.Calls == 0 || r.Latency.Calls > 20 || r.Stats.Stop != "timeout" || r.Samples.Iters[0] != r.Latency.Calls {
		t.Errorf("%s, %+v, %+v", r.Status, r.Latency, r.Stats)
	}
}

// forgetful is a device whose programs lose the states between calls.
type forgetful struct{ device.Device }

func (d forgetful) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	i := slices.IndexFunc(s.Matrices, func(m *schedule.Matrix) bool { return m.Name == "h1" })
	return &amnesiac{Program: p, state: s.Matrices[i]}, err
}

type amnesiac struct {
	device.Program
	state *schedule.Matrix
	runs  int
}

// Run forgets after 40 runs.
func (p *amnesiac) Run(n int) (device.Sample, error) {
	if p.runs += n; p.runs == 40 {
		if err := p.Write(p.state, make([]float32, 27)); err != nil {
			return device.Sample{}, err
		}
	}
	return p.Program.Run(n)
}

// TestForgottenStatesAreFound: calls that lose the states once are incorrect and are not timed.
func TestForgottenStatesAreFound(t *testing.T) {
	for _, budget := range []float64{1e9, 5e5} { // whole, and the first calls whole and the rest step by step
		tuner.SetReferenceFLOPs(t, budget)
		s := &tuner.Sweep{Device: forgetful{single(t)}, Settings: quick()}
		recs, err := sweep(t, s, context.Background(), []record.Point{served()}, specs(t, "naive"))
		if err != nil {
			t.Fatal(err)
		}
		if r := recs[0]; r.Status != record.Incorrect || !strings.Contains(*r.Reason, "differs from the reference") || r.Latency != nil {
			t.Errorf("at a budget of %g: %s, %v, %+v", budget, r.Status, r.Reason, r.Verify)
		}
	}
}

// TestLongServiceIsCheckedStepwise: of many calls, the first are compared with the reference of the
// sequence, and all are checked step by step.
func TestLongServiceIsCheckedStepwise(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 5e5)
	s := &tuner.Sweep{Device: single(t), Settings: quick()}
	recs, err := sweep(t, s, context.Background(), []record.Point{served()}, specs(t, "naive", "persistent"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		if v := r.Verify; r.Status != record.OK || v.Method != record.VerifyStepwise || v.Steps != 120 || v.Share <= 0 || v.Share >= 1 {
			t.Errorf("%s: %s, verified as %+v", r.Impl.Label, r.Status, v)
		}
	}
}

// TestCallsWithoutTiming: where nothing is timed, one call is made.
func TestCallsWithoutTiming(t *testing.T) {
	m := config.Default().Once()
	p, err := tuner.Problem(served())
	if err != nil {
		t.Fatal(err)
	}
	if n := tuner.CallsPerRound(p, m); n != 1 {
		t.Errorf("%d calls where nothing is timed", n)
	}
	if n := tuner.CallsPerRound(p, config.Default()); n != 12 {
		t.Errorf("%d calls in each of 10 rounds, want 12", n)
	}
	if n := tuner.CallsChecked(p); n != 120 {
		t.Errorf("%d of 120 calls are checked", n)
	}
	few := served()
	few.Calls = 99
	if _, err := tuner.Problem(few); err == nil || !strings.Contains(err.Error(), "at least 100") {
		t.Errorf("99 calls: %v", err)
	}
}
