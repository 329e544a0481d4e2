package tuner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// open opens the processor with one worker. Two would wait for each other most of the time at the sizes of tests.
func open(t testing.TB) *cpu.Device { return openWith(t, 1) }

func openWith(t testing.TB, workers int) *cpu.Device {
	d, err := cpu.Open(cpu.Options{Threads: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// quick returns settings for tests: the fewest rounds that have an interval.
func quick() config.Measure {
	m := config.Default()
	m.Rounds, m.MaxRounds, m.Warmup, m.MinTime = 6, 6, time.Millisecond, time.Millisecond
	return m
}

// ticking is a clock that goes on by step whenever it is read, however busy the machine is. By a clock
// of 100 µs, the warm-up of quick makes 1, 2, 4 and 8 runs back to back.
func ticking(step time.Duration) func() time.Time {
	var now time.Time
	return func() time.Time {
		now = now.Add(step)
		return now
	}
}

// small is a point that takes microseconds.
func small() record.Point {
	return record.Point{Cell: "lstm", Pass: "train", Hidden: 9, Input: 7, Batch: 3, Steps: 5, Layers: 2, Precision: "fp32"}
}

func specs(t testing.TB, texts ...string) []grid.Spec {
	var names []string
	for _, tech := range impl.All() {
		names = append(names, tech.Name())
	}
	var out []grid.Spec
	for _, text := range texts {
		s, err := grid.ParseSpec(text, names)
		if err != nil {
			t.Fatal(err)
		}
		if s.Label == "" {
			s.Label = s.String()
		}
		out = append(out, s)
	}
	return out
}

// sweep runs the sweep and returns its records.
func sweep(t *testing.T, s *tuner.Sweep, ctx context.Context, points []record.Point, specs []grid.Spec) ([]record.Record, error) {
	var recs []record.Record
	if s.Techniques == nil {
		s.Techniques = impl.All()
	}
	if s.Emit == nil {
		s.Emit = func(r *record.Record) error { recs = append(recs, *r); return nil }
	}
	var tasks []tuner.Task
	for _, p := range points {
		tasks = append(tasks, tuner.Task{Point: p, Specs: specs})
	}
	err := s.Run(ctx, tasks)
	return recs, err
}

func TestSweepMeasures(t *testing.T) {
	s := &tuner.Sweep{Device: openWith(t, 2), Settings: quick(), Limits: device.Limits{FLOPS: 1e12}}
	p, q := small(), small()
	q.Cell, q.Pass, q.OneHot, q.Output = "gru", "forward", true, 4
	recs, err := sweep(t, s, context.Background(), []record.Point{p, q}, specs(t, "naive", "cudnnstyle", "cudnnstyle:fused=0:teams=1"))
	if err != nil {
		t.Fatal(err)
	}
	if len(recs) != 6 {
		t.Fatalf("%d records, want 6", len(recs))
	}
	for _, r := range recs {
		if r.Status != record.OK {
			t.Errorf("%v %s: %s", r.Point, r.Impl.Label, *r.Reason)
			continue
		}
		if r.Stats.N != 6 || r.Stats.Median <= 0 || r.Stats.Stop == "" || r.Samples.Wall[0] <= 0 {
			t.Errorf("%v %s: %+v", r.Point, r.Impl.Label, r.Stats)
		}
		if v := r.Verify; v == nil || !v.OK || v.Sequences != 3 || v.Steps != 5 {
			t.Errorf("%v %s: %+v", r.Point, r.Impl.Label, v)
		}
		if r.Work.Flops <= 0 || r.Work.Memory <= 0 || r.Rate.Percent == nil {
			t.Errorf("%v %s: %+v %+v", r.Point, r.Impl.Label, r.Work, r.Rate)
		}
	}
	if recs[0].Work.Flops != recs[1].Work.Flops {
		t.Error("techniques are rated by different numbers of operations")
	}
}

// An evicting device counts how often its caches are emptied.
type evicting struct {
	device.Device
	evictions int
}

func (d *evicting) Evict() error { d.evictions++; return nil }

func TestSweepCold(t *testing.T) {
	for cache, cold := range map[string]bool{"hot": false, "cold": true} {
		d := &evicting{Device: open(t)}
		s := &tuner.Sweep{Device: d, Settings: quick()}
		s.Settings.Cache = cache
		recs, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, "naive"))
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		for _, n := range recs[0].Samples.Iters {
			runs += n
		}
		if want := map[bool]int{true: runs}[cold]; d.evictions != want || recs[0].Mode.Cache != cache {
			t.Errorf("cache %s: %d evictions for %d runs; the record says %q", cache, d.evictions, runs, recs[0].Mode.Cache)
		}
	}
	s := &tuner.Sweep{Device: struct{ device.Device }{open(t)}, Settings: quick()}
	s.Settings.Cache = "cold"
	if _, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, "naive")); err == nil || !strings.Contains(err.Error(), "cannot empty its caches") {
		t.Errorf("a device that cannot: %v", err)
	}
}

func TestSweepDeclines(t *testing.T) {
	s := &tuner.Sweep{Device: open(t), Settings: quick(), MaxMemory: 1 << 20}
	streams, big, half := small(), small(), small()
	half.Precision = "tf32"
	streams.Streams = 4
	big.Hidden, big.Input = 1024, 1024
	recs, err := sweep(t, s, context.Background(), []record.Point{streams, big, half}, specs(t, "naive", "cudnnstyle"))
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		status record.Status
		code   string
	}{{record.Skipped, record.ReasonStreams}, {record.OK, ""}, {record.Skipped, record.ReasonMemory}, {record.Skipped, record.ReasonMemory},
		{record.Skipped, record.ReasonPrecision}, {record.Skipped, record.ReasonPrecision}}
	for i, w := range want {
		r := recs[i]
		if r.Status != w.status || w.code != "" && *r.ReasonCode != w.code {
			t.Errorf("%v %s: %s %v, want %v", r.Point, r.Impl.Name, r.Status, r.Reason, w)
		}
	}
	if recs[1].Impl.Streams != 4 {
		t.Errorf("%d streams, want the 4 asked for", recs[1].Impl.Streams)
	}
}

func TestSweepSkipsWhatIsDone(t *testing.T) {
	d := open(t)
	first, err := sweep(t, &tuner.Sweep{Device: d, Settings: quick()}, context.Background(), []record.Point{small()}, specs(t, "naive"))
	if err != nil {
		t.Fatal(err)
	}
	s := &tuner.Sweep{Device: d, Settings: quick(), Skip: func(key string) bool { return key == first[0].Key() }}
	again, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, "naive", "cudnnstyle"))
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != 1 || again[0].Impl.Name != "cudnnstyle" {
		t.Errorf("%d records, want cudnnstyle's alone", len(again))
	}
}

func TestSweepStops(t *testing.T) {
	d := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	s := &tuner.Sweep{Device: d, Settings: quick()}
	s.Watch = func(e tuner.Event) {
		if e.Phase == tuner.Measuring && e.Point.Cell == "gru" && e.Round == 2 {
			cancel()
		}
	}
	second := small()
	second.Cell = "gru"
	recs, err := sweep(t, s, ctx, []record.Point{small(), second}, specs(t, "naive"))
	if !errors.Is(err, context.Canceled) || len(recs) != 1 {
		t.Errorf("%d records, %v: want the first point's and the context's error", len(recs), err)
	}
	s = &tuner.Sweep{Device: d, Settings: quick()}
	s.Settings.Budget = time.Nanosecond
	recs, err = sweep(t, s, context.Background(), []record.Point{small(), second}, specs(t, "naive"))
	if !errors.Is(err, tuner.ErrBudget) || len(recs) != 1 {
		t.Errorf("%d records, %v: want the first point's and %v", len(recs), err, tuner.ErrBudget)
	}
	full := errors.New("disk full")
	s = &tuner.Sweep{Device: d, Settings: quick(), Emit: func(*record.Record) error { return full }}
	if _, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, "naive")); !errors.Is(err, full) {
		t.Errorf("%v: want %v", err, full)
	}
}

// TestSweepBudget ends the budget in the middle of the second point: it is kept if it has enough
// samples.
func TestSweepBudget(t *testing.T) {
	d := open(t)
	second := small()
	second.Cell = "gru"
	for round, want := range map[int]int{1: 1, 4: 2} {
		ctx, spend := context.WithCancelCause(t.Context())
		s := &tuner.Sweep{Device: d, Settings: quick()}
		s.Watch = func(e tuner.Event) {
			if e.Phase == tuner.Measuring && e.Point.Cell == "gru" && e.Round == round {
				spend(tuner.ErrBudget) // as the budget's timer does, but at a known moment
			}
		}
		recs, err := sweep(t, s, ctx, []record.Point{small(), second}, specs(t, "naive"))
		if len(recs) != want || want == 1 && !errors.Is(err, tuner.ErrBudget) || want == 2 && err != nil {
			t.Fatalf("after round %d: %d records, %v: want %d", round, len(recs), err, want)
		}
		if last := recs[want-1]; want > 1 && (last.Stats.Stop != "budget" || len(last.Samples.Wall) < round) {
			t.Errorf("after round %d: %d samples, stopped by %s", round, len(last.Samples.Wall), last.Stats.Stop)
		}
	}
}

// TestSweepPointTimeout: a technique that has used up its time is not run again.
func TestSweepPointTimeout(t *testing.T) {
	for limit, want := range map[time.Duration]int{time.Nanosecond: 1, time.Minute: 6} {
		s := &tuner.Sweep{Device: open(t), Settings: quick()}
		s.Settings.PointTimeout = limit
		recs, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, "naive", "cudnnstyle"))
		if err != nil || len(recs) != 2 {
			t.Fatalf("%d records, %v", len(recs), err)
		}
		for _, r := range recs {
			if len(r.Samples.Wall) != want || (r.Stats.Stop == "timeout") != (want == 1) {
				t.Errorf("%s: %d samples within %v, stopped by %s", r.Impl.Label, len(r.Samples.Wall), limit, r.Stats.Stop)
			}
		}
	}
}

func TestSweepRefusesMistakes(t *testing.T) {
	d := open(t)
	for want, spoil := range map[string]func(p *record.Point, s *grid.Spec){
		`unknown cell "lsmt": did you mean lstm?`:                 func(p *record.Point, _ *grid.Spec) { p.Cell = "lsmt" },
		`unknown pass "forwad": did you mean forward?`:            func(p *record.Point, _ *grid.Spec) { p.Pass = "forwad" },
		`unknown technique "cudnstyle": did you mean cudnnstyle?`: func(_ *record.Point, s *grid.Spec) { s.Name = "cudnstyle" },
		`knob fused cannot be 7: it takes 1, 0`:                   func(_ *record.Point, s *grid.Spec) { s.Knobs = knob.Params{"fused": 7} },
		`unknown technique "gpu": choose among naive, `:           func(_ *record.Point, s *grid.Spec) { s.Name = "gpu" },
		`unknown cell "x": choose among `:                         func(p *record.Point, _ *grid.Spec) { p.Cell = "x" },
		`unknown knob "worth": choose among `:                     func(_ *record.Point, s *grid.Spec) { s.Knobs = knob.Params{"worth": 1} },
		`unknown knob "fussed": did you mean fused?`:              func(_ *record.Point, s *grid.Spec) { s.Knobs = knob.Params{"fussed": 1} },
		`knob "batchsizes" belongs to sequences with lengths of their own, and here all are full: set --lengths`: func(p *record.Point, s *grid.Spec) {
			s.Name, s.Knobs = "persistent", knob.Params{"batchsizes": 16}
		},
		`knob "weightgrad" belongs to training, and this pass is forward`: func(p *record.Point, s *grid.Spec) {
			p.Pass, s.Name, s.Knobs = "forward", "cudnnstyle", knob.Params{"weightgrad": 1}
		},
		`hidden is 0: it must be at least 1`:                           func(p *record.Point, _ *grid.Spec) { p.Hidden = 0 },
		`knob streams is 3, but the point has S=2: remove one of them`: func(p *record.Point, s *grid.Spec) { p.Streams, s.Knobs = 2, knob.Params{"streams": 3} },
	} {
		p, sp := small(), specs(t, "cudnnstyle")[0]
		spoil(&p, &sp)
		_, err := sweep(t, &tuner.Sweep{Device: d, Settings: quick()}, context.Background(), []record.Point{p}, []grid.Spec{sp})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// wrong lays out the naive schedule and spoils one result.
type wrong struct{ rnn.Technique }

func (w wrong) Plan(p *rnn.Plan, k knob.Params) error {
	if err := w.Technique.Plan(p, k); err != nil {
		return err
	}
	last := p.Outputs(p.Steps-1, 1)
	p.Do(0, schedule.Map{Op: cell.OneMinus, Out: last, A: last})
	return nil
}

func TestWrongAnswersAreNotTimed(t *testing.T) {
	s := &tuner.Sweep{Device: open(t), Settings: quick(), Techniques: []rnn.Technique{wrong{impl.Lookup("naive")}}}
	p := small()
	p.Pass = "forward"
	recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, "naive"))
	if err != nil {
		t.Fatal(err)
	}
	if r := recs[0]; r.Status != record.Incorrect || r.Stats != nil || *r.ReasonCode != record.ReasonMismatch {
		t.Errorf("a wrong answer is %s", r.Status)
	}
}

// TestLargePoints checks a point whose whole reference would take minutes: every step is verified, but
// only some units of each.
func TestLargePoints(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: takes minutes without assembly")
	}
	s := &tuner.Sweep{Device: open(t), Settings: quick()}
	s.Settings.Rounds, s.Settings.MaxRounds = 1, 1
	p := record.Point{Cell: "lstm", Pass: "forward", Hidden: 512, Input: 512, Batch: 16, Steps: 300, Layers: 2, Precision: "fp32"}
	recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, "cudnnstyle:inputbatch=64"))
	if err != nil {
		t.Fatal(err)
	}
	if v := recs[0].Verify; v == nil || !v.OK || v.Sequences != 3 || v.Steps != 300 || v.Method != record.VerifyStepwise || v.Share <= 0 || v.Share >= 1 {
		t.Errorf("%+v", v)
	}
}

// TestKnobsOfLargePoints: settings with a maximum that depends on the steps are checked over fewer
// steps too. A setting that this processor does not offer is skipped.
func TestKnobsOfLargePoints(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: takes minutes without assembly")
	}
	for spec, p := range map[string]record.Point{
		"persistent:ahead=400":                         {Cell: "lstm", Pass: "forward", Hidden: 1024, Input: 1024, Batch: 1, Steps: 400, Layers: 1, Precision: "fp32"},
		"scan:inputbatch=0:scansplit=2:scanchunk=1024": {Cell: "gilr", Pass: "forward", Hidden: 1024, Input: 1024, Batch: 4, Steps: 2000, Layers: 1, Precision: "fp32"},
	} {
		s := &tuner.Sweep{Device: open(t), Settings: quick()}
		s.Settings.Rounds, s.Settings.MaxRounds = 1, 1
		recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, spec))
		if err != nil {
			t.Fatal(err)
		}
		r := recs[0]
		if r.Status == record.Skipped && *r.ReasonCode == record.ReasonKnob {
			t.Logf("%s: %s", spec, *r.Reason)
			continue
		}
		if r.Status != record.OK || r.Verify.Steps != p.Steps {
			t.Errorf("%s: %s %v %+v", spec, r.Status, r.Reason, r.Verify)
		}
	}
}

// An odd device has programs whose runs report what it says, or fails to compile large schedules.
type odd struct {
	device.Device
	sample func(s *schedule.Schedule, b device.Sample) device.Sample
	room   int // elements of a program's largest matrix; 0: no limit
}

type oddProgram struct {
	device.Program
	schedule *schedule.Schedule
	of       *odd
}

func (d *odd) Evict() error { return nil }

func (d *odd) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	for _, m := range s.Matrices {
		if d.room > 0 && m.Elements() > d.room {
			return nil, fmt.Errorf("%s: %w", m.Name, device.ErrMemory)
		}
	}
	p, err := d.Device.Compile(s, k)
	return &oddProgram{p, s, d}, err
}

func (p *oddProgram) Run(n int) (device.Sample, error) {
	b, err := p.Program.Run(n)
	if p.of.sample != nil {
		b = p.of.sample(p.schedule, b)
	}
	return b, err
}

// TestSweepWaitsForNoneThatIsDone: a technique that gets no more samples does not prolong the rounds of
// the others. Time passes on the device's clock alone.
func TestSweepWaitsForNoneThatIsDone(t *testing.T) {
	var at time.Time
	d := &odd{Device: open(t), sample: func(s *schedule.Schedule, b device.Sample) device.Sample {
		if b.Wall = time.Millisecond; len(s.Nodes) > 500 { // naive
			b.Wall = 200 * time.Millisecond
		}
		at = at.Add(b.Wall)
		return b
	}}
	s := &tuner.Sweep{Device: d, Settings: quick()}
	s.Now = func() time.Time { return at }
	s.Settings.MaxRounds, s.Settings.PointTimeout, s.Settings.TargetCI = 30, 300*time.Millisecond, 0.9
	s.Settings.Warmup = 0 // one run a sample, since each run takes as long as any number of them
	recs, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, "naive", "cudnnstyle:fused=1"))
	if err != nil || len(recs) != 2 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	if n := len(recs[0].Samples.Wall); n >= 6 || recs[0].Stats.Stop != "timeout" {
		t.Fatalf("%d samples of the slow one, stopped by %s", n, recs[0].Stats.Stop)
	}
	if n := len(recs[1].Samples.Wall); n != 6 || recs[1].Stats.Stop != "target_ci" {
		t.Errorf("%d samples, stopped by %s", n, recs[1].Stats.Stop)
	}
}

// TestSweepColdThrottled: a throttled clock gives a warning with cold caches too. Each sample has its clock.
func TestSweepColdThrottled(t *testing.T) {
	for _, cache := range []string{"hot", "cold"} {
		d := &odd{Device: open(t), sample: func(_ *schedule.Schedule, b device.Sample) device.Sample {
			b.Throttled, b.Clock = true, 1.5e9
			return b
		}}
		s := &tuner.Sweep{Device: d, Settings: quick()}
		s.Settings.Cache = cache
		recs, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, "naive"))
		if err != nil || !slices.ContainsFunc(recs[0].Warnings, func(w string) bool { return strings.Contains(w, "throttle") }) {
			t.Errorf("cache %s: warnings %q, %v", cache, recs[0].Warnings, err)
		}
		if s := recs[0].Samples; len(s.Clock) != len(s.Wall) || s.Clock[0] != 1.5e9 {
			t.Errorf("cache %s: clocks %v of %d samples", cache, s.Clock, len(s.Wall))
		}
	}
}

// TestSweepBackstop: if a point did not fit in memory, larger ones of its technique are not tried.
func TestSweepBackstop(t *testing.T) {
	s := &tuner.Sweep{Device: &odd{Device: open(t), room: 1000}, Settings: quick()}
	var points []record.Point
	for _, batch := range []int{1, 100, 200} {
		p := small()
		p.Batch = batch
		points = append(points, p)
	}
	recs, err := sweep(t, s, context.Background(), points, specs(t, "naive"))
	if err != nil || len(recs) != 3 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	if recs[0].Status != record.OK || recs[1].ReasonCode == nil || *recs[1].ReasonCode != record.ReasonOOM ||
		recs[2].ReasonCode == nil || *recs[2].ReasonCode != record.ReasonBackstop || recs[2].Status != record.Skipped {
		t.Errorf("%s, %s %v, %s %v", recs[0].Status, recs[1].Status, recs[1].Reason, recs[2].Status, recs[2].Reason)
	}
}

// TestBackstopKnowsStreams: with another number of streams a point may take less memory, so it is tried.
func TestBackstopKnowsStreams(t *testing.T) {
	s := &tuner.Sweep{Device: &odd{Device: open(t), room: 1000}, Settings: quick()}
	large, more := small(), small()
	large.Batch, more.Batch, more.Streams = 100, 200, 1
	recs, err := sweep(t, s, context.Background(), []record.Point{large, more}, specs(t, "naive"))
	if err != nil || len(recs) != 2 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	for _, r := range recs {
		if r.ReasonCode == nil || *r.ReasonCode != record.ReasonOOM {
			t.Errorf("%v: %s %v", r.Point, r.Status, r.Reason)
		}
	}
}

// BenchmarkDispatch measures what an operation costs besides its work: 10,000
// operations on one element, on one stream.
func BenchmarkDispatch(b *testing.B) {
	d := open(b)
	for _, streams := range []int{1, 4} {
		b.Run(map[int]string{1: "streams=1", 4: "streams=4"}[streams], func(b *testing.B) {
			build := schedule.NewBuilder(streams)
			const ops = 10_000
			for i := range ops {
				m := build.Matrix("m", 1, 1)
				build.Do(i%streams, schedule.Map{Op: cell.Zero, Out: m.All()})
			}
			s, err := build.Schedule()
			if err != nil {
				b.Fatal(err)
			}
			prog, err := d.Compile(s, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer prog.Close()
			var sum time.Duration
			for b.Loop() {
				sample, err := prog.Run(1)
				if err != nil {
					b.Fatal(err)
				}
				sum += sample.Wall
			}
			b.ReportMetric(float64(sum.Nanoseconds())/float64(b.N)/ops, "ns/operation")
		})
	}
}

// A keen device notes what is precompiled and what is compiled.
type keen struct {
	*cpu.Device
	ahead, compiled []*schedule.Schedule
	early           int // precompiled before the first is compiled
	late            int // compiled without being precompiled
}

func (k *keen) Precompile(s *schedule.Schedule, _ knob.Params) { k.ahead = append(k.ahead, s) }

func (k *keen) Compile(s *schedule.Schedule, p knob.Params) (device.Program, error) {
	if len(k.compiled) == 0 {
		k.early = len(k.ahead)
	}
	if k.compiled = append(k.compiled, s); !slices.Contains(k.ahead, s) {
		k.late++
	}
	return k.Device.Compile(s, p)
}

// TestPrecompile: a device that compiles kernels precompiles all programs of the next points before it
// compiles the first, and no program that will not run.
func TestPrecompile(t *testing.T) {
	k := &keen{Device: open(t)}
	var points []record.Point
	for i := range 5 {
		p := small()
		p.Hidden += i
		points = append(points, p)
	}
	recs := 0
	s := &tuner.Sweep{Device: k, Techniques: impl.All(), Settings: quick(), MaxMemory: 1 << 30, Skip: func(key string) bool {
		return strings.Contains(key, "naive") && strings.Contains(key, "H=10")
	}}
	s.Emit = func(*record.Record) error {
		if recs++; recs == 1 && len(k.ahead) != 9 {
			t.Errorf("when the first record is done, %d programs are precompiled, want 9", len(k.ahead))
		}
		return nil
	}
	if _, err := sweep(t, s, context.Background(), points, specs(t, "naive", "cudnnstyle")); err != nil {
		t.Fatal(err)
	}
	if recs != 9 || len(k.compiled) != 9 || k.late != 0 {
		t.Errorf("%d records of %d programs, %d of them not precompiled; want 9, 9 and 0", recs, len(k.compiled), k.late)
	}
}
