package layer_test

import (
	"slices"
	"testing"

	"rnnbench/layer"
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
