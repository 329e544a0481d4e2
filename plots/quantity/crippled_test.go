package quantity

import (
	"strings"
	"testing"

	"rnnbench/results"
	knobs "rnnbench/rnn/knob"
)

// TestCrippled: a rival is said to be crippled if it is far below the peak, naive or its own single
// thread at a large point. A plausible rival is not, nor is one at a small point.
func TestCrippled(t *testing.T) {
	record := func(name string, single, batch int, seconds, percent float64) *results.Record {
		peak, work := 2e11, int64(2e9)
		r := &results.Record{
			Point: results.Point{Cell: "lstm", Hidden: 512, Batch: batch, Steps: 20, Layers: 1}, Impl: results.Impl{Name: name, Label: name, Knobs: knobs.Params{}},
			Status: results.OK, Work: results.Work{Flops: work}, Stats: &results.Stats{Median: seconds},
			Rate: &results.Rate{Flops: percent / 100 * peak, Peak: &peak, Percent: &percent},
		}
		if name == "pytorch" {
			r.Rival = &results.Rival{Name: name}
			if single > 0 {
				r.Impl.Knobs["single"], r.Impl.Label = single, "pytorch:single=1"
			}
		}
		return r
	}
	naive := record("naive", 0, 64, 0.1, 10)
	for _, c := range []struct {
		recs []*results.Record
		want []string
	}{
		{[]*results.Record{naive, record("pytorch", 0, 64, 0.05, 20)}, nil},
		{[]*results.Record{record("pytorch", 0, 64, 0.05, 20), record("pytorch", 1, 64, 0.04, 25)}, nil},
		{[]*results.Record{record("pytorch", 0, 1, 5, 0.2), record("naive", 0, 1, 0.1, 10)}, nil}, // one sequence
		{[]*results.Record{naive, record("pytorch", 0, 64, 5, 0.2)}, []string{"pytorch looks crippled at ", "0.2 % of the peak of 200 GFLOP/s", "naive is 50 times as fast", "BLAS"}},
		{[]*results.Record{record("pytorch", 0, 64, 0.28, 4), record("pytorch", 1, 64, 0.05, 20)}, []string{"one thread (single=1) is 5.6 times as fast"}},
	} {
		got := Crippled(c.recs)
		if (len(got) > 0) != (len(c.want) > 0) || len(got) > 1 {
			t.Errorf("%q, want %q", got, c.want)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(got[0], w) {
				t.Errorf("%q is missing from %q", w, got[0])
			}
		}
	}
}
