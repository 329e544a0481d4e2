package tuner_test

import (
	"math"
	"testing"

	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/search"
)

func TestFormRemembersByDistance(t *testing.T) {
	rec := func(label string) *record.Record {
		return &record.Record{Impl: record.Impl{Label: label}, Status: record.OK}
	}
	at := record.Point{Cell: "lstm", Pass: "forward", Hidden: 64, Input: 64, Batch: 4, Steps: 16, Layers: 1, Precision: "fp32"}
	twice := make([]float64, 24)
	once := make([]float64, 24)
	for i := range once {
		once[i], twice[i] = 1, 2
	}
	prior := &tuner.Prior{}
	if behind, doubt := prior.Expect(at, "slow"); behind != 0 || doubt <= 0 {
		t.Errorf("of nothing: %v ± %v", behind, doubt)
	}
	prior.Add(&tuner.Verdict{Point: at, Records: []*record.Record{rec("fast"), rec("slow"), rec("hardly"), nil}, Result: &search.Result{
		Winner: 0, Samples: [][]float64{once, twice, twice[:1], nil}, Left: []search.Reason{search.Finished, search.Slower, search.Slower, search.Unlikely},
	}})
	prior.Add(&tuner.Verdict{Result: &search.Result{Winner: -1}})
	other := at
	other.Cell = "gru"
	far := at
	far.Hidden, far.Input = 1024, 1024
	last, lastDoubt := math.Ln2, 0.0
	for _, p := range []record.Point{at, other, far} {
		if behind, _ := prior.Expect(p, "fast"); behind != 0 {
			t.Errorf("the winner is expected to take %v longer", behind)
		}
		behind, doubt := prior.Expect(p, "slow")
		if behind >= last || behind <= 0 || doubt <= lastDoubt {
			t.Errorf("%v: %v ± %v, nearer %v ± %v", p, behind, doubt, last, lastDoubt)
		}
		if little, unsure := prior.Expect(p, "hardly"); little >= behind || unsure <= doubt {
			t.Errorf("%v: by one sample %v ± %v, by many %v ± %v", p, little, unsure, behind, doubt)
		}
		last, lastDoubt = behind, doubt
	}
}
