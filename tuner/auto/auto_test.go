package auto_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

func point(cell string, hidden, batch, steps int, precision string) record.Point {
	return record.Point{Cell: cell, Pass: "forward", Hidden: hidden, Input: hidden, Batch: batch, Steps: steps, Layers: 1, Precision: precision}
}

// oracle decides for d, without wisdom.
func oracle(d device.Device) *auto.Oracle {
	return &auto.Oracle{
		Device: d, Info: d.Info(), Techniques: impl.Own(), Allowed: func(string) bool { return true }, Cache: "hot",
		Read: func() (*wisdom.Book, error) { return &wisdom.Book{}, nil },
	}
}

func h200(t *testing.T) device.Device {
	t.Helper()
	d, err := cuda.Machine("h200")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestPredicted: on a GPU the cost model decides, and its choice can run.
func TestPredicted(t *testing.T) {
	d := h200(t)
	o := oracle(d)
	for _, c := range []struct {
		point record.Point
		want  string
	}{
		{point("rnn-relu", 96, 70, 100, "fp32"), "persistent:graph=1"}, // launched step by step, products took 124 times as long
		{point("lstm", 1792, 5, 100, "bf16"), "persistent:graph=1"},
		{point("lstm", 6000, 400, 50, "fp32"), "cudnnstyle:graph=1"}, // products of so many sequences read the weights once
		{point("sru", 512, 16, 500, "bf16"), "scan:graph=1"},
	} {
		s, err := o.Decide(c.point, grid.Spec{Name: auto.Name, Label: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		x := s.Choice
		if x == nil || x.Impl != c.want && x.Impl+":graph=1" != c.want || x.Match != auto.Predicted || x.By != auto.Name || s.Label != "mine" {
			t.Fatalf("%v: %s, %+v; want %s", c.point, s, x, c.want)
		}
		if x.Expected == nil || x.Expected.Seconds <= 0 || x.Expected.Error <= 0 || x.Expected.Margin < 0 || x.Expected.RunnerUp == "" || strings.HasPrefix(x.Expected.RunnerUp, s.Name) {
			t.Errorf("%v: the prediction is %+v", c.point, x)
		}
		if l, err := tuner.LayOut(d, impl.Own(), c.point, s); err != nil || l.Reason != "" {
			t.Errorf("%v: the choice declines: %v, %v", c.point, l.Reason, err)
		}
		again, err := o.Decide(c.point, s)
		if err != nil || again.Choice != x {
			t.Errorf("a choice was made again: %+v, %v", again, err)
		}
	}
	deep := point("gru", 176, 52, 68, "fp32")
	deep.Pass, deep.Layers = "train", 2
	if s, err := o.Decide(deep, grid.Spec{Name: auto.Name}); err != nil || s.Name != "persistent" || s.Knobs["streams"] != 2 || s.Knobs["inputbatch"] != 68 {
		t.Errorf("a training run's weight gradients run beside no layer: %s, %v", s, err) // measured: 541 µs for 577
	}
	if _, err := o.Decide(point("lstm", 8, 1, 2, "fp32"), grid.Spec{Name: auto.Name, Knobs: knob.Params{"graph": 1}}); err == nil {
		t.Error("auto took a setting")
	}
}

// TestSteadyWeights: where weights stay from run to run, techniques that could pack them ahead are
// predicted to do so. Packing in each run takes longer than one step.
func TestSteadyWeights(t *testing.T) {
	generic := simd.Generic
	d, err := cpu.Open(cpu.Options{Threads: 1, Level: &generic})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, steady := range []bool{false, true} {
		o := oracle(d)
		o.Steady = steady
		s, err := o.Decide(point("lstm", 64, 1, 1, "fp32"), grid.Spec{Name: auto.Name})
		if ahead := s.Knobs["transposed"] == 2; err != nil || ahead != steady {
			t.Errorf("steady %v: %s, %v", steady, s, err)
		}
	}
	o := oracle(d)
	o.Steady = true
	train := point("lstm", 64, 1, 1, "fp32")
	train.Pass = "train"
	if s, err := o.Decide(train, grid.Spec{Name: auto.Name}); err != nil || s.Knobs["transposed"] != 0 {
		t.Errorf("training changes weights: %s, %v", s, err)
	}
}

// TestPredictedOnCPU: on a processor the cost model decides as well, and its choice can run.
func TestPredictedOnCPU(t *testing.T) {
	generic := simd.Generic
	d, err := cpu.Open(cpu.Options{Threads: 1, Level: &generic})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	train := point("gru", 40, 3, 6, "bf16")
	train.Pass, train.Layers = "train", 2
	for _, c := range []struct {
		point record.Point
		want  string // "": any
	}{
		{point("lstm", 34, 2, 18, "fp32"), ""},
		{point("sru", 81, 9, 37, "bf16"), "persistent"}, // scc took 1.3 times as long: its maps go through memory
		{point("lstm", 16, 2, 1, "fp32"), ""},
		{point("gilr", 130, 20, 9, "fp32"), ""},
		{train, ""},
	} {
		s, err := oracle(d).Decide(c.point, grid.Spec{Name: auto.Name})
		if err != nil || s.Choice == nil || s.Choice.Match != auto.Predicted || c.want != "" && s.Name != c.want {
			t.Fatalf("%v: %s, %+v, %v; want %s", c.point, s, s.Choice, err, c.want)
		}
		if x := s.Choice.Expected; x == nil || x.Seconds <= 0 || x.Error <= 0 || x.Margin < 0 || x.RunnerUp == "" {
			t.Errorf("%v: the prediction is %+v", c.point, x)
		}
		l, err := tuner.LayOut(d, impl.Own(), c.point, s)
		if err != nil || l.Reason != "" {
			t.Fatalf("%v: the choice declines: %v, %v", c.point, l.Reason, err)
		}
		p, err := d.Compile(l.Schedule, l.DeviceKnobs)
		if err != nil {
			t.Fatalf("%v: the choice does not compile: %v", c.point, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A clairvoyant device predicts times by the number of a schedule's operations.
type clairvoyant struct {
	device.Device
	seconds func(*schedule.Schedule) float64
	err     error
}

func (c clairvoyant) Predict(s *schedule.Schedule, _ knob.Params) (device.Prediction, error) {
	return device.Prediction{Seconds: c.seconds(s), Error: 0.1}, c.err
}

func openCPU(t *testing.T) device.Device {
	t.Helper()
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestCheapest: auto takes the least predicted time, whatever the technique.
func TestCheapest(t *testing.T) {
	d := openCPU(t)
	p := point("lstm", 16, 2, 5, "fp32")
	nodes := func(s *schedule.Schedule) float64 { return float64(len(s.Nodes)) }
	few, err := oracle(clairvoyant{Device: d, seconds: nodes}).Decide(p, grid.Spec{Name: auto.Name})
	if err != nil || few.Name != "persistent" || few.Choice.Match != auto.Predicted {
		t.Errorf("of the fewest operations: %s, %v", few, err)
	}
	many, err := oracle(clairvoyant{Device: d, seconds: func(s *schedule.Schedule) float64 { return 1 / nodes(s) }}).Decide(p, grid.Spec{Name: auto.Name})
	if err != nil || many.Name == "persistent" {
		t.Errorf("of the most operations: %s, %v", many, err)
	}
	none, err := oracle(clairvoyant{Device: d, seconds: func(*schedule.Schedule) float64 { return 0 }}).Decide(p, grid.Spec{Name: auto.Name})
	if err != nil || none.Choice.Match != auto.Default || none.Name != "persistent" {
		t.Errorf("of a device that knows nothing: %s, %v", none, err)
	}
	broken := errors.New("broken")
	if _, err := oracle(clairvoyant{Device: d, seconds: nodes, err: broken}).Decide(p, grid.Spec{Name: auto.Name}); !errors.Is(err, broken) {
		t.Errorf("of a broken device: %v", err)
	}
	if s, err := oracle(clairvoyant{Device: d, seconds: nodes, err: schedule.ErrUnsupported}).Decide(p, grid.Spec{Name: auto.Name}); err != nil || s.Choice.Match != auto.Default {
		t.Errorf("of a device whose model declines: %v, %v", s, err)
	}
}

// TestRace: contenders with near predictions race, and the winner's entry counts only at its own point.
func TestRace(t *testing.T) {
	d := openCPU(t)
	p := point("lstm", 16, 2, 5, "fp32")
	path := filepath.Join(t.TempDir(), "w.toml")
	o := oracle(clairvoyant{Device: d, seconds: func(*schedule.Schedule) float64 { return 1 }})
	raced := 0
	o.Race = func(p record.Point, specs []grid.Spec) []float64 {
		raced = len(specs)
		return o.Measure(context.Background(), path, p, specs)
	}
	s, err := o.Decide(p, grid.Spec{Name: auto.Name})
	if err != nil || raced < 2 || s.Choice.Match != auto.Raced || s.Choice.Expected.RunnerUp == "" || s.Choice.Expected.Margin < 0 {
		t.Fatalf("%d raced: %s %+v, %v", raced, s, s.Choice, err)
	}
	b, err := wisdom.Read(path)
	if err != nil || len(b.Entries) != 1 || b.Entries[0].By != wisdom.ByRace || b.Entries[0].Impl != s.Name || b.Entries[0].Tried != raced || time.Since(b.Entries[0].Time).Abs() > time.Hour {
		t.Fatalf("%+v, %v", b, err)
	}
	next := oracle(d)
	next.Read = func() (*wisdom.Book, error) { return b, nil }
	if s, err := next.Decide(p, grid.Spec{Name: auto.Name}); err != nil || s.Choice.Match != wisdom.Exact || !strings.Contains(s.Choice.Why, "in a short race") {
		t.Errorf("at the same point: %+v, %v", s.Choice, err)
	}
	p.Hidden, p.Input = 18, 18
	if s, err := next.Decide(p, grid.Spec{Name: auto.Name}); err != nil || s.Choice.Match != auto.Predicted {
		t.Errorf("at another point: %+v, %v", s.Choice, err)
	}
	o.Race = func(_ record.Point, specs []grid.Spec) []float64 { return make([]float64, len(specs)) }
	if s, err := o.Decide(p, grid.Spec{Name: auto.Name}); err != nil || s.Choice.Match != auto.Predicted {
		t.Errorf("of a race that nobody ended: %+v, %v", s.Choice, err)
	}
}

// TestUsual covers devices without a model.
func TestUsual(t *testing.T) {
	for cell, want := range map[string]string{"lstm": "persistent cudnnstyle", "sru": "scan cudnnstyle", "ls-lstm": "scan persistent cudnnstyle"} {
		if got := strings.Join(auto.Usual("cpu-any-1t", point(cell, 64, 2, 9, "fp32")), " "); got != want {
			t.Errorf("%s: %s", cell, got)
		}
	}
	if got := auto.Usual("cpu-any-1t", point("lstm", 64, 2, 1, "fp32")); !slices.Equal(got, []string{"cudnnstyle"}) {
		t.Errorf("one step: %s", got)
	}
}

// TestTell: each ground of choices is mentioned once.
func TestTell(t *testing.T) {
	of := func(name, match, why string) grid.Spec {
		return grid.Spec{Name: name, Choice: &record.Choice{Match: match, Why: why}}
	}
	notes, warnings := auto.Tell([]grid.Spec{
		{Name: "naive"}, of("scan", wisdom.Exact, "the fastest"), of("scan", wisdom.Nearest, "the fastest; stale: driver 1, now 2"),
		of("persistent", auto.Predicted, "predicted to take 1 ms"), of("persistent", auto.Predicted, "predicted to take 2 ms"),
		of("scan", auto.Raced, "the fastest of 2 in a short race"), of("cudnnstyle", auto.Default, "no tuned entry"),
	})
	for _, want := range []string{"tuned entries for 1 point", "nearest tuned entries for 1 point", "short races at 1 point", "auto uses persistent at 2 points: predicted to take 1 ms"} {
		if !slices.ContainsFunc(notes, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q is missing from %q", want, notes)
		}
	}
	if len(warnings) != 2 || !strings.Contains(warnings[0], "cudnnstyle at 1 point: no tuned entry; rnnbench tune") || !strings.Contains(warnings[1], "driver 1, now 2") {
		t.Errorf("warnings are %q", warnings)
	}
	if notes, warnings := auto.Tell([]grid.Spec{{Name: "naive"}}); len(notes)+len(warnings) > 0 {
		t.Errorf("of nothing: %q, %q", notes, warnings)
	}
}
