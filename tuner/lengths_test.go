package tuner_test

import (
	"context"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/results"
	"rnnbench/tuner"
)

// TestSweepLengths measures sequences with lengths of their own: they are checked, whole or by fewer steps, and
// rated by the steps that exist. What runs full sequences alone says so.
func TestSweepLengths(t *testing.T) {
	for _, budget := range []float64{4e9, 1e5} {
		tuner.SetReferenceFLOPs(t, budget)
		s := &tuner.Sweep{Device: open(t), Settings: quick(), Limits: device.Limits{FLOPS: 1e12}}
		full := small()
		full.Cell, full.Pass, full.Batch, full.Steps, full.Hidden = "lstm", "train", 5, 40, 16
		half := full
		half.Lengths = "2*10+20+2*40" // 120 of 200 steps
		recs, err := sweep(t, s, context.Background(), []results.Point{full, half}, specs(t, "naive", "cudnnstyle", "persistent", "scc"))
		if err != nil {
			t.Fatal(err)
		}
		if len(recs) != 8 {
			t.Fatalf("%d records, want 8", len(recs))
		}
		for i, r := range recs[4:] {
			switch v := r.Verify; {
			case r.Impl.Name == "scc":
				if r.Status != results.Skipped || *r.ReasonCode != results.ReasonLengths {
					t.Errorf("scc: %s %v", r.Status, r.ReasonCode)
				}
			case r.Status != results.OK:
				t.Errorf("%v %s: %s", r.Point, r.Impl.Label, *r.Reason)
			case !v.OK || v.Sequences != 5 || (budget < 1e6) != slices.Contains(r.Warnings, results.WarnPart):
				t.Errorf("%v %s: %+v, warnings %v", r.Point, r.Impl.Label, v, r.Warnings)
			}
			if want := recs[i].Work.Flops * 3 / 5; r.Work.Flops != want {
				t.Errorf("%s: %d operations, want %d", r.Impl.Label, r.Work.Flops, want)
			}
		}
	}
}
