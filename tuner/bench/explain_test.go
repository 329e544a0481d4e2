package bench

import (
	"strings"
	"testing"

	"rnnbench/model"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
)

// TestPredict explains where weights stay and what a step takes.
func TestPredict(t *testing.T) {
	m, err := model.Load("xeon")
	if err != nil {
		t.Fatal(err)
	}
	b := &Hardware{Machine: m}
	for _, c := range []struct {
		cell     string
		hidden   int
		resident bool
		want     []string
	}{
		{"rnn-tanh", 512, true, []string{"512 KiB for each worker stay in its L2", "L2 has room for 768 KiB of weights of each worker, enough for 626 units", "predicted step of one layer in bands of units: 7.91 µs"}},
		{"lstm", 512, false, []string{"4.00 MiB stay in L3, which is shared"}},
		{"gilr", 512, false, nil},
	} {
		at := record.Point{Cell: c.cell, Pass: "forward", Hidden: c.hidden, Input: 8, Batch: 1, Steps: 4, Layers: 1, Precision: "fp32"}
		problem, err := tuner.Problem(at)
		if err != nil {
			t.Fatal(err)
		}
		x, err := b.Predict(&tuner.Layout{Point: at, Problem: problem})
		if err != nil || (x == nil) != (c.want == nil) {
			t.Fatalf("%s: %v, %v", c.cell, x, err)
		}
		if x == nil {
			continue
		}
		notes := strings.Join(table.BandNotes(x), "\n")
		for _, want := range c.want {
			if x.Resident != c.resident || !strings.Contains(notes, want) {
				t.Errorf("%s: no %q in\n%s", c.cell, want, notes)
			}
		}
	}
}
