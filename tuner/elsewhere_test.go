package tuner_test

import (
	"testing"

	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/wisdom"
)

// TestElsewhere: of other devices, each setting counts once, the nearest first. What is tuned for another
// objective or too far away does not count.
func TestElsewhere(t *testing.T) {
	at := record.Point{Cell: "lstm", Pass: "forward", Hidden: 64, Input: 64, Batch: 4, Steps: 16, Layers: 1, Precision: "fp32"}
	b := &wisdom.Book{}
	put := func(device, impl string, hidden int, objective string) {
		e := wisdom.Entry{Device: device, Cache: "hot", Point: at, Objective: objective, Impl: impl, Knobs: map[string]int{"fused": 1}}
		e.Point.Hidden, e.Point.Input = hidden, hidden
		b.Put(e)
	}
	put("here", "own", 64, "")
	put("x", "near", 128, "")
	put("x", "exact", 64, "")
	put("y", "exact", 64, "")
	put("y", "frugal", 64, record.OfEnergy)
	put("z", "far", 4096, "")
	var names []string
	for _, i := range tuner.Elsewhere(b, "", "here", "hot", at) {
		names = append(names, i.Name)
	}
	if len(names) != 2 || names[0] != "exact" || names[1] != "near" {
		t.Errorf("%v, want exact and near", names)
	}
	for _, m := range b.Lookup("here", "hot", at) {
		if m.Device != "here" {
			t.Errorf("%s of %s is a choice here", m.Impl, m.Device)
		}
	}
}
