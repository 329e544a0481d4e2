// Package oracle knows the right answer to a problem, and whether an answer is right.
//
// The right answer is computed in double precision: Reference. Compare holds an answer to it.
// Tolerances follow from a measure of the errors that an honest evaluation makes. Where the
// reference would take too long, Stepwise checks each step by what the run left of the step before.
package oracle

import (
	"strings"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
)

// Reference computes the network's answer in double precision in the plainest way: step by step,
// term by term, the cell by its equations. Every technique is compared with it. It saves time in
// three ways only: it uses all processors, computes equal sequences once, and forms several sums at
// a time, each term by term. The backward pass is that of section 2.6 of Appleyard et al.:
// gradients through time first, weights after.
func Reference(d *rnn.Data) []Tensor {
	return answerOf(newReference(d))
}

// answerOf is Reference for r, which has computed nothing yet.
func answerOf(r *reference) []Tensor {
	r.forward()
	if r.p.Pass == rnn.Train {
		r.backward()
	}
	return r.expected()
}

// expected is the answer, with d as the measure of its errors.
func (r *reference) expected() []Tensor {
	out := r.answer()
	for i := range out {
		out[i].data, out[i].alone = r.Data, r.run != nil && strings.Contains(out[i].Name, "_l")
	}
	return out
}

func newReference(d *rnn.Data) *reference {
	return &reference{Data: d, p: d.Problem, rows: d.Problem.Frames() * d.Distinct, fresh: d.Problem.Steps * d.Distinct}
}

// ReferenceFLOPs estimates the work of Reference for p with so many distinct
// sequences.
func ReferenceFLOPs(p rnn.Problem, distinct int) int64 {
	distinct = rnn.Distinct(p, distinct)
	p.Lengths = "" // it also computes steps that do not exist
	aligned := alignmentFLOPs * float64(alignments(p)) * float64(p.Steps) * float64(distinct)
	return int64(float64(p.FLOPs())/float64(p.Batch)*float64(distinct) + aligned)
}

// ReferenceBytes estimates the memory that Reference takes for p with so many
// distinct sequences, besides what parameters take: twice its values, since
// garbage grows as large before it is collected.
func ReferenceBytes(p rnn.Problem, distinct int) int64 {
	c := p.Cell
	perUnit := len(c.States) + len(c.Gates) + c.Recurrent + min(1, c.Inner)
	if p.Pass == rnn.Train {
		perUnit += c.Saved + len(c.Gates) + c.Recurrent
	}
	if kinked(p) {
		perUnit += 8 // variances, sides, reaches, and what the search for sides holds
	}
	values := p.Output + 4*p.Reads()*p.Projection // per step and sequence
	if p.Transcript > 0 {
		values += 3*p.Output + 2*alignments(p) // logarithms of probabilities, gradients twice, and variables
	}
	if p.Projection > 0 {
		perUnit++ // the gradient of what is projected
	}
	if p.Norm != "" {
		perUnit += len(c.Gates) + 2*c.Recurrent // normalised values, and gradients of products
	}
	for l := range p.Layers {
		values += p.Ways() * p.Hidden * perUnit
		if l > 0 || !p.OneHot {
			values += p.Ways() * (c.Window + 1) * p.Width(l)
		}
	}
	values += 4*rnn.RowConvolutions(p)*p.Out() + 3*p.Dense
	if all, _ := rnn.Convolutions(p); all != nil {
		for _, c := range all {
			values += 5*c.Cols() + 3*c.Wide*c.Taps() // sums, outputs, gradients and patches of a step of the kernel
		}
	}
	if p.Skip > 0 {
		values += 2 * (p.Layers / p.Skip) * p.Out() // outputs with what shortcuts add, and gradients
	}
	return 2 * 8 * int64(values) * int64(p.Frames()) * int64(rnn.Distinct(p, distinct))
}

type reference struct {
	*rnn.Data
	p      rnn.Problem
	rows   int        // steps × distinct sequences, those of the history included
	fresh  int        // without the history
	layers []refLayer // one for each of Problem.Reads

	loss, prob       []float64
	convolutions     []*refConvolution
	dense            *refDense // nil: no fully connected layer
	dLogits          []float64 // of losses with transcripts
	dWout, dBout, dx []float64
	dEmbed           []float64 // of the embedding

	kept  *keptSteps // nil: steps of the history are computed
	run   []Tensor   // the answer whose outputs layers read in place of those computed: see follow; nil: none
	lossy *rounding  // nil: nothing is rounded
	top   []float64  // output of the last layer, with what a shortcut adds
	dTop  []float64  // gradient of the last layer's output
}

// refLayer holds one layer's values. All but the gradients of parameters are per step and distinct
// sequence.
type refLayer struct {
	way
	in                     []float64   // rows × window·width; nil where one-hot
	state                  [][]float64 // one step more than rows; the initial state lies where the layer begins
	left                   []float64   // the outputs that others read: what the run left of them; nil: those of state
	saved                  []float64   // rows × saved·hidden
	dW, dR, dBX, dBR, dP   []float64
	dState                 [][]float64
	pre, dPre              []float64 // input pre-activations and their gradients, rows × gates·hidden
	rec, dRec              []float64 // the same of recurrent products, rows × recurrent gates·hidden
	inner                  []float64 // what inner gates multiply, rows × hidden
	dInner, dPassed        []float64 // of one step: distinct × hidden, and × passed·hidden
	weightX, weightR, peep []float32
	projection             *refProjection // nil: none
	norm                   *refNorm       // nil: none
	batchNorm              *refBatchNorm  // nil: none
	biasX, biasR           []float32
	lossy                  *rounding
	dIn                    []float64 // of the input, of this layer alone
	dAhead                 []float64 // of the weights of a row convolution behind the layer
	kinks                            // where they are asked for
}

func (r *reference) forward() {
	p := r.p
	var in []float64
	if !p.OneHot {
		in = convolved(r, features(r.Data))
	}
	pass := &bypass{p: p, from: in, ahead: aheadBy(r, asTheyAre)}
	for i := range p.Reads() {
		r.layers = append(r.layers, r.layer(i, in))
		r.layers[i].left = leftBy(r, i)
		if (i+1)%p.Ways() == 0 {
			in = outputOf(r, pass, i/p.Ways())
		}
	}
	r.top = in
	if v := p.Output; v > 0 {
		r.prob, r.loss = make([]float64, r.fresh*v), make([]float64, r.fresh)
		r.lossy.mulTransposed(r.prob, headInput(r), r.Get("weight_out"), r.fresh, v, rnn.HeadInput(p))
		bias := r.Get("bias_out")
		parallel.For(r.fresh, func(row int) {
			logits := r.prob[row*v : (row+1)*v]
			for k := range logits {
				logits[k] += float64(bias[k])
			}
			r.lossy.single(logits)
			if p.Transcript > 0 {
				return
			}
			class, _ := r.Class(row)
			r.loss[row] = softmax(logits, p.Groups, class)
			if !r.Exists(row) {
				clear(logits)
			}
			r.lossy.single(logits)
		})
		if p.Transcript > 0 {
			transcripts(r)
			r.lossy.single(r.prob)
			r.lossy.single(r.dLogits)
		}
		r.lossy.single(r.loss)
	}
}

// layer computes number i of Problem.Reads from its input in; that is nil if one-hot.
func (r *reference) layer(i int, in []float64) refLayer {
	p, b, h, l := r.p, r.Distinct, r.p.Hidden, i/r.p.Ways()
	gh, rh := len(p.Cell.Gates)*h, p.Cell.Recurrent*h
	outer := p.Cell.Outer() * h
	name := func(s string) string { return p.Named(s, i) }
	y := refLayer{way: wayOf(r, i), lossy: r.lossy, weightX: r.Get(name("weight_ih")), biasX: r.Get(name("bias_ih"))}
	if rh > 0 {
		y.weightR, y.biasR = wholeR(p, r.Get(name("weight_hh"))), r.Get(name("bias_hh"))
	}
	if len(p.Cell.Peeps) > 0 {
		y.peep = r.Get(name("peephole"))
	}
	y.projection, y.norm = projectionOf(r, &y, i), normOf(r, i)
	y.batchNorm = batchNormOf(r, i)
	for s, what := range p.Cell.States {
		state := make([]float64, (r.rows+b)*h)
		if s > 0 || y.projection == nil {
			copy(state[y.initial*h:], widen(r.Get(name(what+"0"))))
		}
		y.state = append(y.state, state)
	}
	if p.Cell.Inner > 0 {
		y.inner = make([]float64, r.rows*h)
	}
	y.pre, y.rec = make([]float64, r.rows*gh), make([]float64, r.rows*rh)
	if p.Pass == rnn.Train {
		y.saved = make([]float64, r.rows*p.Cell.Saved*h)
	}
	if l == 0 && p.OneHot {
		r.lookUp(y.way, func(row, at int) {
			for j, w := range y.weightX[at : at+gh] {
				y.pre[row*gh+j] += float64(w)
			}
		})
	} else {
		y.in = y.window(in, p.Cell.Window, p.Width(l))
		r.lossy.mulTransposed(y.pre, y.in, y.weightX, r.rows, gh, p.FanIn(l))
	}
	r.lossy.store(y.pre)
	if y.norm != nil {
		y.norm.input.forward(r.lossy, y.pre, y.pre, 0, gh)
	}
	y.batchNorm.forward(r, y.pre)
	first := r.recall(&y, l)
	if y.unitsAlone() {
		r.lanes(func(j, from, to int) {
			v := newEvaluator(r, &y, nil)
			for k := first; k < p.Frames(); k++ {
				v.forward(y.step(k), j, from, to)
			}
		})
		return y
	}
	for k := first; k < p.Frames(); k++ {
		t := y.step(k)
		recur(r, &y, t, y.through(p, t*b, (t+1)*b), 0, outer)
		if outer < rh {
			inner := y.inner[t*b*h : (t+1)*b*h]
			r.units(func(j, from, to int) { newEvaluator(r, &y, nil).innerValues(t, j, from, to) })
			r.lossy.store(inner)
			if p.Cell.Normalised {
				y.norm.inner.forward(r.lossy, inner, y.rec[t*b*rh+outer:], t*b, rh)
			} else {
				recur(r, &y, t, inner, outer, rh)
			}
		}
		r.units(func(j, from, to int) { newEvaluator(r, &y, nil).forward(t, j, from, to) })
		y.project(t)
	}
	return y
}

// window puts the inputs of the n steps of the cell's window side by side: the present step's, then
// that of the step before it, and so on; 0 before the first step.
func (y way) window(in []float64, n, width int) []float64 {
	out := make([]float64, y.rows*n*width)
	for row := range y.rows {
		for k := range n {
			if from, ok := y.earlier(row, k); ok {
				copy(out[(row*n+k)*width:], in[from*width:(from+1)*width])
			}
		}
	}
	return out
}

// lookUp visits the table rows that each row of a one-hot input reads, one for each step of the
// window; at is where the table row begins.
func (r *reference) lookUp(y way, visit func(row, at int)) {
	x, gh := r.Get("x"), len(r.p.Cell.Gates)*r.p.Hidden
	for row := range x {
		for k := range r.p.Cell.Window {
			if from, ok := y.earlier(row, k); ok {
				visit(row, (k*r.p.Input+int(x[from]))*gh)
			}
		}
	}
}
