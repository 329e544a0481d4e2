package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

func recurrences(a *asm) {
	for _, r := range recurrenceRoutines() {
		compiler{elements{a}}.recurrence(r)
	}
}

// recurrence compiles one routine with its products: for each step, a loop over vectors of units.
// The products with the state before the step stay in registers for the program. A band's products
// with its own units come first, while the other bands' states are on their way.
func (a compiler) recurrence(r routine) {
	refs := catalog.Vectors(r.program)
	gates := 0
	for _, ref := range refs {
		if ref.Kind == cell.R {
			gates = max(gates, ref.Index+1)
		}
	}
	a.begin(r.name, "(s *Steps)", r.describe("over the units of each step, after the products r. Of At it takes")...)
	s := a.Load(a.Param("s"), a.GP64())
	p := &products{asm: a.asm, gates: gates, field: func(name string) gotypes.Component { return a.Param("s").Dereference(s).Field(name) }}
	if a.wide() {
		p.former = &former{asm: a.asm, field: p.field}
		p.former.begin()
	}
	i, n := a.GP64(), a.GP64()
	a.Label("step")
	if p.former != nil {
		p.former.last("done")
	} else {
		p.last("done")
	}
	p.ownFirst(i, n)
	a.Label("all")
	at := a.Load(p.field("At").Base(), a.GP64()).(reg.GPVirtual)
	a.units(r.program, p, at, i, n)
	a.Label("next")
	p.next(refs, at)
	a.JMP(operand.LabelRef("step"))
	a.Label("done")
	if p.former != nil {
		p.former.end()
	}
	a.end()
}

// last jumps after the last step of a run.
func (p *products) last(done string) {
	n, until := p.GP64(), p.GP64()
	p.Load(p.field("Count"), n)
	p.Load(p.field("Until"), until)
	p.CMPQ(n, until)
	p.JEQ(operand.LabelRef(done))
}

// ownFirst computes the products of a band with its own units, and then waits for the other bands.
func (p *products) ownFirst(i, n reg.GPVirtual) {
	p.Load(p.field("Own").Field("N"), n)
	p.TESTQ(n, n)
	p.JZ(operand.LabelRef("all"))
	p.mark()
	own := func(label string, vectors int) {
		p.begin(i, vectors)
		p.zero(0)
		k := p.GP64()
		p.Load(p.field("Own").Field("From"), k)
		p.skip(k)
		p.Load(p.field("Own").Field("N"), k)
		p.add(label, k)
		part := p.part(i)
		for g, v := range p.sum() {
			p.VMOVUPS(v, part.Offset(g*p.width*4))
		}
	}
	p.blocks("own", i, n, own)
	p.unlessLeft(n, "wait")
	own("ownlast", 1)
	p.Label("wait")
	p.await()
}

// blocks calls body for two vectors at once if Pairs says so, and then for single vectors, while
// enough units are left.
func (p *products) blocks(label string, i, n reg.GPVirtual, body func(label string, vectors int)) {
	p.XORQ(i, i)
	p.Load(p.field("Units"), n)
	for vectors := 2; vectors >= 1; vectors-- {
		units := operand.Imm(uint64(vectors * p.width))
		of := fmt.Sprint(label, vectors)
		if vectors > 1 {
			pairs := p.GP64()
			p.Load(p.field("Pairs"), pairs)
			p.TESTQ(pairs, pairs)
			p.JZ(operand.LabelRef(of + "none"))
		}
		p.SUBQ(units, n)
		p.JLT(operand.LabelRef(of + "done"))
		p.Label(of)
		body(of, vectors)
		p.ADDQ(units, i)
		p.SUBQ(units, n)
		p.JGE(operand.LabelRef(of))
		p.Label(of + "done")
		p.ADDQ(units, n)
		p.Label(of + "none")
	}
}

// unlessLeft jumps if no units are left.
func (p *products) unlessLeft(n reg.GPVirtual, to string) {
	p.TESTQ(n, n)
	p.JZ(operand.LabelRef(to))
}

// units runs the program over all units of a step, after their products.
func (a compiler) units(program cell.Program, p *products, at, i, n reg.GPVirtual) {
	place := places(program)
	vector := func(of int) func(cell.Ref) operand.Mem {
		return func(ref cell.Ref) operand.Mem {
			base := a.GP64()
			a.MOVQ(operand.Mem{Base: at, Disp: 8 * place[ref]}, base)
			if !a.wide() && ref.Kind == cell.X && of == 0 { // with vectors of a whole line it costs as much as it saves
				p.askFor(base, i, place[ref])
			}
			return operand.Mem{Base: base, Index: i, Scale: 4, Disp: 4 * a.width * of}
		}
	}
	first, rest := map[int][]cell.Ref{}, program
	if a.wide() { // with vectors of half a strip it costs more than it saves
		first, rest = aheadOf(program)
	}
	p.blocks("rest", i, n, func(label string, vectors int) {
		sums := p.rest(label+"all", i, vectors, func(gate, of int) []operand.Mem {
			var terms []operand.Mem
			for _, ref := range first[gate] {
				terms = append(terms, vector(of)(ref))
			}
			return terms
		})
		spill := !a.wide() && p.gates > 1 // the program needs their registers
		if spill {
			p.spill(sums[1:])
		}
		for of := range vectors {
			address := vector(of)
			if spill && of > 0 {
				sums[of] = p.fill(of - 1)
			}
			a.straight(rest, sums[of], func(ref cell.Ref) reg.VecVirtual { return a.load(address(ref)) },
				func(v reg.VecVirtual, ref cell.Ref) { a.VMOVUPS(v, address(ref)) })
		}
	})
	p.unlessLeft(n, "next")
	sums := p.rest("last", i, 1, func(int, int) []operand.Mem { return nil })
	a.tail(program, n, sums[0], vector(0))
}

// askFor prefetches the line of unit i of a vector at the next step. If a worker runs one of many
// sequences, steps lie too far apart for the hardware prefetcher.
func (p *products) askFor(base, i reg.GPVirtual, place int) {
	next := p.Load(p.field("By").Base(), p.GP64()).(reg.GPVirtual)
	p.MOVQ(operand.Mem{Base: next, Disp: 8 * place}, next)
	p.ADDQ(base, next)
	p.PREFETCHT0(operand.Mem{Base: next, Index: i, Scale: 4})
}

// spill stores the sums of vectors of units in memory, and fill loads those of one vector.
func (p *products) spill(sums []map[cell.Ref]reg.VecVirtual) {
	at := p.Load(p.field("Sums").Base(), p.GP64()).(reg.GPVirtual)
	for of := range sums {
		for g := range p.gates {
			p.VMOVUPS(sums[of][cell.Ref{Kind: cell.R, Index: g}], p.spilled(at, of, g))
		}
	}
}

func (p *products) fill(of int) map[cell.Ref]reg.VecVirtual {
	at := p.Load(p.field("Sums").Base(), p.GP64()).(reg.GPVirtual)
	sums := map[cell.Ref]reg.VecVirtual{}
	for g := range p.gates {
		sums[cell.Ref{Kind: cell.R, Index: g}] = p.load(p.spilled(at, of, g))
	}
	return sums
}

func (p *products) spilled(at reg.GPVirtual, of, gate int) operand.Mem {
	return operand.Mem{Base: at, Disp: 4 * p.width * (of*p.gates + gate)}
}

// next publishes that a step is done and moves on to the next one.
func (p *products) next(refs []cell.Ref, at reg.GPVirtual) {
	to, more := p.GP64(), p.GP64()
	p.Load(p.field("Turn"), more)
	p.INCQ(more)
	p.Store(more, p.field("Turn"))
	p.Load(p.field("Done"), to)
	p.MOVQ(more, operand.Mem{Base: to})
	p.Load(p.field("By").Base(), to)
	for k, ref := range refs {
		if ref.Kind != cell.R {
			p.MOVQ(operand.Mem{Base: to, Disp: 8 * k}, more)
			p.ADDQ(more, operand.Mem{Base: at, Disp: 8 * k})
		}
	}
	p.Load(p.field("State"), to)
	p.Load(p.field("StateBy"), more)
	p.ADDQ(more, to)
	p.Store(to, p.field("State"))
	p.Load(p.field("Count"), more)
	p.DECQ(more)
	p.Store(more, p.field("Count"))
}

// aheadOf returns, by gate, the vectors that a program adds to the recurrent product and to nothing
// else, and the rest of the program. The sums of the products start from these vectors, so that the
// program need not wait for additions after them.
func aheadOf(p cell.Program) (map[int][]cell.Ref, cell.Program) {
	terms, rest := map[int][]cell.Ref{}, cell.Program{}
	sum := func(i int, of, bias cell.Kind, gate int) bool {
		return i < len(p) && p[i].Op == cell.Add && p[i].A == cell.Ref{Kind: of, Index: gate} && p[i].B == cell.Ref{Kind: bias, Index: gate}
	}
	for i := 0; i < len(p); i++ {
		in := p[i]
		switch {
		case in.A.Kind == cell.X && sum(i, cell.X, cell.BX, in.A.Index) && sum(i+1, cell.R, cell.BR, in.A.Index) && i+2 < len(p) &&
			p[i+2].Op == cell.Add && p[i+2].A == in.Out && p[i+2].B == p[i+1].Out && in.Out.Kind == cell.Temp && p[i+1].Out.Kind == cell.Temp:
			terms[in.A.Index] = []cell.Ref{in.A, in.B, p[i+1].B}
			rest = append(rest, cell.Instr{Op: cell.Copy, Out: p[i+2].Out, A: p[i+1].A})
			i += 2
		case in.A.Kind == cell.R && sum(i, cell.R, cell.BR, in.A.Index):
			terms[in.A.Index] = []cell.Ref{in.B}
			rest = append(rest, cell.Instr{Op: cell.Copy, Out: in.Out, A: in.A})
		default:
			rest = append(rest, in)
		}
	}
	return terms, rest
}
