package tuner_test

import (
	"context"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/tuner"
)

// TestSweepResets measures sequences with resets: they are checked, whole or over fewer steps. Techniques without resets
// say so.
func TestSweepResets(t *testing.T) {
	for _, budget := range []float64{4e9, 1e5} {
		tuner.SetReferenceFLOPs(t, budget)
		s := &tuner.Sweep{Device: open(t), Settings: quick(), Limits: device.Limits{FLOPS: 1e12}}
		p := small()
		p.Cell, p.Pass, p.Batch, p.Steps, p.Hidden, p.Resets = "gru", "train", 9, 40, 16, 10
		recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, "naive", "cudnnstyle", "persistent", "scc"))
		if err != nil {
			t.Fatal(err)
		}
		if len(recs) != 4 {
			t.Fatalf("%d records, want 4", len(recs))
		}
		for _, r := range recs {
			switch v := r.Verify; {
			case r.Impl.Name == "scc":
				if r.Status != record.Skipped || *r.ReasonCode != record.ReasonResets {
					t.Errorf("scc: %s %v", r.Status, r.ReasonCode)
				}
			case r.Status != record.OK:
				t.Errorf("%v %s: %s", r.Point, r.Impl.Label, *r.Reason)
			case !v.OK || (budget < 1e6) != slices.Contains(r.Warnings, record.WarnPart):
				t.Errorf("%v %s: %+v, warnings %v", r.Point, r.Impl.Label, v, r.Warnings)
			}
		}
	}
}
