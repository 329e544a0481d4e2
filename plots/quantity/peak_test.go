package quantity

import (
	"testing"

	"rnnbench/results"
)

// TestShareOfOwnPeak: a GPU's record in 16 bits has a share of its own precision's peak, never of
// single precision's.
func TestShareOfOwnPeak(t *testing.T) {
	m, err := MeasureOf("percent")
	if err != nil {
		t.Fatal(err)
	}
	record := func(precision, source string) *results.Record {
		r := &results.Record{Device: "cuda-h200-132sm", Status: results.OK, Point: results.Point{Precision: precision},
			Work: results.Work{Flops: 100}, Stats: &results.Stats{Min: 1, Median: 1, Max: 1}, Rate: &results.Rate{Flops: 100}}
		r.Rate.SetPeak(400, source)
		return r
	}
	single, old, own := record("fp32", results.PeakMultiplyAdds), record("bf16", results.PeakMultiplyAdds), record("bf16", results.PeakProducts)
	for _, c := range []struct {
		record *results.Record
		want   float64
		known  bool
	}{{single, 25, true}, {old, 0, false}, {own, 25, true}} {
		if v, ok := m.Of(c.record, nil); ok != c.known || v.Value != c.want {
			t.Errorf("%s with a peak of %q: %g %%, known %t, want %g %%, known %t", c.record.Point.Precision, c.record.Rate.Source, v.Value, ok, c.want, c.known)
		}
	}
	if p := Peak([]*results.Record{single, own}); p != 0 {
		t.Errorf("fp32 and bf16 share a peak of %g", p)
	}
	if p := SinglePeak([]*results.Record{own, old}); p != 400 {
		t.Errorf("the peak of single precision is %g, want 400", p)
	}
}
