package rnn

import (
	"fmt"
	"slices"

	"rnnbench/rnn/schedule"
)

// A Result is one named part of the answer, and where a plan's schedule leaves it. Names follow
// Data: h_l0 and c_l0 are the states after each step, kept steps included. y is the output of all
// layers where the problem Joins. unprojected_l0 is what the projection to h_l0 reads; a
// Whole leaves out all its steps. grad_ before a parameter's name is its gradient, and dx is that of
// the input. loss and prob belong to the output layer, and dense is
// what a fully connected layer gives to it. conv0 is what the first convolution gives; with convolutions there is
// no dx.
type Result struct {
	Name        string
	View        schedule.View // empty, but for its columns: the schedule leaves none of it
	First       int           // steps left out before the first row: 0, all but the last of each sequence, or all
	Later       int           // steps left out after the last row, where a layer reads from the last step: 0, or all but the first
	PerSequence bool          // rows are steps × sequences
	Gradient    bool

	flipped bool // rows of the last step come first
	initial bool // rows are sequences
}

// Answer lists where a plan's schedule leaves each part of the answer.
func (p *Plan) Answer() []Result {
	var out []Result
	add := func(name string, v schedule.View, perSequence, gradient bool) {
		if !v.Empty() {
			out = append(out, Result{Name: name, View: v, PerSequence: perSequence, Gradient: gradient})
		}
	}
	for l, layer := range p.Layer {
		name := func(s string) string { return p.Named(s, l) }
		for i, s := range p.Cell.States {
			v := p.shows(l, i)
			add(name(s), v.after, true, false)
			r := &out[len(out)-1]
			switch r.flipped = v.flipped; {
			case v.all:
			case p.Backwards(l):
				r.Later = p.Steps - 1
			default:
				r.First = p.Steps - 1
			}
		}
		if layer.Projection != nil {
			out = append(out, unprojected(p, l))
		}
		if p.Pass != Train {
			continue
		}
		g := layer.Grad
		add(name("grad_weight_ih"), g.W.All(), false, true)
		add(name("grad_weight_hh"), Maybe(g.R), false, true)
		add(name("grad_bias_ih"), g.BX.All(), false, true)
		add(name("grad_bias_hh"), Maybe(g.BR), false, true)
		add(name("grad_peephole"), Maybe(g.Peep), false, true)
		if j := layer.Projection; j != nil {
			add(name("grad_weight_hr"), j.DW.All(), false, true)
		}
		if m := layer.Norm; m != nil {
			add(name("grad_gain_ih"), m.DX.All(), false, true)
			add(name("grad_gain_hh"), m.DR.All(), false, true)
		}
		if m := layer.BatchNorm; m != nil {
			add(name("grad_gain_ih"), m.DGain.All(), false, true)
		}
		if m := layer.Ahead; m != nil {
			add(name("grad_weight_ahead"), m.DW.All(), false, true)
		}
		for i, s := range p.Cell.States {
			add(name("grad_"+s+"0"), p.shows(l, i).grad, true, true)
			out[len(out)-1].initial = true
		}
	}
	p.ends(add)
	return out
}

// ends lists the parts of the answer that belong to no recurrent layer.
func (p *Plan) ends(add func(name string, v schedule.View, perSequence, gradient bool)) {
	for i, y := range p.Convolutions {
		add(fmt.Sprintf("conv%d", i), y.Out.All(), true, false)
		if p.Pass == Train {
			add(fmt.Sprintf("grad_weight_conv%d", i), y.DW.All(), false, true)
			add(fmt.Sprintf("grad_bias_conv%d", i), y.DB.All(), false, true)
		}
	}
	add("y", p.Y, true, false)
	if h := p.Head; h != nil {
		if h.Dense != nil {
			add("dense", h.Dense.Out.All(), true, false)
		}
		add("loss", h.Loss.All(), true, false)
		if p.Pass == Train {
			if h.Dense != nil {
				add("grad_weight_dense", h.Dense.DW.All(), false, true)
				add("grad_bias_dense", h.Dense.DB.All(), false, true)
			}
			add("grad_weight_out", h.DW.All(), false, true)
			add("grad_bias_out", h.DB.All(), false, true)
		} else {
			add("prob", h.Prob.All(), true, false)
		}
	}
	if e := p.Embed; e != nil {
		add("grad_embedding", Maybe(e.Grad), false, true)
	}
	if p.Conv == "" {
		add("dx", Maybe(p.DX), true, true)
	}
}

// Results maps each part of the answer that the schedule leaves to the matrix that holds it.
func (p *Plan) Results() map[string]*schedule.Matrix {
	out := map[string]*schedule.Matrix{}
	for _, r := range p.Answer() {
		if !r.View.Empty() {
			out[r.Name] = r.View.M
		}
	}
	return out
}

// ReadAnswer visits the parts of the answer where the plan's schedule leaves them. values are those
// of so many rows, in the order of steps and sequences; the next visit overwrites them.
func (p *Plan) ReadAnswer(mem Memory, visit func(r Result, rows int, values []float32) error) error {
	var all, moved []float32
	for _, r := range p.Answer() {
		if r.View.Empty() {
			if err := visit(r, r.View.Rows, nil); err != nil {
				return err
			}
			continue
		}
		all = slices.Grow(all[:0], r.View.M.Elements())[:r.View.M.Elements()]
		if err := mem.Read(r.View.M, all); err != nil {
			return err
		}
		rows, cols, values := r.View.Rows, r.View.Cols, valuesOf(r.View, all)
		switch even := p.Batches.Even(); {
		case !even && r.PerSequence && rows == p.Batches.Before(p.Steps) && !r.initial:
			values, rows = p.Batches.unpack(values, cols, r.flipped), p.Steps*p.Batch
		case !even && r.PerSequence && rows == p.Batch:
			values = p.Batches.reorder(values, cols)
		case r.flipped:
			reverseBlocks(values, p.Batch*cols)
		}
		if err := visit(r, rows, p.turn.back(r, rows, values, &moved)); err != nil {
			return err
		}
	}
	return nil
}

// valuesOf narrows all values of v's matrix to those of v.
func valuesOf(v schedule.View, all []float32) []float32 {
	wide := v.M.Cols
	all = all[v.Row*wide : (v.Row+v.Rows)*wide]
	if v.Cols == wide {
		return all
	}
	out := make([]float32, 0, v.Rows*v.Cols)
	for at := v.Col; at < len(all); at += wide {
		out = append(out, all[at:at+v.Cols]...)
	}
	return out
}
