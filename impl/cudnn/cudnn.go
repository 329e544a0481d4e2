// Package cudnn runs the whole network with NVIDIA's library, the yardstick for
// the other techniques. It uses cuDNN's layouts from the start, so nothing is
// converted while it is timed: parameters lie where the library expects them, and
// states are stacked as it stacks them. For inner layers it returns only the
// states after the last time step.
//
// Reference: Chetlur et al. cuDNN: Efficient Primitives for Deep Learning. 2014.
// arXiv:1410.0759; its RNN interface, version 8 and later.
package cudnn

import (
	"fmt"
	"slices"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Technique is the cuDNN technique.
type Technique struct{}

func (Technique) Name() string { return "cudnn" }
func (Technique) Doc() string  { return "NVIDIA's vendor library, the yardstick; NVIDIA GPUs only" }

// Directs implements rnn.Director: one library call runs layers both ways. The library has no other
// direction but from the first step.
func (Technique) Directs(d rnn.Direction) bool { return d == rnn.BothWays }

// LongestFirst implements rnn.LongestFirst: the library packs the rows of a step with the longest
// sequence first.
func (Technique) LongestFirst() {}

// Knobs implements rnn.Technique.
func (Technique) Knobs(p rnn.Problem) []knob.Knob {
	return append([]knob.Knob{{
		Name: "algorithm", Values: []int{0, 1, 2, 3},
		Doc: "cuDNN algorithm: standard (0), persist static (1), persist dynamic (2), persist static for small hidden sizes (3)",
	}}, rnn.PaddingKnob(p)...)
}

// The persistent algorithms approximate sigmoids and hyperbolic tangents. On an H200 with cuDNN
// 9.14, some outputs were off by up to 7.2·10⁻⁶, a hundred times the error of the standard
// algorithm. unitError is the nearest power of two.
const (
	standard  = 0
	unitError = 0x1p-17
)

// Plan implements rnn.Technique.
func (Technique) Plan(p *rnn.Plan, k knob.Params) error {
	switch p.Cell {
	case cell.RNNTanh, cell.RNNReLU, cell.GRU, cell.LSTM:
	default:
		return fmt.Errorf("%w: cuDNN does not support cell %v", schedule.ErrCell, p.Cell)
	}
	if p.Resets > 0 {
		return fmt.Errorf("%w: cuDNN cannot reset states within a sequence, but resets are %d%%: set resets to none", schedule.ErrResets, p.Resets)
	}
	if p.Heads > 1 {
		return fmt.Errorf("%w: cuDNN does not support heads", schedule.ErrHeads)
	}
	if p.Projection > 0 {
		return fmt.Errorf("%w: rnnbench runs cuDNN without a projection: set projection to none", schedule.ErrProjection)
	}
	if p.OneHot {
		return fmt.Errorf("%w: cuDNN does not support one-hot input", schedule.ErrInput)
	}
	if p.Pass == rnn.Train && p.Symbols > 0 && k["batchsizes"] == 1 {
		return fmt.Errorf("%w: cuDNN may leave gradients of padding unwritten, and an embedding would add them up: set batchsizes to 0", schedule.ErrKnob)
	}
	if k["algorithm"] != standard {
		p.UnitError = unitError
	}
	w := p.AsWhole()
	forward := schedule.Vendor{
		Stack: schedule.Stack{
			Cell: p.Cell, Algorithm: k["algorithm"], Both: p.Direction == rnn.BothWays, Steps: p.Steps, Lengths: longestFirst(p.Problem),
			X: p.X.All(), Y: w.Y.All(), First: views(w.First),
		},
		Last: views(w.Last),
	}
	for _, y := range p.Layer {
		forward.W, forward.R = append(forward.W, y.W.All()), append(forward.R, y.R.All())
		forward.BX, forward.BR = append(forward.BX, y.BX.All()), append(forward.BR, y.BR.All())
	}
	if p.Pass == rnn.Train {
		forward.Kept = p.Packed("kept", 1, 1).All()
	}
	p.Do(0, forward)
	if h := p.Head; h != nil {
		logits := h.Prob.All()
		p.Do(0, schedule.Gemm{A: w.Y.All(), B: h.W.All(), TransB: true, C: logits})
		p.Do(0, schedule.Map{Op: cell.Add, Out: logits, A: logits, B: h.B.All()})
		p.Do(0, p.Loss(0, p.Steps))
	}
	if p.Pass == rnn.Train {
		backward(p, w, forward.Stack)
	}
	return nil
}

func backward(p *rnn.Plan, w *rnn.Whole, s schedule.Stack) {
	p.Cut()
	if h := p.Head; h != nil {
		p.Do(0, schedule.Gemm{A: h.Prob.All(), B: h.W.All(), C: h.DY.All()})
	}
	op := schedule.VendorBackward{Stack: s, DY: p.Top().All(), DX: p.DX.All(), DFirst: views(w.Grad)}
	for _, y := range p.Layer {
		op.DW, op.DR = append(op.DW, y.Grad.W.All()), append(op.DR, y.Grad.R.All())
		op.DBX, op.DBR = append(op.DBX, y.Grad.BX.All()), append(op.DBR, y.Grad.BR.All())
	}
	p.Do(0, op)
	if h := p.Head; h != nil {
		p.Do(0, schedule.Gemm{A: h.Prob.All(), TransA: true, B: w.Y.All(), C: h.DW.All()})
		p.Do(0, schedule.SumRows{A: h.Prob.All(), Out: h.DB.All()})
	}
}

// longestFirst returns the lengths of p's sequences, longest first; nil if all have all steps.
func longestFirst(p rnn.Problem) []int {
	lengths := rnn.SequenceLengths(p)
	slices.Reverse(lengths)
	return lengths
}

func views(ms []*schedule.Matrix) []schedule.View {
	var vs []schedule.View
	for _, m := range ms {
		vs = append(vs, m.All())
	}
	return vs
}
