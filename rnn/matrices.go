package rnn

import "rnnbench/rnn/schedule"

// Matrices holds the parameters, inputs and results of a problem.
type Matrices struct {
	Problem

	// Given is the part of the input that the host writes: X itself or, with an embedding, F·B × (a
	// symbol and the features beside it), or with convolutions what these read.
	Given *schedule.Matrix

	X  *schedule.Matrix // F·B × I, or F·B × 1 symbols where OneHot; F counts History and T
	XN *schedule.Matrix // T·B × I, or T·B × 1: the new steps of X, where those of the history stay from run to run; else nil
	DY *schedule.Matrix // T·B × Out: gradient of the last layer's output, where training without output layer
	DX *schedule.Matrix // F·B × I: gradient of X, where training and not OneHot

	// Y is the output of the network, T·B × Out, where some layers read from the last step, or there are
	// shortcuts, row convolutions or transcripts; else empty.
	Y schedule.View

	Embed *Embedding // nil: no embedding

	Convolutions []*ConvolutionLayer // from the input on, which give X; nil: none

	Layer []Layer // one for each of Problem.Reads
	Head  *Head   // nil: no output layer
	Whole *Whole  // nil: the states of layers are in Layer, which may have Ends

	Updates *Updates // nil: a run changes no parameter

	flip *schedule.Matrix // T·B × 1, or of fewer steps: see flipSteps; nil where no rows are flipped

	Batches Batches // where the rows of steps lie
	uneven  *uneven // nil: all sequences have all steps

	resets []*resets // of layers that read from the first step, and of others; nil: no sequence begins anew
	turned bool      // the layers read from the last step

	// Views by layer, made once, on first use.
	steps   [][]schedule.View // per layer: the states before step 0, 1, …
	carries []carry           // per layer
}

// A carry is the running gradients of a layer's states; direct has those that the backward cell
// itself writes.
type carry struct{ all, direct []schedule.View }

// A Layer is one recurrent layer. Where training, Saved and the gradients are
// set as well.
type Layer struct {
	W      *schedule.Matrix   // G·H × window·I of the layer, see Taps; symbols × G·H where OneHot: a row per symbol
	R      *schedule.Matrix   // recurrent gates·H × H, or × units of a head, see Block, or × P of a projection; nil where there are none
	BX, BR *schedule.Matrix   // 1 × G·H, 1 × recurrent gates·H
	Peep   *schedule.Matrix   // 1 × peepholes·H; nil: none
	State  []*schedule.Matrix // (F+1)·B × H in the order of computing; the first B rows are the initial state; nil where there are Ends

	Ends *Ends // of a layer that is run in a Whole

	Projection *Projection // nil: the output is State[0]
	Inner      *Inner      // nil: the cell has no inner gates
	Norm       *Norm       // nil: products are not normalised within a step
	BatchNorm  *BatchNorm  // nil: input products are not normalised over the minibatch

	Ahead *RowConvolution // nil: none reads what the layer gives

	Saved *schedule.Matrix // F·B × saved·H; nil: nothing
	Grad  LayerGrad
	Back  *LayerBack // keeps the gradients of all steps; nil: the technique keeps none
}

// A LayerGrad holds the gradients of one layer's parameters.
type LayerGrad struct {
	W, R, BX, BR, Peep *schedule.Matrix

	// State carries the gradient of each state, B × H, from step to step and
	// ends as that of the initial state.
	State []*schedule.Matrix

	// Last is the given gradient of each state after the last step, B × its StateWidth; nil: 0.
	Last []*schedule.Matrix
}

// A Head is the output layer: softmax of W·h + b and the cross-entropy loss of
// each step of each sequence. The loss of a run is the mean over all of them, or their
// weighted sum. With transcripts, Target and Loss have a row for each sequence.
type Head struct {
	W       *schedule.Matrix // V × HeadInput
	B       *schedule.Matrix // 1 × V
	Target  *schedule.Matrix // T·B × 1 classes, or B × (1 + transcript): see transcript.go
	Weight  *schedule.Matrix // T·B × 1; nil: the mean
	Padding *schedule.Matrix // T·B × 1: see transcript.go; nil: there are no transcripts
	Prob    *schedule.Matrix // probabilities or, where training, the gradient of the logits
	Loss    *schedule.Matrix // T·B × 1, or B × 1

	Dense *Dense // in front of it; nil: none

	DW, DB *schedule.Matrix // where training
	DY     *schedule.Matrix // T·B × Out: gradient of the last layer's output, where training
}

// Rows views n steps of m, whose rows are steps × batch, from step t: see Batches.
func (p *Matrices) Rows(m *schedule.Matrix, t, n int) schedule.View {
	return m.Band(p.Batches.Before(t), p.Batches.Rows(t, n))
}

// InputOf views what layer l reads at steps [t, t+n).
func (p *Matrices) InputOf(l, t, n int) schedule.View {
	if l == 0 {
		return p.Rows(p.X, t, n)
	}
	return p.stateAfter(p.Layer[l-1].shown(0), t, n)
}

// stepViews views the states of layer l after t steps; t = 0 is the initial state.
func (p *Matrices) stepViews(l, t int) []schedule.View {
	if p.steps == nil {
		p.steps = make([][]schedule.View, p.Layers)
	}
	n := len(p.Cell.States)
	if p.steps[l] == nil {
		views := make([]schedule.View, 0, (p.Frames()+1)*n)
		for t := range p.Frames() + 1 {
			for _, m := range p.Layer[l].State {
				if t == 0 {
					views = append(views, m.Band(0, p.Batch))
				} else {
					views = append(views, p.stateAfter(m, t-1, 1))
				}
			}
		}
		p.steps[l] = views
	}
	return p.steps[l][t*n : (t+1)*n : (t+1)*n]
}

// Outputs views the last layer's outputs at steps [t, t+n).
func (p *Matrices) Outputs(t, n int) schedule.View {
	switch {
	case !p.Y.Empty():
		return p.Y.Band(p.Batches.Before(t), p.Batches.Rows(t, n))
	case p.Whole != nil:
		return p.Rows(p.Whole.Y, t, n)
	}
	return p.stateAfter(p.Layer[p.Layers-1].shown(0), t, n)
}

// Top is the gradient of the last layer's output, T·B × Out.
func (p *Matrices) Top() *schedule.Matrix {
	if p.Head != nil {
		return p.Head.DY
	}
	return p.DY
}

// Through views the state that layer l's recurrent product multiplies, before
// steps [t, t+n), which are a run: see Batches.
func (p *Matrices) Through(l, t, n int) schedule.View {
	return p.stateBefore(p.Layer[l].shown(p.Cell.Through), t, n)
}

// CarryThrough is the running gradient, at step t, of the state that the recurrent product
// multiplies. If written, the backward cell has set it, so the recurrent product must add.
func (p *Matrices) CarryThrough(l, t int) (carry schedule.View, written bool) {
	return p.Batches.Last(p.Layer[l].Grad.State[p.Cell.Through].All(), t), p.Cell.DirectPrev(p.Cell.Through)
}

// Carry views the running gradients of layer l's states at step t. direct views those that the
// backward cell itself writes; the others are empty.
func (p *Matrices) Carry(l, t int) (all, direct []schedule.View) {
	if p.carries == nil {
		p.carries = make([]carry, p.Layers)
	}
	c := &p.carries[l]
	if rows := p.Batches.At(t); c.all == nil || c.all[0].Rows != rows {
		*c = carry{} // new slices: callers hold the old ones
		for s, m := range p.Layer[l].Grad.State {
			v := p.Batches.Last(m.All(), t)
			c.all = append(c.all, v)
			if p.Cell.DirectPrev(s) {
				c.direct = append(c.direct, v)
			} else {
				c.direct = append(c.direct, schedule.View{})
			}
		}
	}
	return c.all, c.direct
}

// Maybe views all of m, or nothing where m is nil.
func Maybe(m *schedule.Matrix) schedule.View {
	if m == nil {
		return schedule.View{}
	}
	return m.All()
}

// FromInput narrows dx, the gradients of input products, to the gates that also have a recurrent
// product. Unless the cell splits its gradients, these are the gradients of the recurrent products
// too. It is empty where there are none.
func (p *Matrices) FromInput(dx schedule.View) schedule.View {
	if p.Cell.Recurrent == 0 {
		return schedule.View{}
	}
	return dx.Columns(0, p.Cell.Recurrent*p.Hidden)
}
