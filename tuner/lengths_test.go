package tuner_test

import (
	"context"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// TestStepsOfLengths: a record's lengths have as many steps together as the problem's.
func TestStepsOfLengths(t *testing.T) {
	p := small()
	p.Batch, p.Steps = 9, 40
	for _, l := range []axis.SequenceLengths{"", "uniform:50%", "uniform:75%@7", "uniform:99%@3", "4*1+3*5+2*40"} {
		p.Lengths = l
		problem, err := tuner.Problem(p)
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := l.Steps(p.Batch, p.Steps); !ok || int64(n) != rnn.StepsBeyond(problem, 0) {
			t.Errorf("%v: %g steps, want %d", l, n, rnn.StepsBeyond(problem, 0))
		}
	}
}

// TestLengthsFloor: floors count the bytes of existing steps only. Shrinking batches take more launches.
func TestLengthsFloor(t *testing.T) {
	for name, p := range map[string]record.Point{
		"persistent": {Cell: "lstm", Pass: "train", Input: 256, Hidden: 256, Layers: 1, Batch: 512, Steps: 100, Precision: "fp32"},
		"scan":       {Cell: "mingru", Pass: "train", Input: 128, Hidden: 128, Layers: 2, Batch: 512, Steps: 64, Precision: "fp32"},
	} {
		full := floorOnH200(t, name, p, nil)
		p.Lengths = "uniform:50%"
		half := floorOnH200(t, name, p, nil)
		if full == nil || half == nil || float64(bytesOf(half)) > 0.75*float64(bytesOf(full)) {
			t.Errorf("%s: %+v of half of the steps, %+v of all", name, half, full)
		}
	}
}

// unpacked is a technique that declines lengths.
type unpacked struct{ rnn.Technique }

func (unpacked) Plan(*rnn.Plan, knob.Params) error { return schedule.ErrLengths }

// TestSweepLengths measures sequences with lengths: they are checked, whole or over fewer steps, and rated by the
// existing steps. Techniques that cannot run them say so.
func TestSweepLengths(t *testing.T) {
	for _, budget := range []float64{4e9, 1e5} {
		tuner.SetReferenceFLOPs(t, budget)
		s := &tuner.Sweep{Device: open(t), Settings: quick(), Limits: device.Limits{FLOPS: 1e12}}
		full := small()
		full.Cell, full.Pass, full.Batch, full.Steps, full.Hidden = "lstm", "train", 5, 40, 16
		half := full
		half.Lengths = "2*10+20+2*40" // 120 of 200 steps
		recs, err := sweep(t, s, context.Background(), []record.Point{full, half}, specs(t, "naive", "cudnnstyle", "persistent", "scc"))
		if err != nil {
			t.Fatal(err)
		}
		if len(recs) != 8 {
			t.Fatalf("%d records, want 8", len(recs))
		}
		for i, r := range recs[4:] {
			switch v := r.Verify; {
			case r.Status != record.OK:
				t.Errorf("%v %s: %s", r.Point, r.Impl.Label, *r.Reason)
			case !v.OK || v.Sequences != 5 || (budget < 1e6) != slices.Contains(r.Warnings, record.WarnPart):
				t.Errorf("%v %s: %+v, warnings %v", r.Point, r.Impl.Label, v, r.Warnings)
			}
			if want := recs[i].Work.Flops * 3 / 5; r.Work.Flops != want {
				t.Errorf("%s: %d operations, want %d", r.Impl.Label, r.Work.Flops, want)
			}
		}
		s.Emit, s.Techniques = nil, []rnn.Technique{unpacked{impl.Lookup("naive")}}
		recs, err = sweep(t, s, context.Background(), []record.Point{half}, []grid.Spec{{Name: "naive", Label: "naive"}})
		if err != nil || len(recs) != 1 || recs[0].Status != record.Skipped || *recs[0].ReasonCode != record.ReasonLengths {
			t.Errorf("what declines lengths: %v %v", recs, err)
		}
	}
}
