package rnn

import (
	"fmt"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A row convolution weights, for each unit by itself, what a module of layers gives at a step and at the
// steps after it: out[t] = Σ_j w[j] ∘ h[t+j], over j from 0 to Lookahead-1. Past the last step h is 0. It is
// that of Deep Speech 2 (Amodei et al. 2015, section 3.6), and of the modules of Diamos et al. (2016),
// section 5. Its output has no bias and no function.
//
// With shortcuts, one ends each module, within its shortcut. Else one ends the whole stack of layers.

// MaxLookahead bounds Problem.Lookahead.
const MaxLookahead = 1 << 10

// LooksAhead reports whether a row convolution reads what layer l gives.
func LooksAhead(p Problem, l int) bool {
	switch {
	case p.Lookahead == 0:
		return false
	case p.Skip > 0:
		return (l+1)%p.Skip == 0
	}
	return l == p.Layers-1
}

// RowConvolutions is the number of row convolutions.
func RowConvolutions(p Problem) int {
	switch {
	case p.Lookahead == 0:
		return 0
	case p.Skip > 0:
		return p.Layers / p.Skip
	}
	return 1
}

// checkLookahead reports an invalid number of steps, and one that no module uses.
func checkLookahead(p Problem) error {
	switch {
	case p.Lookahead < 0 || p.Lookahead > MaxLookahead:
		return fmt.Errorf("rnn: lookahead is %d: it must be 0 (no row convolution) to %d steps", p.Lookahead, MaxLookahead)
	case p.Lookahead > 0 && p.Skip > p.Layers:
		return fmt.Errorf("rnn: lookahead is %d, but no module of skip=%d layers is complete: set skip to at most %d, or lookahead to none", p.Lookahead, p.Skip, p.Layers)
	}
	return nil
}

// declineLookahead says why p's layers cannot have row convolutions.
func declineLookahead(p Problem) error {
	decline := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{schedule.ErrLookahead}, args...)...)
	}
	switch {
	case p.Lookahead == 0:
	case p.Direction != FromFirst:
		return decline("direction %v reads later steps already: set direction to forward, or lookahead to none", p.Direction)
	case p.Calls > 0:
		return decline("a call has no later steps to read, but lookahead is %d: set lookahead to none", p.Lookahead)
	case p.Resets > 0:
		return decline("steps to read ahead may belong to another sequence, as resets are %d%%: set resets to none, or lookahead to none", p.Resets)
	case p.Lengths != "" || p.History > 0:
		return decline("lookahead=%d goes with no lengths and no history yet: set these to none", p.Lookahead)
	}
	return nil
}

// A RowConvolution is the row convolution behind one layer. Its methods list the operations of a pass.
type RowConvolution struct {
	W, DW *schedule.Matrix // Lookahead × Out; DW where training

	rows *schedule.Matrix // what it reads, (T + Lookahead - 1)·B × Out: 0 past the last step
	grad *schedule.Matrix // where training, the gradient of its output, as many rows: 0 before the first step
	term *schedule.Matrix // T·B × Out
}

// newRowConvolution makes the matrices behind layer l; nil: there is none.
func newRowConvolution(p *Plan, l int) *RowConvolution {
	if !LooksAhead(p.Problem, l) {
		return nil
	}
	train, out, rows, more := p.Pass == Train, p.Out(), p.Steps*p.Batch, (p.Lookahead-1)*p.Batch
	name := func(s string) string { return fmt.Sprintf("%s behind layer %d", s, l) }
	m := &RowConvolution{
		W: p.Matrix(name("w"), p.Lookahead, out), DW: matrixIf(p, train, name("dw"), p.Lookahead, out),
		rows: p.Matrix(name("rows"), rows+more, out), grad: matrixIf(p, train, name("drows"), rows+more, out), term: p.Matrix(name("term"), rows, out),
	}
	if more > 0 {
		p.Prepare(schedule.Map{Op: cell.Zero, Out: m.rows.Band(rows, more)})
		if train {
			p.Prepare(schedule.Map{Op: cell.Zero, Out: m.grad.Band(0, more)})
		}
	}
	return m
}

// batch is the number of rows of a step.
func (m *RowConvolution) batch() int {
	return (m.rows.Rows - m.term.Rows) / max(1, m.W.Rows-1)
}

// Forward sets out to the convolution of h, both T·B × Out.
func (m *RowConvolution) Forward(out, h schedule.View) []schedule.Op {
	copied := schedule.Map{Op: cell.Copy, Out: m.rows.Band(0, h.Rows), A: h}
	return append([]schedule.Op{copied}, m.weigh(out, func(j int) schedule.View { return m.rows.Band(j*m.batch(), h.Rows) })...)
}

// Backward forms the gradients of h and of the weights from dout, that of the output.
func (m *RowConvolution) Backward(dh, dout schedule.View) []schedule.Op {
	n, more := dout.Rows, m.grad.Rows-dout.Rows
	ops := []schedule.Op{schedule.Map{Op: cell.Copy, Out: m.grad.Band(more, n), A: dout}}
	ops = append(ops, m.weigh(dh, func(j int) schedule.View { return m.grad.Band(more-j*m.batch(), n) })...)
	for j := range m.W.Rows {
		ops = append(ops, m.along(m.rows.Band(j*m.batch(), n), dout, m.DW.Band(j, 1))...)
	}
	return ops
}

// atOnce is how many products one chain of operations adds up. Each chain goes once over its result.
const atOnce = 16

// weigh sets out to the sum of rows(j), each weighted by row j of W.
func (m *RowConvolution) weigh(out schedule.View, rows func(j int) schedule.View) (ops []schedule.Op) {
	var steps []schedule.Map
	for j := range m.W.Rows {
		to := m.term.All()
		if j == 0 {
			to = out
		}
		steps = append(steps, schedule.Map{Op: cell.Mul, Out: to, A: rows(j), B: m.W.Band(j, 1)})
		if j > 0 {
			steps = append(steps, schedule.Map{Op: cell.Add, Out: out, A: out, B: to})
		}
		if (j+1)%atOnce == 0 || j == m.W.Rows-1 {
			ops, steps = append(ops, schedule.MapChain{Steps: steps}), nil
		}
	}
	return ops
}

// along sets the row sum to that of the rows of a ∘ b. A chain first adds up equal parts of the rows, so
// that few of them are stored.
func (m *RowConvolution) along(a, b, sum schedule.View) []schedule.Op {
	parts := atOnce
	for a.Rows%parts > 0 {
		parts--
	}
	n := a.Rows / parts
	total := m.term.Band(0, n)
	steps := []schedule.Map{{Op: cell.Mul, Out: total, A: a.Band(0, n), B: b.Band(0, n)}}
	for i := 1; i < parts; i++ {
		one := m.term.Band(n, n)
		steps = append(steps, schedule.Map{Op: cell.Mul, Out: one, A: a.Band(i*n, n), B: b.Band(i*n, n)},
			schedule.Map{Op: cell.Add, Out: total, A: total, B: one})
	}
	return []schedule.Op{schedule.MapChain{Steps: steps}, schedule.SumRows{A: total, Out: sum}}
}
