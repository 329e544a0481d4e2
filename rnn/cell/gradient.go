package cell

import (
	"fmt"
	"slices"
)

// gradient derives the backward program of a forward program by reverse-mode differentiation. It
// reads the gradients of the next states (Next 0 also from DOut), what the forward pass saved, the
// states and the peepholes. It recomputes what can be computed from those. It writes DX of every
// gate and, if split, DR. It writes DPrev of every state that the cell itself reads, and adds to
// DPeep. For a Scanned cell, the gradients of peepholes are DX behind those of the gates instead.
// The first half of a step adds to the gradients that the second half has begun. A half writes DX and
// DR only of gates that it reads. It splits them if c.SplitGrad is set already.
func gradient(forward Program, c *Cell) (backward Program, split bool) {
	gates, recurrent, states := len(c.Gates), c.Recurrent, len(c.States)
	d := differ{}
	d.differentiate(forward, c)
	split = c.SplitGrad
	for g := range gates {
		x, r := d.adjoint[Ref{X, g}], d.adjoint[Ref{R, g}]
		if b := d.adjoint[Ref{BX, g}]; b != x {
			panic(fmt.Sprintf("cell: gate %d: the input bias has another gradient than the input", g))
		}
		split = split || g < recurrent && r != x
	}
	for g := range recurrent {
		if d.adjoint[Ref{BR, g}] != d.adjoint[Ref{R, g}] {
			panic(fmt.Sprintf("cell: gate %d: the recurrent bias has another gradient than the product", g))
		}
		split = split || g >= gates
	}
	for g := range max(gates, recurrent) {
		if a, ok := d.adjoint[Ref{X, g}]; ok {
			d.result(Ref{DX, g}, a)
		}
		if a, ok := d.adjoint[Ref{R, g}]; ok && split {
			d.result(Ref{DR, g}, a)
		}
	}
	for s := range states {
		if a, ok := d.adjoint[Ref{Prev, s}]; ok && a != (Ref{DNext, s}) {
			d.result(Ref{DPrev, s}, a)
		}
	}
	for k := 0; ; k++ {
		a, ok := d.adjoint[Ref{Peep, k}]
		if !ok {
			break
		}
		if c.sums {
			d.p = append(d.p, Instr{Op: Add, Out: Ref{DPeep, k}, A: Ref{DPeep, k}, B: a})
		} else {
			d.result(Ref{DX, gates + k}, a)
		}
	}
	return d.p.sharing(), split
}

// sharing makes backward program p right where DNext and DPrev of a state are one vector: a DNext that
// is read after its DPrev is written is copied first.
func (p Program) sharing() Program {
	temps, written, early := p.Temps(), map[Ref]bool{}, map[Ref]Ref{}
	var copies Program
	for _, in := range p {
		for _, a := range in.Args() {
			if early[a] == (Ref{}) && a.Kind == DNext && written[Ref{DPrev, a.Index}] {
				early[a] = Ref{Temp, temps + len(copies)}
				copies = append(copies, Instr{Op: Copy, Out: early[a], A: a})
			}
		}
		written[in.Out] = true
	}
	return append(copies, p.renamed(func(r Ref) Ref {
		if to, ok := early[r]; ok {
			return to
		}
		return r
	})...)
}

// differentiate goes through the forward program from its end and adds up the gradient of each value.
func (d *differ) differentiate(forward Program, c *Cell) {
	d.fixed, d.made, d.adjoint, d.source = map[Ref]bool{}, map[Ref]Ref{}, map[Ref]Ref{}, map[Ref]Instr{}
	for _, in := range forward {
		d.source[in.Out] = in
		d.fixed[in.Out] = in.Op == Const
	}
	for _, s := range c.Fixed {
		d.fixed[Ref{Next, s}] = true
	}
	if c.whole > 0 {
		d.adjoint[Ref{Next, 0}] = Ref{DOut, 0}
		for _, s := range c.carried {
			of := Ref{Prev, s}
			if s >= c.whole {
				of.Kind = Next
			}
			d.adjoint[of] = Ref{DNext, s}
		}
	} else {
		d.adjoint[Ref{Next, 0}] = d.do(Add, Ref{DOut, 0}, Ref{DNext, 0})
		for s := 1; s < len(c.States); s++ {
			if next := (Ref{Next, s}); !d.fixed[next] {
				d.adjoint[next] = Ref{DNext, s}
			}
		}
	}
	if c.Inner > 0 { // the product gives it a gradient
		d.adjoint[Ref{Inner, 0}] = Ref{DInner, 0}
	}
	for _, in := range slices.Backward(forward) {
		d.reverse(in)
	}
}

type differ struct {
	p       Program
	temps   int
	fixed   map[Ref]bool  // values that count as constants
	source  map[Ref]Instr // the instruction that computes each value of the forward pass
	made    map[Ref]Ref   // values of the forward pass, recomputed
	adjoint map[Ref]Ref   // gradient of each value, so far
	needed  map[Ref]bool  // if not nil: values that the gradient reads are noted here, and not recomputed
}

func (d *differ) do(op Op, args ...Ref) Ref {
	in := with(Instr{Op: op, Out: Ref{Temp, d.temps}}, args)
	d.temps++
	d.p = append(d.p, in)
	return in.Out
}

// value is a vector that holds v of the forward pass.
func (d *differ) value(v Ref) Ref {
	switch v.Kind {
	case Saved, Next, Prev, Peep, Inner:
		return v
	case Temp:
		if d.needed != nil {
			d.needed[v] = true
			return v
		}
		if w, ok := d.made[v]; ok {
			return w
		}
		in := d.source[v]
		args := in.Args()
		for i, a := range args {
			args[i] = d.value(a)
		}
		w := d.do(in.Op, args...)
		d.p[len(d.p)-1].Value = in.Value
		d.made[v] = w
		return w
	}
	panic(fmt.Sprintf("cell: the backward pass needs %v: save what it is used for", v))
}

// add adds g, or -g, to the gradient of v.
func (d *differ) add(v, g Ref, negative bool) {
	old, ok := d.adjoint[v]
	switch {
	case d.fixed[v]:
	case !ok && !negative:
		d.adjoint[v] = g
	case !ok:
		d.adjoint[v] = d.do(Neg, g)
	case !negative:
		d.adjoint[v] = d.do(Add, old, g)
	default:
		d.adjoint[v] = d.do(Sub, old, g)
	}
}

func (d *differ) reverse(in Instr) {
	g, ok := d.adjoint[in.Out]
	if !ok {
		return
	}
	switch in.Op {
	case Zero, Const:
	case Copy:
		d.add(in.A, g, false)
	case Neg, OneMinus:
		d.add(in.A, g, true)
	case Add:
		d.add(in.A, g, false)
		d.add(in.B, g, false)
	case Sub:
		d.add(in.A, g, false)
		d.add(in.B, g, true)
	case Mul:
		d.add(in.A, d.do(Mul, g, d.value(in.B)), false)
		d.add(in.B, d.do(Mul, g, d.value(in.A)), false)
	case Div:
		g = d.do(Div, g, d.value(in.B))
		d.add(in.A, g, false)
		d.add(in.B, d.do(Mul, g, d.value(in.Out)), true)
	case Sigmoid:
		d.add(in.A, d.do(SigmoidGrad, g, d.value(in.Out)), false)
	case Tanh:
		d.add(in.A, d.do(TanhGrad, g, d.value(in.Out)), false)
	case ReLU:
		d.add(in.A, d.do(ReLUGrad, g, d.value(in.Out)), false)
	case ReLUGrad: // in.A is chosen, or not, by in.B
		if !d.fixed[in.A] {
			d.add(in.A, d.do(ReLUGrad, g, d.value(in.B)), false)
		}
	case Exp:
		d.add(in.A, d.do(Mul, g, d.value(in.Out)), false)
	case Softplus:
		d.add(in.A, d.do(SoftplusGrad, g, d.value(in.Out)), false)
	case Sqrt:
		d.add(in.A, d.do(SqrtGrad, g, d.value(in.Out)), false)
	default:
		panic(fmt.Sprintf("cell: no gradient of %v", in.Op))
	}
}

// result has gradient g written to out: by the operation that computes g if no other result has
// claimed that, else by a copy.
func (d *differ) result(out, g Ref) {
	if g.Kind == Temp {
		for i := range d.p {
			if d.p[i].Out == g {
				d.p[i].Out = out
			}
			if d.p[i].A == g && d.p[i].Op.Operands() > 0 {
				d.p[i].A = out
			}
			if d.p[i].B == g && d.p[i].Op.Operands() > 1 {
				d.p[i].B = out
			}
		}
		for v, a := range d.adjoint {
			if a == g {
				d.adjoint[v] = out
			}
		}
		return
	}
	d.p = append(d.p, Instr{Op: Copy, Out: out, A: g})
}
