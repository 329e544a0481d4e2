package rnn

import (
	"slices"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// An Inner holds what passes between the two halves of a step, in a layer of a cell with inner gates:
// see cell.Cell.Inner. A nil Inner is that of a layer whose steps have no halves.
type Inner struct {
	value *schedule.Matrix // F·B × H where training, else B × H
	grad  *schedule.Matrix // B × H: the gradient of the value of one step, where training

	// What the first half passes to the second, B × passed·H. Where training, that is in Layer.Saved,
	// and this is its gradient.
	passed *schedule.Matrix

	cell    *cell.Cell
	hidden  int
	batches Batches
}

// newInner makes the matrices of a layer, which has so many rows of steps; nil: no inner gates.
func newInner(p *Plan, name func(string) string, rows int) *Inner {
	if p.Cell.Inner == 0 {
		return nil
	}
	n := &Inner{cell: p.Cell, hidden: p.Hidden, batches: p.Batches}
	passed := "passed"
	if p.Pass == Train {
		n.value, n.grad, passed = p.Matrix(name("inner"), rows, p.Hidden), p.Matrix(name("dinner"), p.Batch, p.Hidden), "dpassed"
	} else {
		n.value = p.Matrix(name("inner"), p.Batch, p.Hidden)
	}
	n.passed = matrixIf(p, p.Cell.Passed() > 0, name(passed), p.Batch, p.Cell.Passed()*p.Hidden)
	return n
}

// Value views what the inner gates multiply at steps [t, t+k). Of several steps it is there only where
// training.
func (n *Inner) Value(t, k int) schedule.View {
	if n.grad != nil {
		return n.value.Band(n.batches.Before(t), n.batches.Rows(t, k))
	}
	return n.batches.Last(n.value.All(), t)
}

// Grad views the gradient of that value at step t.
func (n *Inner) Grad(t int) schedule.View { return n.batches.Last(n.grad.All(), t) }

// vectors narrows v to k of its vectors.
func (n *Inner) vectors(v schedule.View, from, k int) schedule.View {
	if k == 0 || v.Empty() {
		return schedule.View{}
	}
	return v.Columns(from*n.hidden, k*n.hidden)
}

// each views the passed vectors in v one by one, behind so many empty views.
func (n *Inner) each(v schedule.View, behind int) []schedule.View {
	views := make([]schedule.View, behind, behind+n.cell.Passed())
	for i := range n.cell.Passed() {
		views = append(views, n.vectors(v, i, 1))
	}
	return views
}

// divide divides the saved values of a step: those of the first half, those that it passes, and those
// of the second half.
func (n *Inner) divide(saved schedule.View) (first, passed, second schedule.View) {
	own, k := n.cell.First.Saved, n.cell.Passed()
	return n.vectors(saved, 0, own), n.vectors(saved, own, k), n.vectors(saved, own+k, n.cell.Second.Saved)
}

// Halves divides a step into operations that run one after the other. Of a cell with inner gates there
// are two, with the recurrent products of these gates in between, and else one.
func (n *Inner) Halves(step schedule.Cell, t int) []schedule.Cell {
	if n == nil {
		return []schedule.Cell{step}
	}
	first, second, passed := step, step, schedule.View{}
	first.Cell, second.Cell = n.cell.First, n.cell.Second
	if step.Train {
		first.Saved, passed, second.Saved = n.divide(step.Saved)
	} else if n.passed != nil {
		passed = n.batches.Last(n.passed.All(), t)
	}
	first.R, first.BR = n.vectors(step.R, 0, n.cell.Outer()), n.vectors(step.BR, 0, n.cell.Outer())
	none := make([]schedule.View, n.cell.Passed())
	first.Prev, second.Prev = slices.Concat(step.Prev, none), slices.Concat(step.Prev, n.each(passed, 0))
	first.Next, second.Next = n.each(passed, len(step.Next)), slices.Concat(step.Next, none)
	first.Next[0] = n.Value(t, 1)
	return []schedule.Cell{first, second}
}

// HalvesBack does the same with the gradient of the step. The second half comes first. The products
// in between form Grad.
func (n *Inner) HalvesBack(step schedule.CellBackward, t int) []schedule.CellBackward {
	if n == nil {
		return []schedule.CellBackward{step}
	}
	first, second, passed, grads := step, step, schedule.View{}, schedule.View{}
	first.Cell, second.Cell = n.cell.First, n.cell.Second
	first.Saved, passed, second.Saved = n.divide(step.Saved)
	if n.passed != nil {
		grads = n.batches.Last(n.passed.All(), t)
	}
	first.DR, first.DOut = n.vectors(step.DR, 0, n.cell.Outer()), n.Grad(t)
	states, none := len(step.Next), make([]schedule.View, n.cell.Passed())
	first.Prev, second.Prev = slices.Concat(step.Prev, none), slices.Concat(step.Prev, n.each(passed, 0))
	first.Next, second.Next = n.each(passed, states), slices.Concat(step.Next, none)
	first.Next[0] = n.Value(t, 1)
	first.DNext, second.DNext = n.each(grads, states), slices.Concat(step.DNext, none)
	first.DPrev, second.DPrev = slices.Concat(make([]schedule.View, states), none), n.each(grads, states)
	copy(second.DPrev, step.DPrev)
	for s := range second.DPrev {
		if s < states && n.cell.First.DirectPrev(s) {
			first.DNext[s], first.DPrev[s] = step.DPrev[s], step.DPrev[s]
		}
		if !n.cell.Second.DirectPrev(s) {
			second.DPrev[s] = schedule.View{}
		}
	}
	return []schedule.CellBackward{second, first}
}
