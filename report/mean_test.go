package report

import (
	"strings"
	"testing"

	"rnnbench/record"
)

// TestGeometricMean: the summary says how many times as fast as the baseline the fastest is. At one point
// that is 8 times and at the other 2 times, which is 4 times by the geometric mean.
func TestGeometricMean(t *testing.T) {
	recs := grid(1, 2, 1, 1)[:4]
	recs = append(recs, recs[3])
	recs[4].Impl.Name, recs[4].Impl.Label, recs[4].Seq = "cudnnstyle", "cudnnstyle", 4
	recs = []record.Record{recs[0], recs[1], recs[3], recs[4]}
	for i, seconds := range []float64{8e-3, 1e-3, 6e-3, 3e-3} { // naive and cudnnstyle at two points
		lo, hi := 0.99*seconds, 1.01*seconds
		recs[i].Stats = &record.Stats{N: 10, Min: lo, Q1: lo, Median: seconds, Q3: hi, Max: hi, Mean: seconds, Lo: &lo, Hi: &hi, Level: 0.95}
	}
	text := pageOf(t, []record.Set{set("run", recs)}, recs)
	for _, want := range []string{"Fastest: cudnnstyle at 2.", "The fastest is 4.00× as fast as naive (geometric mean over 2 points)."} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
