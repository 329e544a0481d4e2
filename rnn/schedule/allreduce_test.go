package schedule

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn/cell"
)

// twoLayers is a backward pass of two layers that forms both weight gradients at its end, followed
// by a change of the weights.
func twoLayers(sum bool) (*Schedule, error) {
	b := NewBuilder(1)
	var dx, dw, w []*Matrix
	for _, l := range []string{"0", "1"} {
		dx, dw, w = append(dx, b.Matrix("dx"+l, 4, 3)), append(dw, b.Matrix("dw"+l, 3, 3)), append(w, b.Matrix("w"+l, 3, 3))
	}
	b.Do(0, Map{Op: cell.Copy, Out: dx[1].All(), A: dx[1].All()})
	b.Do(0, Gemm{A: dx[1].All(), B: w[1].All(), C: dx[0].All()})
	b.Do(0, Map{Op: cell.Tanh, Out: dx[0].All(), A: dx[0].All()})
	for l := 1; l >= 0; l-- {
		b.Do(0, Gemm{A: dx[l].All(), TransA: true, B: dx[l].All(), C: dw[l].All()})
	}
	if sum {
		b.AllReduce([][]*Matrix{{dw[1]}, {dw[0]}}, 2)
	}
	for l := range w {
		b.Do(0, Map{Op: cell.Add, Out: w[l].All(), A: w[l].All(), B: dw[l].All()})
	}
	return b.Schedule()
}

// TestAllReduceOverlaps: the upper layer's sum runs beside the lower layer's backward pass,
// and the changes wait for the sums.
func TestAllReduceOverlaps(t *testing.T) {
	s, err := twoLayers(true)
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(s); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range s.Nodes {
		got = append(got, n.Op.Name())
	}
	if want := []string{"copy", "gemm", "allreduce", "gemm", "tanh", "gemm", "allreduce", "add", "add"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
	for i, want := range map[int][]int{2: {1}, 6: {5}, 7: {6}, 8: nil} {
		if !slices.Equal(s.Nodes[i].Wait, want) {
			t.Errorf("node %d (%v) waits for %v, want %v", i, s.Nodes[i].Op, s.Nodes[i].Wait, want)
		}
	}
	text, err := s.MarshalBinary()
	var back Schedule
	if err != nil || back.UnmarshalBinary(text) != nil || len(back.Nodes) != len(s.Nodes) || back.Nodes[2].Op.String() != s.Nodes[2].Op.String() {
		t.Errorf("the wire form of the sums does not come back: %v", err)
	}
}

// TestAllReduceShapes: shapes that do not fit are refused.
func TestAllReduceShapes(t *testing.T) {
	m := &Matrix{Name: "m", Rows: 4, Cols: 3}
	for _, c := range []struct {
		op   AllReduce
		want string
	}{
		{AllReduce{Sums: []View{m.All()}}, "1 to 1024 replicas"},
		{AllReduce{Sums: []View{m.All()}, Replicas: MaxReplicas + 1}, "1 to 1024 replicas"},
		{AllReduce{Sums: []View{m.Band(0, 2), m.Band(1, 2)}, Replicas: 2}, "overlaps"},
		{AllReduce{Replicas: 2}, "lacks something"},
	} {
		b := NewBuilder(1)
		b.s.Matrices = []*Matrix{m}
		b.Do(0, c.op)
		if _, err := b.Schedule(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.op, err, c.want)
		}
	}
}

// TestMoveAhead: an operation that moves never passes one that it conflicts with, even where the
// latter has moved itself.
func TestMoveAhead(t *testing.T) {
	b := NewBuilder(1)
	x, y, g := b.Matrix("x", 2, 2), b.Matrix("y", 2, 2), b.Matrix("g", 2, 2)
	b.Do(0, Map{Op: cell.Tanh, Out: x.All(), A: x.All()})
	b.Do(0, Map{Op: cell.Tanh, Out: y.All(), A: y.All()})
	b.Do(0, Map{Op: cell.Copy, Out: g.All(), A: x.All()})
	b.Do(0, Map{Op: cell.Add, Out: g.All(), A: g.All(), B: y.All()})
	b.Do(0, Map{Op: cell.Sigmoid, Out: x.All(), A: y.All()})
	b.Do(0, Map{Op: cell.Add, Out: g.All(), A: g.All(), B: x.All()})
	var got []string
	for _, n := range moveAhead(b.s.Nodes, map[*Matrix]bool{g: true}) {
		got = append(got, n.Op.String())
	}
	want := []string{"tanh x = x", "copy g = x", "tanh y = y", "add g = g y", "sigmoid x = y", "add g = g x"}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}
