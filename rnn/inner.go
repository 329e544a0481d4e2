package rnn

import (
	"slices"

	"rnnbench/rnn/schedule"
)

// An Inner holds what passes between the two halves of a step, in a layer of a cell with inner gates:
// see cell.Cell.Inner.
type Inner struct {
	Value *schedule.Matrix // F·B × H where training, else B × H
	Grad  *schedule.Matrix // B × H: the gradient of the value of one step, where training

	// What the first half passes to the second, B × passed·H. Where training, that is in Layer.Saved,
	// and this is its gradient.
	passed *schedule.Matrix
}

// newInner makes the matrices of a layer, which has so many rows of steps; nil: no inner gates.
func newInner(p *Plan, name func(string) string, rows int) *Inner {
	if p.Cell.Inner == 0 {
		return nil
	}
	n, passed := &Inner{}, "passed"
	if p.Pass == Train {
		n.Value, n.Grad, passed = p.Matrix(name("inner"), rows, p.Hidden), p.Matrix(name("dinner"), p.Batch, p.Hidden), "dpassed"
	} else {
		n.Value = p.Matrix(name("inner"), p.Batch, p.Hidden)
	}
	n.passed = matrixIf(p, p.Cell.Passed() > 0, name(passed), p.Batch, p.Cell.Passed()*p.Hidden)
	return n
}

// InnerValue views the value that the inner gates of layer l multiply at steps [t, t+n). Of several
// steps it is there only where training.
func (p *Matrices) InnerValue(l, t, n int) schedule.View {
	if p.Pass == Train {
		return p.Rows(p.Layer[l].Inner.Value, t, n)
	}
	return p.Batches.Last(p.Layer[l].Inner.Value.All(), t)
}

// InnerGrad views the gradient of that value at step t.
func (p *Matrices) InnerGrad(l, t int) schedule.View {
	return p.Batches.Last(p.Layer[l].Inner.Grad.All(), t)
}

// vectors narrows v to n of its vectors.
func (p *Matrices) vectors(v schedule.View, from, n int) schedule.View {
	if n == 0 || v.Empty() {
		return schedule.View{}
	}
	return v.Columns(from*p.Hidden, n*p.Hidden)
}

// each views the vectors of v one by one, behind so many empty views.
func (p *Matrices) each(v schedule.View, behind int) []schedule.View {
	views := make([]schedule.View, behind, behind+p.Cell.Passed())
	for i := range p.Cell.Passed() {
		views = append(views, p.vectors(v, i, 1))
	}
	return views
}

// savedBy divides the saved values of a step: those of the first half, those that it passes, and
// those of the second half.
func (p *Matrices) savedBy(saved schedule.View) (first, passed, second schedule.View) {
	c := p.Cell
	n, m := c.First.Saved, c.Passed()
	return p.vectors(saved, 0, n), p.vectors(saved, n, m), p.vectors(saved, n+m, c.Second.Saved)
}

// Halves divides step t of layer l into operations that run one after the other. Of a cell with inner
// gates there are two, with the recurrent products of these gates in between, and else one.
func (p *Matrices) Halves(step schedule.Cell, l, t int) []schedule.Cell {
	c := p.Cell
	if c.Inner == 0 {
		return []schedule.Cell{step}
	}
	states, n := len(c.States), c.First.Recurrent
	first, second := step, step
	first.Cell, second.Cell = c.First, c.Second
	var passed schedule.View
	if step.Train {
		first.Saved, passed, second.Saved = p.savedBy(step.Saved)
	} else if m := p.Layer[l].Inner.passed; m != nil {
		passed = p.Batches.Last(m.All(), t)
	}
	first.R, first.BR = p.vectors(step.R, 0, n), p.vectors(step.BR, 0, n)
	first.Prev = append(slices.Clone(step.Prev), make([]schedule.View, c.Passed())...)
	first.Next = p.each(passed, states)
	first.Next[0] = p.InnerValue(l, t, 1)
	second.Prev = append(slices.Clone(step.Prev), p.each(passed, 0)...)
	second.Next = append(slices.Clone(step.Next), make([]schedule.View, c.Passed())...)
	return []schedule.Cell{first, second}
}

// HalvesBack does the same with the gradient of the step. The second half comes first. The products
// in between form InnerGrad.
func (p *Matrices) HalvesBack(step schedule.CellBackward, l, t int) []schedule.CellBackward {
	c := p.Cell
	if c.Inner == 0 {
		return []schedule.CellBackward{step}
	}
	states, none := len(c.States), make([]schedule.View, c.Passed())
	first, second := step, step
	first.Cell, second.Cell = c.First, c.Second
	var passed, grads schedule.View
	first.Saved, passed, second.Saved = p.savedBy(step.Saved)
	if m := p.Layer[l].Inner.passed; m != nil {
		grads = p.Batches.Last(m.All(), t)
	}
	first.DR = p.vectors(step.DR, 0, c.First.Recurrent)
	first.DOut = p.InnerGrad(l, t)
	first.Prev, second.Prev = append(slices.Clone(step.Prev), none...), append(slices.Clone(step.Prev), p.each(passed, 0)...)
	first.Next, second.Next = p.each(passed, states), append(slices.Clone(step.Next), none...)
	first.Next[0] = p.InnerValue(l, t, 1)
	first.DNext, second.DNext = p.each(grads, states), append(slices.Clone(step.DNext), none...)
	first.DPrev, second.DPrev = make([]schedule.View, states+c.Passed()), p.each(grads, states)
	for s := range states {
		if c.First.DirectPrev(s) {
			first.DNext[s], first.DPrev[s] = step.DPrev[s], step.DPrev[s]
		}
		if c.Second.DirectPrev(s) {
			second.DPrev[s] = step.DPrev[s]
		}
	}
	return []schedule.CellBackward{second, first}
}
