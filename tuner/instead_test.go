package tuner_test

import (
	"context"
	"strings"
	"testing"

	"rnnbench/cells"
	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// A promised device predicts that any schedule takes as long.
type promised struct {
	device.Device
	seconds float64
}

func (f promised) Predict(*schedule.Schedule, knob.Params) (device.Prediction, error) {
	return device.Prediction{Seconds: f.seconds, Error: 0.1}, nil
}

// TestInstead: what auto chose instead of an iterative technique runs where that does not converge, or takes
// more iterations and is then predicted to be slower. The reason says so. A resumed run knows it.
func TestInstead(t *testing.T) {
	c, err := cells.Load("gru-diag")
	if err != nil {
		t.Fatal(err)
	}
	p := small()
	p.Cell, p.Pass, p.Input, p.Steps, p.Layers, p.Output = c.Name, "forward", p.Hidden, 500, 1, 0
	for _, x := range []struct {
		gain      int
		predicted float64 // of newton, once its iterations are known
		runs, why string
	}{
		{100, 1, "newton", "predicted to take 1 ms; the answer took 3"},
		{100, 3, "persistent", "newton took 3 iterations, with which it is predicted to take 3.00 s, so this runs instead: predicted to take 2 s"},
		{1600, 1, "persistent", "newton has not converged in 32 iterations, so this runs instead: predicted to take 2 s"},
	} {
		p.Gain = x.gain
		instead := grid.Spec{Name: "persistent", Label: "auto", Choice: &record.Choice{By: "auto", Impl: "persistent", Why: "predicted to take 2 s", Expected: &record.Expected{Seconds: 2}}}
		spec := grid.Spec{Name: "newton", Label: "auto", Choice: &record.Choice{By: "auto", Impl: "newton", Why: "predicted to take 1 ms", Expected: &record.Expected{Seconds: 1e-3}}, Instead: &instead}
		s := &tuner.Sweep{Device: promised{open(t), x.predicted}, Settings: quick()}
		recs, err := sweep(t, s, context.Background(), []record.Point{p}, []grid.Spec{spec})
		if err != nil || len(recs) != 1 {
			t.Fatalf("%d records, %v", len(recs), err)
		}
		r := recs[0]
		if r.Status != record.OK || r.Stats == nil || !r.Verify.OK || r.Impl.Name != x.runs || r.Impl.Label != "auto" || r.Impl.Choice.Impl != x.runs || r.Impl.Choice.Why != x.why {
			t.Errorf("gain %d: %s of %s, %+v", x.gain, r.Status, r.Impl.Name, r.Impl.Choice)
		}
		if strings.Contains(spec.Choice.Why+instead.Choice.Why, "iterations") {
			t.Error("the choice of other points changed")
		}
		s = &tuner.Sweep{Device: promised{open(t), x.predicted}, Settings: quick(), Skip: func(key string) bool { return key == r.Key() }}
		if again, err := sweep(t, s, context.Background(), []record.Point{p}, []grid.Spec{spec}); err != nil || len(again) > 0 {
			t.Errorf("gain %d: measured again: %v, %v", x.gain, again, err)
		}
	}
}
