package quantity

import (
	"strings"
	"testing"

	"rnnbench/record"
	knobs "rnnbench/rnn/knob"
)

// TestCrippled: a rival is said to be crippled if it is far below the peak, naive or its own single
// thread at a large point. A plausible rival is not, nor is one at a small point.
func TestCrippled(t *testing.T) {
	newRecord := func(name string, single, batch int, seconds, percent float64) *record.Record {
		peak, work := 2e11, int64(2e9)
		r := &record.Record{
			Point: record.Point{Cell: "lstm", Hidden: 512, Batch: batch, Steps: 20, Layers: 1}, Impl: record.Impl{Name: name, Label: name, Knobs: knobs.Params{}},
			Status: record.OK, Work: record.Work{Flops: work}, Stats: &record.Stats{Median: seconds},
			Rate: &record.Rate{Flops: percent / 100 * peak, Peak: &peak, Percent: &percent},
		}
		if name == "pytorch" {
			r.Rival = &record.Rival{Name: name}
			if single > 0 {
				r.Impl.Knobs["single"], r.Impl.Label = single, "pytorch:single=1"
			}
		}
		return r
	}
	naive := newRecord("naive", 0, 64, 0.1, 10)
	for _, c := range []struct {
		recs []*record.Record
		want []string
	}{
		{[]*record.Record{naive, newRecord("pytorch", 0, 64, 0.05, 20)}, nil},
		{[]*record.Record{newRecord("pytorch", 0, 64, 0.05, 20), newRecord("pytorch", 1, 64, 0.04, 25)}, nil},
		{[]*record.Record{newRecord("pytorch", 0, 1, 5, 0.2), newRecord("naive", 0, 1, 0.1, 10)}, nil}, // one sequence
		{[]*record.Record{naive, newRecord("pytorch", 0, 64, 5, 0.2)}, []string{"pytorch looks crippled at ", "0.2 % of the peak of 200 GFLOP/s", "naive is 50 times as fast", "BLAS"}},
		{[]*record.Record{newRecord("pytorch", 0, 64, 0.28, 4), newRecord("pytorch", 1, 64, 0.05, 20)}, []string{"one thread (single=1) is 5.6 times as fast"}},
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
