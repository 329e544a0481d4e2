package layer_test

import (
	"errors"
	"slices"
	"testing"

	"rnnbench/layer"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// TestUpdate changes weights between forward passes, as a host program does that loads others. The
// next pass takes them once the plan is told so, although techniques pack weights ahead.
func TestUpdate(t *testing.T) {
	d := open(t)
	for _, test := range []struct{ cell, technique string }{
		{"lstm", "auto"}, {"lstm", "cudnnstyle:transposed=2"}, {"lstm", "scc:transposed=2"}, {"gru", "persistent"}, {"sru", "scan"}, {"mingru", "scan"},
	} {
		l, err := d.NewLayer("input=5,hidden=18,layers=2,cell=" + test.cell)
		if err != nil {
			t.Fatal(err)
		}
		plan := func() *host {
			p, err := l.Plan(layer.Request{Batch: 2, Steps: 3, Pass: "forward", Technique: test.technique})
			if err != nil {
				t.Fatal(err)
			}
			return hosted(t, p)
		}
		fill := func(h *host, by float32) {
			for _, s := range h.slots {
				for i := range h.tensors[s.Name] {
					h.tensors[s.Name][i] = by * float32(i%7-3)
				}
			}
		}
		h := plan()
		fill(h, .1)
		h.run(t)
		before := slices.Clone(h.tensors["output"])
		fill(h, .2)
		if err := h.plan.Update(); err != nil {
			t.Fatal(err)
		}
		h.run(t)
		after := slices.Clone(h.tensors["output"])
		if err := h.plan.Close(); err != nil {
			t.Fatal(err)
		}
		fresh := plan()
		fill(fresh, .2)
		fresh.run(t)
		if want := fresh.tensors["output"]; !slices.Equal(after, want) || slices.Equal(after, before) {
			t.Errorf("%s, %s: after an update the output is %v, want %v; before it was %v", test.cell, test.technique, after[:4], want[:4], before[:4])
		}
	}
}

// TestUpdateTraining trains by two plans: one runs twice with the same weights, then with others, then
// with the first ones again; another is new each time. Both have the same outputs and gradients, whether
// weights are packed in each pass, once, or as products go.
func TestUpdateTraining(t *testing.T) {
	d := open(t)
	for _, technique := range []string{
		"naive", "cudnnstyle:transposed=0", "cudnnstyle:transposed=1", "cudnnstyle:transposed=2", "persistent:transposed=1", "persistent:transposed=2", "persistent:streams=4", "scan", "scc",
	} {
		for _, cell := range []string{"lstm", "gru", "sru"} {
			for _, precision := range []string{"fp32", "bf16"} {
				updates(t, d, technique, "input=5,hidden=18,layers=2,cell="+cell+",precision="+precision)
			}
		}
	}
}

func updates(t *testing.T, d *layer.Device, technique, description string) {
	t.Helper()
	plan := func() *host {
		l, err := d.NewLayer(description)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		p, err := l.Plan(layer.Request{Batch: 2, Steps: 3, Pass: "train", Technique: technique})
		if errors.Is(err, schedule.ErrUnsupported) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		return hosted(t, p)
	}
	h := plan()
	if h == nil {
		return
	}
	for i, scale := range []float32{.1, .1, .2, .1} {
		fresh := plan()
		fresh.fill(scale)
		fresh.run(t)
		h.fill(scale)
		if i > 1 {
			if err := h.plan.Update(); err != nil {
				t.Fatal(err)
			}
		}
		h.run(t)
		for _, s := range h.slots {
			if !slices.Equal(h.tensors[s.Name], fresh.tensors[s.Name]) {
				t.Errorf("%s, %s, pass %d: %s is not that of a fresh plan", description, technique, i, s.Name)
			}
		}
	}
}

// fill sets what the plan is given to multiples of scale.
func (h *host) fill(scale float32) {
	for _, s := range h.slots {
		if s.Kind == rnn.Parameter || s.Kind == rnn.ForwardGiven || s.Kind == rnn.BackwardGiven {
			for i := range h.tensors[s.Name] {
				h.tensors[s.Name][i] = scale * float32(i%7-3)
			}
		}
	}
}
