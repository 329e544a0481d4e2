package experiments_test

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments/study"
	"rnnbench/experiments/yardstick"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
)

// TestRivalLayers: rivals that build kernels for a shape run layers of their own, at least 40 in each pass, which
// every rival runs too. They get a table, findings and a figure a pass, apart from those of the grid.
func TestRivalLayers(t *testing.T) {
	on := study.Target{Name: "synthetic", GPU: true, Copy: 1e12, Rivals: []study.Rival{
		{Name: "flashrnn", Knobs: []knob.Knob{{Name: "backend", Values: []int{0, 1}}, {Name: "graph", Values: []int{0, 1}}}}, {Name: "pytorch"},
	}}
	parts := partsOf(yardstick.RivalsGPU, study.Full, on)
	if len(parts) != 2 {
		t.Fatalf("%d parts", len(parts))
	}
	labels := func(p study.Part) (list []string) {
		for _, s := range p.Specs {
			if !strings.Contains(s.Label, "persistent") && !strings.Contains(s.Label, "cudnnstyle") {
				list = append(list, s.Label)
			}
		}
		return list
	}
	if got := labels(parts[0]); !slices.Equal(got, []string{"pytorch"}) {
		t.Errorf("the grid is run by %v", got)
	}
	if got := labels(parts[1]); !slices.Equal(got, []string{"flashrnn", "flashrnn backend=1", "flashrnn graph=1", "flashrnn backend=1:graph=1", "pytorch"}) {
		t.Errorf("the layers are run by %v", got)
	}
	of := map[string]int{}
	seen := map[record.Point]bool{}
	for _, p := range parts[1].Points {
		if _, err := tuner.Problem(p); err != nil || seen[p] {
			t.Errorf("%v: %v, or it comes twice", p, err)
		}
		seen[p] = true
		of[p.Pass]++
	}
	if of["forward"] < 40 || of["forward"] != of["train"] {
		t.Errorf("so many layers: %v", of)
	}
	rep, err := yardstick.RivalsGPU.Report(synthetic(yardstick.RivalsGPU, on), on)
	if err != nil {
		t.Fatal(err)
	}
	var tables, figures []string
	for _, table := range rep.Tables {
		tables = append(tables, table.Title)
		if explained := len(table.Notes) > 0 && strings.HasPrefix(table.Notes[0], "form: backend 0"); explained != strings.HasSuffix(table.Title, "flashrnn") {
			t.Errorf("%s explains its forms by %q", table.Title, table.Notes)
		}
	}
	for _, f := range rep.Figures {
		figures = append(figures, f.Name)
	}
	layers := func(title string) bool { return strings.HasPrefix(title, "Layers of FlashRNN, TorchRL and Dreamer") }
	if n := len(slices.DeleteFunc(slices.Clone(tables), func(s string) bool { return !layers(s) })); n != 2 || len(tables) != 3 {
		t.Errorf("tables: %q", tables)
	}
	for _, name := range []string{"flashrnn-layers-forward", "flashrnn-layers-train", "pytorch-layers-forward", "pytorch-forward-bf16"} {
		if !slices.Contains(figures, name) {
			t.Errorf("there is no figure %s among %q", name, figures)
		}
	}
	if slices.Contains(figures, "flashrnn-forward-bf16") {
		t.Errorf("figures of a grid that was not run: %q", figures)
	}
}

// TestLaunchesOfRivals: where no form of a rival is a graph, and rnnbench's technique is one, the report says so.
func TestLaunchesOfRivals(t *testing.T) {
	on := study.Target{Name: "synthetic", GPU: true, Copy: 1e12, Rivals: []study.Rival{{Name: "flashrnn", Knobs: []knob.Knob{{Name: "graph", Values: []int{0, 1}}}}}}
	recs := withTimes(synthetic(yardstick.RivalsGPU, on), func(r record.Record) float64 {
		if r.Impl.Label == "flashrnn graph=1" {
			return 0.5
		}
		return 1
	})
	for i := range recs {
		r := &recs[i]
		if r.Impl.Knobs = map[string]int{"graph": 1}; r.Impl.Label == "flashrnn" {
			r.Impl.Knobs["graph"] = 0
		}
		if r.Impl.Label == "flashrnn graph=1" && r.Point.Pass == "train" {
			r.Status, r.Stats = record.Skipped, nil
		}
	}
	rep, err := yardstick.RivalsGPU.Report(recs, on)
	if err != nil {
		t.Fatal(err)
	}
	const words = "the host launched flashrnn's fastest form operation by operation"
	if s := about(rep, words); !strings.HasPrefix(s, "Of these layers, train: at 3 of 3 layers") {
		t.Errorf("%q", s)
	}
	for _, s := range rep.Findings {
		if strings.Contains(s, words) && strings.Contains(s, "forward") {
			t.Errorf("%q", s)
		}
	}
}
