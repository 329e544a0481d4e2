package quantity

import (
	"testing"

	"rnnbench/record"
)

// TestShareOfOwnPeak: a GPU's record in 16 bits has a share of its own precision's peak, never of
// single precision's.
func TestShareOfOwnPeak(t *testing.T) {
	m, err := MeasureOf("percent")
	if err != nil {
		t.Fatal(err)
	}
	newRecord := func(precision, source string) *record.Record {
		r := &record.Record{Device: "cuda-h200-132sm", Status: record.OK, Point: record.Point{Precision: precision},
			Work: record.Work{Flops: 100}, Stats: &record.Stats{Min: 1, Median: 1, Max: 1}, Rate: &record.Rate{Flops: 100}}
		r.Rate.SetPeak(400, source)
		return r
	}
	single, old, own := newRecord("fp32", record.PeakMultiplyAdds), newRecord("bf16", record.PeakMultiplyAdds), newRecord("bf16", record.PeakProducts)
	for _, c := range []struct {
		record *record.Record
		want   float64
		known  bool
	}{{single, 25, true}, {old, 0, false}, {own, 25, true}} {
		if v, ok := m.Of(c.record, nil); ok != c.known || v.Value != c.want {
			t.Errorf("%s with a peak of %q: %g %%, known %t, want %g %%, known %t", c.record.Point.Precision, c.record.Rate.Source, v.Value, ok, c.want, c.known)
		}
	}
	if p := Peak([]*record.Record{single, own}); p != 0 {
		t.Errorf("fp32 and bf16 share a peak of %g", p)
	}
	if p := SinglePeak([]*record.Record{own, old}); p != 400 {
		t.Errorf("the peak of single precision is %g, want 400", p)
	}
}
