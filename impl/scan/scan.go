// Package scan runs linear recurrences as products over many steps and a scan
// over time. A device may cut the scan into chunks and compute them in parallel, so
// nothing runs step by step. An ls-lstm is two scans with the recurrent product of
// all surrogate states between them.
//
// The technique runs time in blocks, layer by layer within a block. The products
// of a block are then still in the caches when they are scanned.
//
// Reference: Martin, Cundy. Parallelizing Linear Recurrent Neural Nets Over
// Sequence Length. 2017. arXiv:1709.04057, sections 2 and 3.
package scan

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Technique is the scan technique.
type Technique struct{}

func (Technique) Name() string { return "scan" }
func (Technique) Doc() string {
	return "linear recurrences as a parallel scan over time (Martin & Cundy 2017)"
}

// A block has at least usualRows product rows by default: enough for a product at full speed, few
// enough for the caches. Where channels are few it has as many as make usualValues products, since
// rows of few values take the time of their operation.
const (
	usualRows   = 512
	usualValues = 1 << 16
)

// Knobs implements rnn.Technique.
func (Technique) Knobs(p rnn.Problem) []knob.Knob {
	rows := max(usualRows, usualValues/max(1, p.Hidden*len(p.Cell.Gates)))
	usual := min(max(1, rows/max(1, p.Batch)), p.Steps)
	if p.Norm == rnn.NormBatch { // it takes the products of all steps
		usual = p.Steps
	}
	values := []int{usual}
	if usual < p.Steps {
		values = append(values, 0)
	}
	for n := max(1, usual/16); n < p.Steps && n <= 16*usual; n *= 4 {
		if n != usual {
			values = append(values, n)
		}
	}
	return append([]knob.Knob{{Name: "inputbatch", Doc: "time steps per block of products and scans; 0, or more than the sequence has: all; the default on a GPU is all, or as many as fit 4 GiB", Values: values, Min: 0, Max: math.MaxInt32}, aloneKnob()}, rnn.SizesKnob(p, 16, 4, 1, 0)...)
}

// mostBytes limits the products of a launched block and their gradients, in bytes.
const mostBytes = 4 << 30

// LaunchedKnobs implements rnn.Launcher: by default a block has all steps, if memory allows. A
// launch takes the time of many rows, and no cache would hold a smaller block's products.
func (t Technique) LaunchedKnobs(p rnn.Problem) []knob.Knob {
	k := rnn.LaunchedSizes(t.Knobs(p))
	step := 4 * p.Batch * p.Hidden * (len(p.Cell.Gates) + p.Cell.Recurrent)
	if p.Pass == rnn.Train {
		step *= 2
	}
	first := 0
	if k[0].Values[0] == p.Steps {
		return k
	}
	if p.Steps > mostBytes/step {
		first = max(1, mostBytes/step)
	}
	values := slices.DeleteFunc(k[0].Values, func(v int) bool { return v == first })
	k[0].Values = slices.Insert(values, 0, first)
	return k
}

// NormalisesBatch implements rnn.BatchNormaliser.
func (Technique) NormalisesBatch() {}

// Plan implements rnn.Technique.
func (Technique) Plan(p *rnn.Plan, k knob.Params) error {
	c := p.Cell
	switch {
	case c.Inner > 0:
		return fmt.Errorf("%w: %v is not a linear recurrence: a recurrent product multiplies a value that depends on another one", schedule.ErrCell, c)
	case c.Recurrent > 0 && c.Surrogate == nil:
		return fmt.Errorf("%w: %v is not a linear recurrence: the recurrent product multiplies a state that depends on the product itself", schedule.ErrCell, c)
	case c.Recurrence == nil && c.Scanned == nil:
		return fmt.Errorf("%w: %v is not a linear recurrence: a state does not depend linearly on the previous one", schedule.ErrCell, c)
	case c.SplitGrad:
		return fmt.Errorf("%w: %v: its recurrent products need other gradients than its input products", schedule.ErrCell, c)
	case p.Resets > 0 && c.Recurrent > 0:
		return fmt.Errorf("%w: %v has recurrent products of all steps at once, whose gradients would not stop where a sequence begins anew: set resets to none", schedule.ErrResets, c)
	}
	return LayOut(p, k, nil)
}

// A Recurrence runs a layer's cell over a block of time in a way of its own. The products of the inputs
// are known, and their gradients are used afterwards.
type Recurrence interface {
	// Forward runs the steps of s, a block of layer l.
	Forward(l int, s schedule.Sequence)
	// Backward runs their gradient. The gradients of per-unit weights, a row for each step, lie in DX
	// behind those of the gates.
	Backward(l int, s schedule.Sequence, g schedule.SequenceGrad)
}

// LayOut lays out p by this package's technique, with the steps of a block run by r; nil: by scans.
func LayOut(p *rnn.Plan, k knob.Params, r Recurrence) error {
	c := p.Cell
	n := &network{Plan: p, steps: r, block: k["inputbatch"], gates: len(c.Gates) * p.Hidden, recurrent: c.Recurrent * p.Hidden}
	if c.Recurrent > 0 {
		n.blocks = p.AllBlocks(true)
	}
	if n.block == 0 || n.block > p.Steps {
		n.block = p.Steps
	}
	if p.Norm == rnn.NormBatch && n.block < p.Steps {
		return fmt.Errorf("%w: norm=%s takes the input products of all steps at once: set inputbatch to 0", schedule.ErrKnob, p.Norm)
	}
	if n.alone = k["alone"]; n.alone != whole {
		if err := n.declineAlone(); err != nil {
			return err
		}
	}
	n.layout()
	blocks := p.Batches.Runs(0, p.Steps, n.block)
	for _, b := range blocks {
		for l := range p.Layers {
			n.forward(l, b.T, b.N)
		}
		if p.Head != nil {
			n.head(b.T, b.N)
		}
	}
	if p.Pass == rnn.Train {
		p.Cut()
		n.startBackward()
		for i, b := range slices.Backward(blocks) {
			more := i < len(blocks)-1
			if p.Head != nil {
				n.headBack(b.T, b.N, more)
			}
			for l := p.Layers - 1; l >= 0; l-- {
				n.backward(l, b.T, b.N, more)
			}
		}
		n.finishBackward()
	}
	n.copyAsMuch()
	return nil
}

// A network is a plan with the matrices in which a block of steps computes.
type network struct {
	*rnn.Plan
	steps            Recurrence  // runs the steps of a block; nil: scans do
	blocks           []rnn.Block // of R, by head; with one head all gates together
	block            int         // steps of a block of time
	alone            int         // what of the pass is timed; see aloneKnob
	values           int64       // values that scans read and write, if a copy is timed in their place
	gates, recurrent int         // columns of the products of the input and of the state

	x, r *schedule.Matrix // products of a block: of the input and, for a surrogate, of its states

	dx               *schedule.Matrix    // gradients of both products; behind them, those of later steps that a window reaches
	after            []*schedule.Matrix  // by layer: these later steps, kept for the block before; nil without a window
	ds               *schedule.Matrix    // gradients of surrogate states, a step more than a block
	dy               [2]*schedule.Matrix // gradients of the outputs of a layer and of the one above
	layers           []weights
	headW, headWBack *schedule.Matrix
}

// weights are a layer's packed weights, the right operands of products forward and backward.
type weights struct {
	w, wBack []*schedule.Matrix // one for each step of the cell's window; none where one-hot
	r, rBack []*schedule.Matrix // one for each of blocks
}

// pack returns v, or its transpose, packed for products.
func (n *network) pack(v schedule.View, trans bool) *schedule.Matrix {
	rows, cols, mark := v.Rows, v.Cols, ""
	if trans {
		rows, cols, mark = v.Cols, v.Rows, "ᵀ"
	}
	p := n.Packed(v.String()+mark, rows, cols)
	op := schedule.Pack{Src: v, Dst: p.All(), Trans: trans}
	if rnn.KeepsWeights(n.Plan) {
		n.Prepare(op)
	} else {
		n.do(op)
	}
	return p
}

// packInputs packs the input weights of layer l, a matrix for each step of the cell's window.
func (n *network) packInputs(l int, trans bool) []*schedule.Matrix {
	if oneHot(n.Plan, l) {
		return nil
	}
	var list []*schedule.Matrix
	for _, w := range n.TapWeights(l) {
		list = append(list, n.pack(w, trans))
	}
	return list
}

// packRecurrent packs the recurrent weights r, a matrix for each block.
func packRecurrent(n *network, r schedule.View, trans bool) []*schedule.Matrix {
	var list []*schedule.Matrix
	for _, b := range n.blocks {
		list = append(list, n.pack(b.Weights(r), trans))
	}
	return list
}

// layout makes the matrices of a block and packs weights.
func (n *network) layout() {
	rows := n.block * n.Batch
	n.x = n.Matrix("x·W", rows, n.gates)
	if n.recurrent > 0 {
		n.r = n.Matrix("s·R", rows, n.recurrent)
	}
	for l, y := range n.Layer {
		var w weights
		w.w = n.packInputs(l, true)
		if n.recurrent > 0 {
			w.r = packRecurrent(n, y.R.All(), true)
		}
		n.layers = append(n.layers, w)
	}
	if n.Head != nil {
		n.headW = n.pack(n.Head.W.All(), true)
	}
	if n.Pass == rnn.Train { // here, since a device may pack many at a time
		n.packBackward()
	}
}

// oneHot reports whether layer l reads symbols.
func oneHot(p *rnn.Plan, l int) bool { return l == 0 && p.OneHot }

// first narrows a block's matrix to its first rows, which hold steps [t, t+steps).
func (n *network) first(m *schedule.Matrix, t, steps int) schedule.View {
	return m.Band(0, n.Batches.Rows(t, steps))
}

// A part says which gates, saved vectors and states of the cell one scan handles.
type part struct {
	cell               *cell.Cell
	gate, gates, saved int // first gate, number of gates, first saved vector
	states             []int
}

// parts returns the two scans of a cell with a surrogate. Other cells have one scan, core.
func (n *network) parts() (surrogate, core part) {
	c := n.Cell
	var states []int
	for s := range c.States {
		if c.Surrogate == nil || s != c.Through {
			states = append(states, s)
		}
	}
	switch {
	case c.Scanned != nil:
		return part{}, part{c.Scanned, 0, len(c.Gates), 0, states}
	case c.Surrogate == nil:
		return part{}, part{c, 0, len(c.Gates), 0, states}
	}
	surrogate = part{c.Surrogate, c.Recurrent, len(c.Gates) - c.Recurrent, 0, []int{c.Through}}
	return surrogate, part{c.Core, 0, c.Recurrent, c.Surrogate.Saved, states}
}

// columns narrows v, which has H columns per gate or saved value, to k of these from i on.
func (n *network) columns(v schedule.View, i, k int) schedule.View {
	return v.Columns(i*n.Hidden, k*n.Hidden)
}

// narrow returns part p of the whole cell's sequence s.
func (n *network) narrow(s schedule.Sequence, p part) schedule.Sequence {
	out := schedule.Sequence{Cell: p.cell, Train: s.Train, Steps: s.Steps,
		X: n.columns(s.X, p.gate, p.gates), BX: n.columns(s.BX, p.gate, p.gates), Peep: s.Peep, Keep: s.Keep}
	if p.cell.Recurrent > 0 {
		out.BR = s.BR
	}
	if !s.Saved.Empty() && p.cell.Saved > 0 {
		out.Saved = n.columns(s.Saved, p.saved, p.cell.Saved)
	}
	for _, i := range p.states {
		out.State = append(out.State, s.State[i])
	}
	return out
}

// forward runs steps [t, t+steps) of layer l.
func (n *network) forward(l, t, steps int) {
	x := n.first(n.x, t, steps)
	if oneHot(n.Plan, l) {
		n.do(schedule.Gather{Index: n.InputOf(l, t, steps), Table: n.Layer[l].W.All(), Out: x})
	} else {
		for _, tap := range n.Taps(l, t, steps) {
			n.do(schedule.Gemm{A: tap.In, B: n.layers[l].w[tap.K].All(), C: tap.Of(x), Accumulate: tap.K > 0})
		}
	}
	for _, op := range n.Layer[l].BatchNorm.Input(x) {
		n.do(op)
	}
	s := n.Sequence(l, t, steps, x)
	if n.steps != nil {
		n.steps.Forward(l, s)
		return
	}
	surrogate, core := n.parts()
	scan := schedule.Scan{Sequence: n.narrow(s, core)}
	if surrogate.cell != nil {
		n.do(schedule.Scan{Sequence: n.narrow(s, surrogate)})
		scan.R = n.first(n.r, t, steps)
		for i, b := range n.blocks {
			n.do(schedule.Gemm{A: b.State(n.Through(l, t, steps)), B: n.layers[l].r[i].All(), C: b.Of(scan.R)})
		}
	}
	n.do(scan)
}
