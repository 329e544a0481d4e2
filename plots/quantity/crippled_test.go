package quantity

import (
	"strings"
	"testing"

	"rnnbench/record"
	knobs "rnnbench/rnn/knob"
)

// TestCrippled: a rival is said to be crippled if naive, any technique or its own single thread is far
// faster at a large point. A plausible rival is not, nor is one at a small point.
func TestCrippled(t *testing.T) {
	newRecord := func(name string, single, batch int, seconds float64) *record.Record {
		r := &record.Record{
			Point: record.Point{Cell: "lstm", Hidden: 512, Batch: batch, Steps: 20, Layers: 1}, Impl: record.Impl{Name: name, Label: name, Knobs: knobs.Params{}},
			Status: record.OK, Work: record.Work{Flops: 2e9}, Stats: &record.Stats{Median: seconds},
		}
		if name == "pytorch" {
			r.Rival = &record.Rival{Name: name}
			if single > 0 {
				r.Impl.Knobs["single"], r.Impl.Label = single, "pytorch:single=1"
			}
		}
		return r
	}
	form := func(r *record.Record) *record.Record { // another one of the rival
		r.Impl.Label, r.Impl.Knobs["graph"] = "pytorch graph=1", 1
		return r
	}
	plain := func(r *record.Record) *record.Record { r.Rival.Version = "1.13.0 (generic BLAS)"; return r }
	onGPU := func(r *record.Record) *record.Record { r.Device = "cuda-nvidia-h200"; return r }
	naive := newRecord("naive", 0, 64, 0.1)
	for _, c := range []struct {
		recs []*record.Record
		want []string
	}{
		{[]*record.Record{naive, newRecord("pytorch", 0, 64, 0.05)}, nil},
		{[]*record.Record{newRecord("pytorch", 0, 64, 0.05), newRecord("pytorch", 1, 64, 0.04)}, nil},
		{[]*record.Record{newRecord("pytorch", 0, 1, 5), newRecord("naive", 0, 1, 0.1)}, nil}, // one sequence
		{[]*record.Record{naive, newRecord("pytorch", 0, 64, 5)}, []string{"pytorch may be set up badly: at ", "naive is 50 times as fast", "BLAS"}},
		{[]*record.Record{newRecord("scan", 0, 64, 0.04), newRecord("persistent", 0, 64, 0.01), newRecord("pytorch", 0, 64, 5)}, []string{", persistent is 500 times as fast. Check"}},
		{[]*record.Record{newRecord("persistent", 0, 64, 0.1), newRecord("pytorch", 0, 64, 5)}, nil},
		{[]*record.Record{newRecord("pytorch", 0, 64, 0.28), newRecord("pytorch", 1, 64, 0.05)}, []string{"one thread (single=1) is 5.6 times as fast"}},
		{[]*record.Record{newRecord("persistent", 0, 64, 0.01), newRecord("pytorch", 0, 64, 5), form(newRecord("pytorch", 0, 64, 0.5))}, nil},
		{[]*record.Record{newRecord("persistent", 0, 64, 0.01), newRecord("pytorch", 0, 64, 5), form(newRecord("pytorch", 0, 64, 4))}, []string{"pytorch graph=1 may be set up badly"}},
		{[]*record.Record{plain(newRecord("pytorch", 0, 1, 0.05)), plain(newRecord("pytorch", 1, 1, 0.05))}, []string{"pytorch may be set up badly: its version 1.13.0 (generic BLAS) multiplies slowly", "OpenBLAS"}},
		{[]*record.Record{naive, plain(newRecord("pytorch", 0, 64, 5))}, []string{"generic BLAS"}}, // one sentence
		{[]*record.Record{onGPU(plain(newRecord("pytorch", 0, 64, 0.05)))}, nil},
		{[]*record.Record{onGPU(newRecord("persistent", 0, 64, 0.01)), onGPU(newRecord("pytorch", 0, 64, 5))}, []string{"500 times as fast. Check its installation."}},
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
