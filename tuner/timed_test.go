package tuner_test

import (
	"context"
	"math"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// A clocked device says of each call of Run how long a run took. Its programs are numbered from 0.
type clocked struct {
	*cpu.Device
	takes func(program, call, n int) time.Duration // of one run
	runs  [][]int                                  // by program: the n of each call
}

func (d *clocked) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	d.runs = append(d.runs, nil)
	return &clockedProgram{p, d, len(d.runs) - 1}, err
}

type clockedProgram struct {
	device.Program
	on     *clocked
	number int
}

func (p *clockedProgram) Run(n int) (device.Sample, error) {
	_, err := p.Program.Run(n)
	each := p.on.takes(p.number, len(p.on.runs[p.number]), n)
	p.on.runs[p.number] = append(p.on.runs[p.number], n)
	return device.Sample{Wall: time.Duration(n) * each, Device: time.Duration(n) * each / 2, Clock: 2e9}, err
}

// clockedSweep sweeps techniques on a device whose runs take as long as takes says. A sample is of 5 ms.
func clockedSweep(t *testing.T, target float64, takes func(program, call, n int) time.Duration, techniques ...string) (*clocked, []record.Record) {
	t.Helper()
	d := &clocked{Device: open(t), takes: takes}
	s := &tuner.Sweep{Device: d, Settings: quick()}
	s.Now = ticking(100 * time.Microsecond)
	s.Settings.MinTime, s.Settings.MinIters, s.Settings.MaxRounds, s.Settings.TargetCI = 5*time.Millisecond, 1, 9, target
	recs, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, techniques...))
	if err != nil || len(recs) != len(techniques) {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	return d, recs
}

// TestTimeOfARun: a sample is of as many runs as take MinTime, and its times are of one run. The shortest
// run of the warm-up says how many that are.
func TestTimeOfARun(t *testing.T) {
	_, recs := clockedSweep(t, 0.01, func(_, _, n int) time.Duration {
		if n > 1 && n&(n-1) == 0 { // only the warm-up makes 2, 4, 8 … runs at once
			return 40 * time.Millisecond
		}
		return time.Millisecond
	}, "naive")
	r := recs[0]
	if r.Status != record.OK || len(r.Samples.Wall) != 6 {
		t.Fatalf("%+v", r)
	}
	for i, wall := range r.Samples.Wall {
		if r.Samples.Iters[i] != 5 || math.Abs(wall-1e-3) > 1e-12 || math.Abs(r.Samples.Device[i]-0.5e-3) > 1e-12 || r.Samples.Clock[i] != 2e9 {
			t.Errorf("sample %d: %d runs of %v, %v by the device's clock at %v Hz", i, r.Samples.Iters[i], wall, r.Samples.Device[i], r.Samples.Clock[i])
		}
	}
	if math.Abs(r.Rate.Flops*1e-3-float64(r.Work.Flops)) > 1 || math.Abs(r.Rate.Bytes*1e-3-float64(r.Work.Bytes)) > 1 {
		t.Errorf("rates %+v of %+v", r.Rate, r.Work)
	}
}

// TestCachesAreRefilled: with several techniques, a run that is not timed comes before each sample.
func TestCachesAreRefilled(t *testing.T) {
	d, recs := clockedSweep(t, 0.01, func(int, int, int) time.Duration { return time.Millisecond }, "naive", "cudnnstyle")
	for i, runs := range d.runs {
		refilled := 0
		for k, n := range runs {
			if n == 5 && k > 0 && runs[k-1] == 1 {
				refilled++
			}
		}
		if refilled < recs[i].Stats.N {
			t.Errorf("program %d: %d of %d samples come after a single run, in %v", i, refilled, recs[i].Stats.N, runs)
		}
	}
}

// TestRoundsEnd: rounds end at the least number once all intervals are narrow, else at the most.
func TestRoundsEnd(t *testing.T) {
	steady := func(int, int) time.Duration { return time.Millisecond }
	noisy := func(of int) func(int, int) time.Duration { // program of varies by a third
		return func(program, call int) time.Duration {
			if program == of && call%2 == 0 {
				return 1500 * time.Microsecond
			}
			return time.Millisecond
		}
	}
	for _, c := range []struct {
		name  string
		takes func(int, int) time.Duration
		n     int
		stop  string
	}{{"steady", steady, 6, "target_ci"}, {"the first is noisy", noisy(0), 9, "max_rounds"}, {"the second is noisy", noisy(1), 9, "max_rounds"}} {
		_, recs := clockedSweep(t, 0.01, func(program, call, _ int) time.Duration { return c.takes(program, call/2) }, "naive", "cudnnstyle") // a call refills
		for _, r := range recs {
			if r.Stats.N != c.n || r.Stats.Stop != c.stop {
				t.Errorf("%s: %s has %d samples and ended by %s, want %d and %s", c.name, r.Impl.Label, r.Stats.N, r.Stats.Stop, c.n, c.stop)
			}
		}
	}
}
