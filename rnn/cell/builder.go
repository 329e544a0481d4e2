package cell

import "fmt"

// A builder writes a cell's forward program, each operation yielding a value
// that later operations name.
type builder struct {
	p     Program
	temps int
}

func (b *builder) do(op Op, args ...Ref) Ref {
	in := with(Instr{Op: op, Out: Ref{Temp, b.temps}}, args)
	b.temps++
	b.p = append(b.p, in)
	return in.Out
}

func (b *builder) add(x, y Ref) Ref { return b.do(Add, x, y) }
func (b *builder) mul(x, y Ref) Ref { return b.do(Mul, x, y) }

// input and recurrent are a gate's pre-activations with their biases; gate is
// the sum of both.
func (b *builder) input(g int) Ref     { return b.add(Ref{X, g}, Ref{BX, g}) }
func (b *builder) recurrent(g int) Ref { return b.add(Ref{R, g}, Ref{BR, g}) }
func (b *builder) gate(g int) Ref      { return b.add(b.input(g), b.recurrent(g)) }

// next makes value v, just computed, the next state s.
func (b *builder) next(s int, v Ref) Ref { return b.rename(v, Ref{Next, s}) }

// inner makes value v, just computed, the one that the recurrent products of inner gates multiply.
func (b *builder) inner(v Ref) Ref { return b.rename(v, Ref{Inner, 0}) }

func (b *builder) rename(v, to Ref) Ref {
	last := &b.p[len(b.p)-1]
	if last.Out != v || v.Kind != Temp {
		panic(fmt.Sprintf("cell: %v is not the value just computed", v))
	}
	last.Out = to
	return to
}

// inference is p without values kept for a backward pass.
func (p Program) inference() Program {
	temps := p.Temps()
	return p.renamed(func(r Ref) Ref {
		if r.Kind == Saved {
			return Ref{Temp, temps + r.Index}
		}
		return r
	})
}
