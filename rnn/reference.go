package rnn

import (
	"fmt"
	"runtime"

	"rnnbench/rnn/cell"
)

// Reference computes the network's answer in double precision in the plainest way: step by step,
// term by term, the cell by its equations. Every technique is compared with it. It saves time in
// three ways only: it uses all processors, computes equal sequences once, and forms several sums at
// a time, each term by term. The backward pass is that of section 2.6 of Appleyard et al.:
// gradients through time first, weights after.
func Reference(d *Data) []Tensor {
	r := newReference(d)
	r.forward()
	if r.p.Pass == Train {
		r.backward()
	}
	return r.answer()
}

func newReference(d *Data) *reference {
	return &reference{Data: d, p: d.Problem, rows: d.Problem.Frames() * d.Distinct, fresh: d.Problem.Steps * d.Distinct}
}

// ReferenceFLOPs estimates the work of Reference for p with so many distinct
// sequences.
func ReferenceFLOPs(p Problem, distinct int) int64 {
	distinct = distinctOf(p, distinct)
	p.Lengths = "" // it also computes steps that do not exist
	return int64(float64(p.FLOPs()) / float64(p.Batch) * float64(distinct))
}

// ReferenceBytes estimates the memory that Reference takes for p with so many
// distinct sequences, besides what parameters take: twice its values, since
// garbage grows as large before it is collected.
func ReferenceBytes(p Problem, distinct int) int64 {
	c := p.Cell
	perUnit := len(c.States) + len(c.Gates) + c.Recurrent
	if p.Pass == Train {
		perUnit += c.Saved + len(c.Gates) + c.Recurrent
	}
	if p.kinked() {
		perUnit += 8 // variances, sides, reaches, and what the search for sides holds
	}
	values := p.Output + 4*p.Reads()*p.Projection // per step and sequence
	if p.Projection > 0 {
		perUnit++ // the gradient of what is projected
	}
	for l := range p.Layers {
		values += p.Ways() * p.Hidden * perUnit
		if l > 0 || !p.OneHot {
			values += p.Ways() * (c.Window + 1) * p.Width(l)
		}
	}
	return 2 * 8 * int64(values) * int64(p.Frames()) * int64(distinctOf(p, distinct))
}

type reference struct {
	*Data
	p      Problem
	rows   int        // steps × distinct sequences, those of the history included
	fresh  int        // without the history
	layers []refLayer // one for each of Problem.Reads

	loss, prob       []float64
	dWout, dBout, dx []float64
	dEmbed           []float64 // of the embedding

	kept *keptSteps // nil: steps of the history are computed
}

// refLayer holds one layer's values. All but the gradients of parameters are per step and distinct
// sequence.
type refLayer struct {
	way
	in                     []float64   // rows × window·width; nil where one-hot
	state                  [][]float64 // one step more than rows; the initial state lies where the layer begins
	saved                  []float64   // rows × saved·hidden
	dW, dR, dBX, dBR, dP   []float64
	dState                 [][]float64
	pre, dPre              []float64 // input pre-activations and their gradients, rows × gates·hidden
	rec, dRec              []float64 // the same of recurrent products, rows × recurrent gates·hidden
	weightX, weightR, peep []float32
	projection             *refProjection // nil: none
	biasX, biasR           []float32
	kinks                  // where they are asked for
}

func (r *reference) forward() {
	p := r.p
	var in []float64
	if !p.OneHot {
		in = r.features()
	}
	for i := range p.Reads() {
		r.layers = append(r.layers, r.layer(i, in))
		if (i+1)%p.Ways() == 0 {
			in = r.outputs(i / p.Ways())
		}
	}
	if v := p.Output; v > 0 {
		r.prob, r.loss = make([]float64, r.fresh*v), make([]float64, r.fresh)
		mulTransposed(r.prob, in[(r.rows-r.fresh)*p.Out():], r.Get("weight_out"), r.fresh, v, p.Out())
		bias := r.Get("bias_out")
		parallel(r.fresh, func(row int) {
			logits := r.prob[row*v : (row+1)*v]
			for k := range logits {
				logits[k] += float64(bias[k])
			}
			class, _ := r.classAt(row)
			r.loss[row] = softmax(logits, p.Groups, class)
			if !r.exists(row) {
				clear(logits)
			}
		})
	}
}

// layer computes number i of Problem.Reads from its input in; that is nil if one-hot.
func (r *reference) layer(i int, in []float64) refLayer {
	p, b, h, l := r.p, r.Distinct, r.p.Hidden, i/r.p.Ways()
	gh, rh := len(p.Cell.Gates)*h, p.Cell.Recurrent*h
	name := func(s string) string { return p.Named(s, i) }
	y := refLayer{way: wayOf(r, i), weightX: r.Get(name("weight_ih")), biasX: r.Get(name("bias_ih"))}
	if rh > 0 {
		y.weightR, y.biasR = wholeR(p, r.Get(name("weight_hh"))), r.Get(name("bias_hh"))
	}
	if len(p.Cell.Peeps) > 0 {
		y.peep = r.Get(name("peephole"))
	}
	y.projection = projectionOf(r, &y, i)
	for s, what := range p.Cell.States {
		state := make([]float64, (r.rows+b)*h)
		if s > 0 || y.projection == nil {
			copy(state[y.initial*h:], widen(r.Get(name(what+"0"))))
		}
		y.state = append(y.state, state)
	}
	y.pre, y.rec = make([]float64, r.rows*gh), make([]float64, r.rows*rh)
	if p.Pass == Train {
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
		mulTransposed(y.pre, y.in, y.weightX, r.rows, gh, p.FanIn(l))
	}
	for k := r.recall(&y, l); k < p.Frames(); k++ {
		t := y.step(k)
		mulTransposed(y.rec[t*b*rh:(t+1)*b*rh], y.through(p, t*b, (t+1)*b), y.weightR, b, rh, Emits(p))
		r.units(func(j, from, to int) { r.cell(&y, t, j, from, to) })
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

// units runs f on ranges of units, for all distinct sequences in parallel.
func (r *reference) units(f func(j, from, to int)) {
	const few = 64 // fewer units are not worth another task
	h := r.p.Hidden
	parts := min((runtime.NumCPU()+r.Distinct-1)/r.Distinct, (h+few-1)/few)
	parallel(r.Distinct*parts, func(task int) {
		part := task % parts
		f(task/parts, part*h/parts, (part+1)*h/parts)
	})
}

// cell advances units [from, to) of distinct sequence j by step t, by the equations. Where
// training, it also runs the forward program, for the values that the backward pass needs.
func (r *reference) cell(y *refLayer, t, j, from, to int) {
	c, h, b := r.p.Cell, r.p.Hidden, r.Distinct
	row := t*b + j
	at := r.vectors(y, row, nil, nil)
	x, rec := make([]float64, len(c.Gates)), make([]float64, c.Recurrent)
	peep := make([]float64, len(c.Peeps))
	prev, next := make([]float64, len(c.States)), make([]float64, len(c.States))
	anew := y.anew(row)
	if !y.exists(row) {
		y.keepStates(row, from, to, h)
		return
	}
	for u := from; u < to; u++ {
		for g := range c.Gates {
			x[g] = y.pre[(row*len(c.Gates)+g)*h+u] + float64(y.biasX[g*h+u])
			if g < c.Recurrent {
				rec[g] = y.rec[(row*c.Recurrent+g)*h+u] + float64(y.biasR[g*h+u])
			}
		}
		for k := range peep {
			peep[k] = float64(y.peep[k*h+u])
		}
		for s := range prev {
			if prev[s] = y.state[s][(row+y.before)*h+u]; anew {
				prev[s] = 0
			}
		}
		if y.saved != nil {
			c.Forward.Eval(at(u))
		}
		c.Equations(x, rec, peep, prev, next)
		for s := range next {
			y.state[s][(row+y.after)*h+u] = next[s]
		}
	}
}

// vectors returns, for each unit of row, where a program finds its values. carry and dout are for
// the backward program.
func (r *reference) vectors(y *refLayer, row int, carry [][]float64, dout []float64) func(u int) func(cell.Ref) *float64 {
	c, h, b := r.p.Cell, r.p.Hidden, r.Distinct
	temps := make([]float64, max(c.Forward.Temps(), c.Backward.Temps()))
	var constant [2]float64
	var none float64
	j, anew := row%b, y.anew(row)
	return func(u int) func(cell.Ref) *float64 {
		return func(ref cell.Ref) *float64 {
			i := ref.Index
			if y.side != nil && dout != nil && ref == y.at {
				return &y.side[row*h+u]
			}
			switch ref.Kind {
			case cell.X:
				return &y.pre[(row*len(c.Gates)+i)*h+u]
			case cell.R:
				return &y.rec[(row*c.Recurrent+i)*h+u]
			case cell.BX:
				constant[0] = float64(y.biasX[i*h+u])
				return &constant[0]
			case cell.BR:
				constant[1] = float64(y.biasR[i*h+u])
				return &constant[1]
			case cell.Peep:
				constant[1] = float64(y.peep[i*h+u])
				return &constant[1]
			case cell.Prev:
				if anew {
					none = 0
					return &none
				}
				return &y.state[i][(row+y.before)*h+u]
			case cell.Next:
				return &y.state[i][(row+y.after)*h+u]
			case cell.Saved:
				return &y.saved[(row*c.Saved+i)*h+u]
			case cell.Temp:
				return &temps[i]
			case cell.DOut:
				return &dout[row*h+u]
			case cell.DNext, cell.DPrev:
				return &carry[i][j*h+u]
			case cell.DX:
				return &y.dPre[(row*len(c.Gates)+i)*h+u]
			case cell.DR:
				return &y.dRec[(row*c.Recurrent+i)*h+u]
			case cell.DPeep:
				return &y.dP[(j*len(c.Peeps)+i)*h+u] // per sequence; summed with its copies at the end
			}
			panic(fmt.Sprintf("rnn: no vector %v", ref))
		}
	}
}
