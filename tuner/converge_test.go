package tuner_test

import (
	"context"
	"strings"
	"testing"

	"rnnbench/cells"
	"rnnbench/record"
	"rnnbench/tuner"
)

// TestConverges: by default Newton's method gets as many iterations as its answer takes. With too few it has
// not converged, which is no wrong answer, and is not timed.
func TestConverges(t *testing.T) {
	c, err := cells.Load("gru-diag")
	if err != nil {
		t.Fatal(err)
	}
	p := small()
	p.Cell, p.Pass, p.Steps, p.Layers, p.Output = c.Name, "train", 200, 1, 0
	s := &tuner.Sweep{Device: open(t), Settings: quick()}
	recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, "newton", "few=newton:iterations=2"))
	if err != nil {
		t.Fatal(err)
	}
	whole, few := &recs[0], &recs[1]
	if whole.Impl.Label == "few" {
		whole, few = few, whole
	}
	if whole.Status != record.OK || whole.Verify.Iterations != 3 || whole.Verify.Residual > whole.Verify.Tolerance || whole.Impl.Knobs["iterations"] != 0 {
		t.Errorf("by default it is %s: %+v, knobs %v", whole.Status, whole.Verify, whole.Impl.Knobs)
	}
	if few.Status != record.NotConverged || few.Stats != nil || few.Verify.Iterations != 2 || few.Verify.Residual < few.Verify.Tolerance/10 {
		t.Errorf("two iterations: %s, %+v", few.Status, few.Verify)
	}
	if few.Reason == nil || !strings.Contains(*few.Reason, "after 2 iterations") {
		t.Errorf("the reason is %v", few.Reason)
	}
}

// TestConvergesOrSays: where recurrent weights are so large that Newton's method does not converge, it says so.
// With smaller ones its answer is right. It is never taken for a mistake, even where a right answer overflows.
func TestConvergesOrSays(t *testing.T) {
	c, err := cells.Load("gru-diag")
	if err != nil {
		t.Fatal(err)
	}
	p := small()
	p.Cell, p.Input, p.Steps, p.Layers, p.Output = c.Name, p.Hidden, 500, 1, 0
	var points []record.Point
	for _, p.Gain = range []int{25, 400, 1600} {
		for _, p.Pass = range []string{"forward", "train"} {
			points = append(points, p)
		}
	}
	p.Hidden, p.Input, p.Batch = 2, 2, 2 // its gradient overflows
	s := &tuner.Sweep{Device: open(t), Settings: quick()}
	recs, err := sweep(t, s, context.Background(), append(points, p), specs(t, "newton"))
	if err != nil || len(recs) != len(points)+1 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	for _, r := range recs {
		want, least, most := record.OK, 2, 8
		if r.Point.Gain == 1600 {
			want, least, most = record.NotConverged, 32, 32
		}
		if n := r.Verify.Iterations; r.Status != want || n < least || n > most {
			t.Errorf("%v: %s, %+v", r.Point, r.Status, r.Verify)
		}
	}
}
