package stack

import (
	"fmt"
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Stacks says which nodes of a schedule run in stacks, and which matrices are packed for them.
type Stacks struct {
	At     map[int]*Stack // by the node of the first layer
	Inside map[int]bool   // the other nodes of stacks
	Lower  map[int]bool   // weights of the layer beneath
	Own    map[int]bool   // recurrent weights
}

// Find finds the stacks of s. The error wraps schedule.ErrUnsupported if knobs ask for a stack
// and there is none.
func Find(s *schedule.Schedule, element []driver.Element, k knob.Params, p driver.Properties) (Stacks, error) {
	out := Stacks{At: map[int]*Stack{}, Inside: map[int]bool{}, Lower: map[int]bool{}, Own: map[int]bool{}}
	why := "stacks need tensor cores that multiply 16-bit values"
	if k["stack"] != 2 && p.Capability >= 80 {
		why = out.find(s, element, k, p)
	}
	if k["stack"]%2 == 1 && len(out.At) == 0 {
		return out, fmt.Errorf("cuda: stack=%d: %w: no layers run as one kernel: %s", k["stack"], schedule.ErrKnob, why)
	}
	return out, nil
}

// find stacks as many layers as fit, if that pays or knobs ask for it. It says why the last layers
// that it looked at are no stack.
func (out *Stacks) find(s *schedule.Schedule, element []driver.Element, k knob.Params, p driver.Properties) (why string) {
	why = "no two layers are stacked, over two or more steps, with only a product between them"
	uses := usesOf(s)
	for i := 0; i < len(s.Nodes); i++ {
		n := 1 // layers
		for i+2*n < len(s.Nodes) && follows(s, i+2*(n-1), uses) {
			n++
		}
		if n == 1 {
			continue
		}
		for parts := 1; parts <= n/2; parts++ {
			st, no := newStack(s, i, ints.CeilDiv(n, parts), element, k, p)
			if no != "" {
				why = no
				continue
			}
			if k["stack"] != 0 || st.pays(k, p) {
				out.take(i, st)
			}
			i += 2 * (len(st.layers) - 1)
			break
		}
	}
	return why
}

// take notes that st runs from node i on.
func (out *Stacks) take(i int, st *Stack) {
	out.At[i] = st
	for l, op := range st.layers {
		for _, r := range op.R {
			out.Own[r.M.ID] = true
		}
		if l > 0 {
			out.Inside[i+2*l-1], out.Inside[i+2*l] = true, true
			out.Lower[st.lower[l-1].B.M.ID] = true
		}
	}
}

// usesOf counts the operations that touch each matrix.
func usesOf(s *schedule.Schedule) []int {
	uses := make([]int, len(s.Matrices))
	last := make([]int, len(s.Matrices)) // the latest operation that touches it, counted from 1
	n := 0
	for op := range s.Operations() {
		n++
		for v := range schedule.Accesses(op) {
			if last[v.M.ID] != n {
				last[v.M.ID] = n
				uses[v.M.ID]++
			}
		}
	}
	return uses
}

// follows reports whether another layer is stacked on the layer at node i. The next node must be a
// product of its states, and the one after it a layer like it. Nothing else may touch their packed
// weights or the product.
func follows(s *schedule.Schedule, i int, uses []int) bool {
	if i+2 >= len(s.Nodes) {
		return false
	}
	op, ok := s.Nodes[i].Op.(schedule.Persistent)
	g, product := s.Nodes[i+1].Op.(schedule.Gemm)
	next, again := s.Nodes[i+2].Op.(schedule.Persistent)
	if !ok || !product || !again {
		return false
	}
	for _, n := range s.Nodes[i+1 : i+3] {
		if n.Stream != s.Nodes[i].Stream || len(n.Wait) > 0 {
			return false
		}
	}
	for _, r := range slices.Concat(op.R, next.R, []schedule.View{g.B}) {
		if uses[r.M.ID] != 2 || !r.M.Packed || r != r.M.All() {
			return false
		}
	}
	h, batch := op.Hidden(), op.Batch()
	return op.Cell == next.Cell && op.Train == next.Train && op.Steps == next.Steps && op.Steps > 1 && batch == next.Batch() && h == next.Hidden() &&
		g.A == op.State[op.Cell.Through].Band(batch, op.Steps*batch) && !g.TransA && !g.TransB && !g.Accumulate &&
		g.C == next.X && g.C.M.Scratch && uses[g.C.M.ID] == 2
}

// vectors returns what a layer reads and writes, besides weights.
func vectors(op schedule.Persistent) []schedule.View {
	return append([]schedule.View{op.X, op.BX, op.BR, op.Peep, op.Saved}, op.State...)
}
