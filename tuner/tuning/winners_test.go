package tuning

import (
	"testing"

	"rnnbench/results"
	"rnnbench/tuner"
	"rnnbench/tuner/search"
)

// TestNoise says how many winners are clear.
func TestNoise(t *testing.T) {
	w := &Winners{}
	for _, v := range [][2]float64{{-0.1, 0.3}, {0.1, 0.3}} {
		var recs []*results.Record
		for i, name := range []string{"naive", "cudnnstyle"} {
			recs = append(recs, &results.Record{
				Point: results.Point{Hidden: 8}, Impl: results.Impl{Name: name}, Status: results.OK, Warnings: []string{results.WarnNoisy},
				Stats: &results.Stats{Median: float64(1 + i)},
			})
		}
		w.Add(&tuner.Verdict{Records: recs,
			Result: &search.Result{Winner: 0, Second: 1, Medians: []float64{1, 1.1}, Left: make([]search.Reason, 2), Lo: &v[0], Hi: &v[1], Complete: true}})
	}
	if got, want := w.Noise(), "1 of 2 winners are clear; 2 of 2 records are noisy: run rnnbench doctor"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUntimed tells a budget that is spent before a candidate was timed from
// candidates that cannot run.
func TestUntimed(t *testing.T) {
	v := &tuner.Verdict{Point: results.Point{Hidden: 8}, Result: &search.Result{Winner: -1, Second: -1}}
	list := &Winners{}
	list.Add(v)
	list.Add(&tuner.Verdict{Point: v.Point, Result: &search.Result{Winner: -1, Second: -1, Complete: true}})
	if list.Tuned() != 1 || list.Complete() || list.Cut != 0 || list.Untimed != 1 {
		t.Errorf("%+v", list)
	}
}
