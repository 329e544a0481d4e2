package oracle

import (
	"fmt"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// unwindow adds the gradients of window's output up to those of its input.
func (y way) unwindow(d []float64, n, width int) []float64 {
	out := make([]float64, y.rows*width)
	for row := range y.rows {
		for k := range n {
			if from, ok := y.earlier(row, k); ok {
				for i, v := range d[(row*n+k)*width : (row*n+k+1)*width] {
					out[from*width+i] += v
				}
			}
		}
	}
	return out
}

func (r *reference) backward() { r.backwardFrom(r.above()) }

// above is the gradient of the last layer's output.
func (r *reference) above() []float64 {
	p, h := r.p, r.p.Out()
	dout := make([]float64, r.rows*h)
	fresh := dout[(r.rows-r.fresh)*h:]
	if v := p.Output; v > 0 {
		lossGradients(r)
		r.lossy.store(r.prob)
		r.dWout = r.outer(r.prob, headInput(r), v, rnn.HeadInput(p))
		r.dBout = r.sum(r.prob, v)
		headBack(r, fresh)
	} else {
		copy(fresh, widen(r.Get("dy")))
	}
	r.dTop = fresh
	return dout
}

// lossGradients replaces probabilities by the gradients of logits.
func lossGradients(r *reference) {
	if r.p.Transcript > 0 {
		copy(r.prob, r.dLogits)
		return
	}
	v := r.p.Output
	for row := range r.fresh {
		class, weight := r.Class(row)
		lossGradient(r.prob[row*v:(row+1)*v], r.p.Groups, class, weight)
	}
}

// backwardFrom computes the gradients of all layers from that of the last one's output.
func (r *reference) backwardFrom(dout []float64) {
	p := r.p
	var by []float64 // what passes by the present module
	for l := p.Layers - 1; l >= 0; l-- {
		if _, ok := rnn.ShortcutTo(p, l); ok {
			by = dout
		}
		dout = aheadBack(r, l, dout)
		var below []float64
		for w := range p.Ways() {
			din := r.layerBack(l*p.Ways()+w, columns(dout, p.Out(), w*rnn.Emits(p), rnn.Emits(p)))
			if below == nil {
				below = din
				continue
			}
			for i, v := range din {
				below[i] += v
			}
		}
		dout = passedBy(r, l, below, by)
	}
	switch {
	case p.Conv != "":
		convolutionsBack(r, dout)
	case !p.OneHot:
		r.dx = dout
	}
	if p.Symbols > 0 {
		r.dEmbed = embeddingOf(r.Data, r.dx)
	}
}

// layerBack computes the gradients of number i of Problem.Reads from dout, that of its output. It
// returns that of its input; nil if the input is one-hot.
func (r *reference) layerBack(i int, dout []float64) []float64 {
	p, b, h, l := r.p, r.Distinct, r.p.Hidden, i/r.p.Ways()
	gh, rh := len(p.Cell.Gates)*h, p.Cell.Recurrent*h
	y := &r.layers[i]
	y.dPre = make([]float64, r.rows*gh)
	y.dRec = make([]float64, r.rows*rh)
	y.dP = make([]float64, b*len(p.Cell.Peeps)*h)
	y.dState = make([][]float64, len(p.Cell.States))
	for s := range y.dState {
		y.dState[s] = make([]float64, b*h)
	}
	y.dInner, y.dPassed = make([]float64, b*h), make([]float64, b*p.Cell.Passed()*h)
	dout = y.receive(p, dout)
	if y.unitsAlone() {
		lanesBack(r, y, dout)
	} else {
		stepsBack(r, y, dout)
	}
	y.dBX = r.sum(y.dPre, gh)
	if rh > 0 {
		y.dR, y.dBR = blocksOf(p, gradientOfR(r, y)), r.sum(y.dRec, rh)
	}
	if m := y.norm; m != nil {
		m.gains(r, y)
		m.input.backward(r.lossy, y.dPre, 0, gh, y.dPre)
	}
	y.batchNorm.backward(r, y.dPre)
	if j := y.projection; j != nil {
		j.dW = r.outer(j.d[y.after*j.width:][:r.rows*j.width], y.later(0, h), j.width, h)
	}
	if len(p.Cell.Peeps) > 0 {
		y.dP = r.sum(y.dP, len(p.Cell.Peeps)*h)
	}
	if l == 0 && p.OneHot {
		y.dW = make([]float64, p.FanIn(l)*gh)
		r.lookUp(y.way, func(row, at int) {
			for k, g := range y.dPre[row*gh : (row+1)*gh] {
				y.dW[at+k] += g * r.Copies(row%b)
			}
		})
		return nil
	}
	y.dW = r.outer(y.dPre, y.in, gh, p.FanIn(l))
	dIn := make([]float64, r.rows*p.FanIn(l))
	r.lossy.mul(dIn, y.dPre, y.weightX, r.rows, gh, p.FanIn(l))
	y.dIn = y.unwindow(dIn, p.Cell.Window, p.Width(l))
	return y.dIn
}

// lanesBack runs the backward pass through time, of units alone.
func lanesBack(r *reference, y *refLayer, dout []float64) {
	p, h := r.p, r.p.Hidden
	r.lanes(func(j, from, to int) {
		v := newEvaluator(r, y, dout)
		for k := p.Frames() - 1; k >= 0; k-- {
			t := y.step(k)
			v.backward(p.Cell.Backward, t, j, from, to)
			row := t*r.Distinct + j
			if y.exists(row) && !p.Cell.DirectPrev(p.Cell.Through) {
				clear(y.dState[p.Cell.Through][j*h+from : j*h+to])
			}
			if y.restarts(row) {
				for _, d := range y.dState {
					clear(d[j*h+from : j*h+to])
				}
			}
		}
	})
}

// stepsBack runs the backward pass through time, step by step.
func stepsBack(r *reference, y *refLayer, dout []float64) {
	p, b, h := r.p, r.Distinct, r.p.Hidden
	gh, rh := len(p.Cell.Gates)*h, p.Cell.Recurrent*h
	outer := p.Cell.Outer() * h
	first, second := p.Cell.BackwardParts()
	back := func(t int, program cell.Program) {
		r.units(func(j, from, to int) { newEvaluator(r, y, dout).backward(program, t, j, from, to) })
		if !p.Cell.SplitGrad {
			for row := t * b; row < (t+1)*b; row++ {
				copy(y.dRec[row*rh:(row+1)*rh], y.dPre[row*gh:])
			}
		}
	}
	for k := p.Frames() - 1; k >= 0; k-- {
		t := y.step(k)
		y.projectBack(t, dout)
		back(t, first)
		if second != nil {
			clear(y.dInner)
			if p.Cell.Normalised {
				y.norm.inner.backward(r.lossy, y.dRec[t*b*rh+outer:], t*b, rh, y.dInner)
			} else {
				recurBack(r, y, t, y.dInner, outer, rh)
			}
			back(t, second)
		}
		if m := y.norm; m != nil {
			m.recurrent.backward(r.lossy, y.dRec[t*b*rh:], t*b, rh, m.dRec[t*b*outer:(t+1)*b*outer])
		}
		if y.carryBack(t, rh) {
			continue
		}
		through := y.dState[p.Cell.Through]
		if !p.Cell.DirectPrev(p.Cell.Through) {
			for j := range b {
				if y.exists(t*b + j) {
					clear(through[j*h : (j+1)*h])
				}
			}
		}
		recurBack(r, y, t, through, 0, outer)
		y.cutCarry(t, h)
	}
}

// answer lists the results in the order of rnn.Plan.Answer.
func (r *reference) answer() []Tensor {
	p, b, h := r.p, r.Distinct, r.p.Hidden
	gh, rh := len(p.Cell.Gates)*h, p.Cell.Recurrent*h
	var out []Tensor
	add := func(name string, rows, cols int, perSequence, gradient bool, v []float64) {
		out = append(out, Tensor{Name: name, Rows: rows, Cols: cols, PerSequence: perSequence, Gradient: gradient, Values: v})
	}
	for k, y := range r.layers {
		l, name := k/p.Ways(), func(s string) string { return p.Named(s, k) }
		for i, s := range p.Cell.States {
			add(name(s), r.rows, rnn.StateWidth(p, i), true, false, y.shown(i, h))
		}
		if y.projection != nil {
			add(name("unprojected"), r.rows, h, true, false, y.later(0, h))
		}
		if p.Pass != rnn.Train {
			continue
		}
		wr, wc := gh, p.FanIn(l)
		if l == 0 && p.OneHot {
			wr, wc = wc, wr
		}
		add(name("grad_weight_ih"), wr, wc, false, true, y.dW)
		if rh > 0 {
			add(name("grad_weight_hh"), p.Cell.Multiplied()*h, p.HeadUnits(), false, true, y.dR)
		}
		add(name("grad_bias_ih"), 1, gh, false, true, y.dBX)
		if rh > 0 {
			add(name("grad_bias_hh"), 1, rh, false, true, y.dBR)
		}
		if n := len(p.Cell.Peeps); n > 0 {
			add(name("grad_peephole"), 1, n*h, false, true, y.dP)
		}
		if j := y.projection; j != nil {
			add(name("grad_weight_hr"), j.width, h, false, true, j.dW)
		}
		if m := y.norm; m != nil {
			add(name("grad_gain_ih"), 1, gh, false, true, m.dGainX)
			add(name("grad_gain_hh"), 1, rh, false, true, m.dGainR)
		}
		if m := y.batchNorm; m != nil {
			add(name("grad_gain_ih"), 1, gh, false, true, m.dGain)
		}
		if y.dAhead != nil {
			add(name("grad_weight_ahead"), p.Lookahead, p.Out(), false, true, y.dAhead)
		}
		for i, s := range p.Cell.States {
			add(name("grad_"+s+"0"), b, rnn.StateWidth(p, i), true, true, y.shownGrad(i, b))
		}
	}
	answerEnds(r, add)
	return out
}

// answerEnds lists the results that belong to no recurrent layer.
func answerEnds(r *reference, add func(name string, rows, cols int, perSequence, gradient bool, v []float64)) {
	p := r.p
	for i, y := range r.convolutions {
		add(y.name, r.fresh, y.Cols(), true, false, y.out)
		if p.Pass == rnn.Train {
			add(fmt.Sprintf("grad_weight_conv%d", i), y.Channels, y.Convolution.Steps*y.Taps(), false, true, y.dW)
			add(fmt.Sprintf("grad_bias_conv%d", i), 1, y.Channels, false, true, y.dB)
		}
	}
	if rnn.Joins(p) {
		add("y", r.rows, p.Out(), true, false, r.top)
	}
	if v := p.Output; v > 0 {
		if r.dense != nil {
			add("dense", r.fresh, p.Dense, true, false, r.dense.out)
		}
		add("loss", len(r.loss), 1, true, false, r.loss)
		if p.Pass == rnn.Train {
			if y := r.dense; y != nil {
				add("grad_weight_dense", p.Dense, p.Out(), false, true, y.dW)
				add("grad_bias_dense", 1, p.Dense, false, true, y.dB)
			}
			add("grad_weight_out", v, rnn.HeadInput(p), false, true, r.dWout)
			add("grad_bias_out", 1, v, false, true, r.dBout)
		} else {
			add("prob", r.fresh, v, true, false, r.prob)
		}
	}
	if r.dEmbed != nil {
		add("grad_embedding", p.Symbols, p.Embedding, false, true, r.dEmbed)
	}
	if r.dx != nil {
		add("dx", r.rows, p.Input, true, true, r.dx)
	}
}

// outer is gᵀ·in summed over all steps and sequences of the batch: rows of g
// and in are distinct sequences, each counted as often as the batch repeats it.
func (r *reference) outer(g, in []float64, gcols, icols int) []float64 {
	if v := r.lossy; v != nil {
		return widen(outer(r, v.operands(g, gcols), v.operands(in, icols), gcols, icols))
	}
	return outer(r, g, in, gcols, icols)
}

func outer[F float32 | float64](r *reference, g, in []F, gcols, icols int) []F {
	out := make([]F, gcols*icols)
	rows := len(g) / gcols
	parallel.For(gcols, func(k int) {
		o := out[k*icols : (k+1)*icols]
		factor := func(row int) F { return g[row*gcols+k] * F(r.Copies(row%r.Distinct)) }
		row := 0
		for ; row+4 <= rows; row += 4 {
			f0, f1, f2, f3 := factor(row), factor(row+1), factor(row+2), factor(row+3)
			v0, v1, v2, v3 := four(in[row*icols:], icols)
			for i := range o {
				o[i] = o[i] + f0*v0[i] + f1*v1[i] + f2*v2[i] + f3*v3[i]
			}
		}
		for ; row < rows; row++ {
			f := factor(row)
			for i, v := range in[row*icols : (row+1)*icols] {
				o[i] += f * v
			}
		}
	})
	return out
}

// sum is the sum of g's rows over all steps and sequences of the batch.
func (r *reference) sum(g []float64, cols int) []float64 {
	out := make([]float64, cols)
	for row := range len(g) / cols {
		n := r.Copies(row % r.Distinct)
		if r.lossy != nil {
			r.lossy.sum(out, g[row*cols:(row+1)*cols], int(n))
			continue
		}
		for k, v := range g[row*cols : (row+1)*cols] {
			out[k] += v * n
		}
	}
	return out
}
