package rnn

import (
	"fmt"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A host program runs the backward pass apart from the forward pass. Between the two it computes the
// gradients of the outputs and of the last states.

// hosted counts what a technique does for a host program.
type hosted struct{ given, taken int } // gradients of last states

// LayoutHosted is Layout for a host program. The schedule of a training pass has a schedule.Pause
// before the backward pass, which begins with the gradients in LayerGrad.Last.
func LayoutHosted(t Technique, p Problem, k knob.Params) (*Plan, *schedule.Schedule, error) {
	if p.Output > 0 || p.History > 0 || p.Resets > 0 || p.Calls > 0 || p.OneHot || p.Symbols > 0 || p.Skip > 0 || p.Lookahead > 0 || p.Conv != "" || p.Norm != "" {
		return nil, nil, fmt.Errorf("rnn: %w: a host program runs plain layers, without embedding, output layer, shortcuts, convolutions, row convolution, norm, resets, history and calls", schedule.ErrUnsupported)
	}
	if err := needsVerifying(t, p, nil); err != nil {
		return nil, nil, err
	}
	plan, err := planned(t, p, k, kind{hosted: true})
	if err != nil {
		return nil, nil, err
	}
	if p.Pass == Train {
		if h := plan.hosted; h.taken < h.given {
			return nil, nil, fmt.Errorf("%s: %w: its backward pass cannot begin with gradients of last states", t.Name(), schedule.ErrUnsupported)
		}
		plan.Pause()
	}
	s, err := plan.Schedule()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", t.Name(), err)
	}
	return plan, s, nil
}

// KeepsWeights reports whether weights stay from run to run, until the program is prepared again: they
// do between calls, and in the forward passes of a host program.
func KeepsWeights(p *Plan) bool { return p.Calls > 0 || p.hosted != nil && p.Pass == Forward }

// host makes the matrices of the gradients of last states. With a projection, that of the output is
// part of the gradient of the outputs.
func (p *Plan) host() {
	p.hosted = &hosted{}
	if p.Pass != Train {
		return
	}
	for i := range p.Layer {
		for s, name := range p.Cell.States {
			var m *schedule.Matrix
			if s > 0 || p.Projection == 0 {
				m = p.Matrix(p.Named("d"+name+"_n", i), p.Batch, p.Hidden)
				p.hosted.given++
			}
			p.Layer[i].Grad.Last = append(p.Layer[i].Grad.Last, m)
		}
	}
}

// BeginCarry sets the running gradient of state s of layer l to that of the state after the last
// step: to 0 if none is given.
func (p *Plan) BeginCarry(l, s int) schedule.Map {
	g := p.Layer[l].Grad
	if g.Last == nil || g.Last[s] == nil {
		return schedule.Map{Op: cell.Zero, Out: g.State[s].All()}
	}
	p.hosted.taken++
	return schedule.Map{Op: cell.Copy, Out: g.State[s].All(), A: g.Last[s].All()}
}
