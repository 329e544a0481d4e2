package quantity

import (
	"math"
	"testing"

	"rnnbench/record"
	"rnnbench/rnn/axis"
)

// TestStepOfLayers: the time of a cell step is that of a run over the steps of all layers, twice as many
// where layers run both ways.
func TestStepOfLayers(t *testing.T) {
	m, err := MeasureOf("step")
	if err != nil {
		t.Fatal(err)
	}
	r := timed("naive", 1, 6, 5, 7)
	r.Point.Layers, r.Point.Steps = 3, 10
	for direction, want := range map[axis.Direction]float64{"": 0.2, "both": 0.1} {
		r.Point.Direction = direction
		if v, ok := m.Of(r, nil); !ok || math.Abs(v.Value-want) > 1e-12 || math.Abs(v.Lo-want*5/6) > 1e-12 {
			t.Errorf("%v: %v, want %v", direction, v, want)
		}
	}
}

// TestBaselineIsTheFastest: of several settings of a technique, the baseline at a point is the fastest.
func TestBaselineIsTheFastest(t *testing.T) {
	var recs []record.Record
	for i, seconds := range []float64{2, 1, 3} {
		r := timed("naive", 1, seconds, 0, 0)
		r.Impl.Label = []string{"naive:a=1", "naive:a=2", "naive:a=3"}[i]
		recs = append(recs, *r)
	}
	if b := NewBaseline(recs, "naive").For(&recs[0]); b == nil || b.Seconds() != 1 {
		t.Errorf("the baseline takes %v", b)
	}
	if b := NewBaseline(recs, "naive:a=3").For(&recs[0]); b == nil || b.Seconds() != 3 {
		t.Errorf("the baseline of one setting takes %v", b)
	}
}

// TestClear: a lead is clear from 1 % on, if the intervals do not overlap.
func TestClear(t *testing.T) {
	first := timed("a", 1, 1, 0.999, 1.001)
	for _, c := range []struct {
		name string
		next *record.Record
		want bool
	}{
		{"1 % behind", timed("b", 1, 1.01, 1.009, 1.011), true},
		{"less than 1 % behind", timed("b", 1, 1.005, 1.004, 1.006), false},
		{"overlapping", timed("b", 1, 1.1, 1.0, 1.2), false},
		{"the faster one", timed("b", 1, 0.9, 0.89, 0.91), false},
		{"without an interval", timed("b", 1, 2, 0, 0), false},
	} {
		if got := Clear(first, c.next); got != c.want {
			t.Errorf("%s: clear is %t", c.name, got)
		}
	}
}
