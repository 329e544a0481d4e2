package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"rnnbench/rnn/cell"
)

// recurrenceRoutines lists the forward programs of cells with recurrent products, each once.
func recurrenceRoutines() []routine {
	var all []routine
	for _, c := range cell.All() {
		if c.Recurrent > 0 {
			all = unique(all, c.Name, "Steps", []routine{
				{"Inference", "the inference pass of " + c.Name, c.Inference},
				{"Forward", "the forward pass of " + c.Name, c.Forward},
			})
		}
	}
	return all
}

func recurrences(a *asm) {
	for _, r := range recurrenceRoutines() {
		a.recurrence(r)
	}
}

// recurrence compiles one routine with its products: for each step a loop over vectors of units, whose
// products with the state before the step stay in registers for the program. What a band of units adds
// to its own products comes first, while the other bands' states are on their way.
func (a *asm) recurrence(r routine) {
	refs := vectors(r.program)
	place := map[cell.Ref]int{}
	var names []string
	gates := 0
	for i, ref := range refs {
		place[ref] = i
		names = append(names, ref.String())
		if ref.Kind == cell.R {
			gates = max(gates, ref.Index+1)
		}
	}
	doc := []string{
		fmt.Sprintf("is %s over the units of each step, after the products r. Of At it takes", r.doc),
		strings.Join(names, ", ") + ", and runs:", "",
	}
	for _, in := range r.program {
		doc = append(doc, "\t"+in.String())
	}
	a.begin(r.name, "(s *Steps)", doc...)
	s := a.Load(a.Param("s"), a.GP64())
	p := &products{asm: a, gates: gates, field: func(name string) gotypes.Component { return a.Param("s").Dereference(s).Field(name) }}
	for p.sets = 1; p.sets*gates < 6; { // FMA latency 4 × 1 or 2 ports
		p.sets *= 2
	}
	i, n := a.GP64(), a.GP64()

	a.Label("step")
	a.Load(p.field("Own").Field("N"), n)
	a.TESTQ(n, n)
	a.JZ(operand.LabelRef("all"))
	a.Load(p.field("Units"), n)
	a.XORQ(i, i)
	a.Label("own")
	p.begin(i)
	p.zero(0)
	own, k := a.GP64(), a.GP64()
	a.Load(p.field("Own").Field("From"), own)
	a.Load(p.field("Own").Field("N"), k)
	p.add("own", own, k)
	part := p.part(i)
	for g, v := range p.sum() {
		a.VMOVUPS(v, part.Offset(g*a.width*4))
	}
	a.ADDQ(operand.Imm(uint64(a.width)), i)
	a.CMPQ(i, n)
	a.JLT(operand.LabelRef("own"))
	p.await()

	a.Label("all")
	at := a.Load(p.field("At").Base(), a.GP64()).(reg.GPVirtual)
	address := func(ref cell.Ref) operand.Mem {
		base := a.GP64()
		a.MOVQ(operand.Mem{Base: at, Disp: 8 * place[ref]}, base)
		return operand.Mem{Base: base, Index: i, Scale: 4}
	}
	a.XORQ(i, i)
	a.Load(p.field("Units"), n)
	a.SUBQ(operand.Imm(uint64(a.width)), n)
	a.JLT(operand.LabelRef("tail"))
	a.Label("vectors")
	a.straight(r.program, p.rest("rest", i), func(ref cell.Ref) reg.VecVirtual { return a.load(address(ref)) },
		func(v reg.VecVirtual, ref cell.Ref) { a.VMOVUPS(v, address(ref)) })
	a.ADDQ(operand.Imm(uint64(a.width)), i)
	a.SUBQ(operand.Imm(uint64(a.width)), n)
	a.JGE(operand.LabelRef("vectors"))
	a.Label("tail")
	a.ADDQ(operand.Imm(uint64(a.width)), n)
	a.JZ(operand.LabelRef("next"))
	known := p.rest("last", i)
	a.tail(r.program, n, known, address)

	a.Label("next")
	to, more := a.GP64(), a.GP64()
	a.Load(p.field("Turn"), more)
	a.INCQ(more)
	a.Store(more, p.field("Turn"))
	a.Load(p.field("Done"), to)
	a.MOVQ(more, operand.Mem{Base: to})
	a.Load(p.field("By").Base(), to)
	for k, ref := range refs {
		if ref.Kind != cell.R {
			a.MOVQ(operand.Mem{Base: to, Disp: 8 * k}, more)
			a.ADDQ(more, operand.Mem{Base: at, Disp: 8 * k})
		}
	}
	a.Load(p.field("State"), to)
	a.Load(p.field("StateBy"), more)
	a.ADDQ(more, to)
	a.Store(to, p.field("State"))
	a.Load(p.field("Count"), more)
	a.DECQ(more)
	a.Store(more, p.field("Count"))
	a.JNZ(operand.LabelRef("step"))
	a.Label("done")
	a.end()
}

// products are those of a vector of units with the state: gates sums of vectors, each in so many sets.
type products struct {
	*asm
	gates, sets int
	field       func(name string) gotypes.Component

	sums    [][]reg.VecVirtual // set by set
	weights []reg.GPVirtual    // per gate, its first strip
	strip   reg.GPVirtual      // where that of the vector begins, in bytes
}

// begin is ahead of products of the vector of units from i on.
func (p *products) begin(i reg.GPVirtual) {
	table, unit := p.GP64(), p.GP64()
	p.strip, p.weights, p.sums = p.GP64(), nil, nil
	p.Load(p.field("Weights").Base(), table)
	for g := range p.gates {
		p.weights = append(p.weights, p.GP64())
		p.MOVQ(operand.Mem{Base: table, Disp: 8 * g}, p.weights[g])
	}
	p.Load(p.field("Strip"), p.strip)
	p.MOVQ(i, unit)
	p.SHRQ(operand.U8(4), unit)
	p.IMULQ(unit, p.strip)
	if !p.wide() { // half a strip
		p.MOVQ(i, unit)
		p.ANDQ(operand.Imm(8), unit)
		p.LEAQ(operand.Mem{Base: p.strip, Index: unit, Scale: 4}, p.strip)
	}
	for range p.sets {
		var v []reg.VecVirtual
		for range p.gates {
			v = append(v, p.vec())
		}
		p.sums = append(p.sums, v)
	}
}

// zero sets sums to zero from a set on.
func (p *products) zero(from int) {
	for _, v := range p.sums[from:] {
		for g := range v {
			p.asm.zero(v[g])
		}
	}
}

// add adds n products with units from … of the state, and overwrites both.
func (p *products) add(label string, from, n reg.GPVirtual) {
	unroll := max(4, p.sets)
	h, at := p.GP64(), p.GP64()
	p.Load(p.field("State"), h)
	p.LEAQ(operand.Mem{Base: h, Index: from, Scale: 4}, h)
	p.MOVQ(from, at)
	p.SHLQ(operand.U8(6), at)
	p.ADDQ(p.strip, at)
	step := func(u int) {
		x := p.vec()
		p.VBROADCASTSS(operand.Mem{Base: h, Disp: 4 * u}, x)
		for g := range p.gates {
			p.VFMADD231PS(operand.Mem{Base: p.weights[g], Index: at, Scale: 1, Disp: stripBytes * u}, x, p.sums[u%p.sets][g])
		}
	}
	p.SUBQ(operand.Imm(uint64(unroll)), n)
	p.JLT(operand.LabelRef(label + "few"))
	p.Label(label + "loop")
	for u := range unroll {
		step(u)
	}
	p.ADDQ(operand.Imm(uint64(4*unroll)), h)
	p.ADDQ(operand.U32(uint32(stripBytes*unroll)), at)
	p.SUBQ(operand.Imm(uint64(unroll)), n)
	p.JGE(operand.LabelRef(label + "loop"))
	p.Label(label + "few")
	p.ADDQ(operand.Imm(uint64(unroll)), n)
	p.JZ(operand.LabelRef(label + "added"))
	p.Label(label + "one")
	step(0)
	p.ADDQ(operand.Imm(4), h)
	p.ADDQ(operand.Imm(stripBytes), at)
	p.DECQ(n)
	p.JNZ(operand.LabelRef(label + "one"))
	p.Label(label + "added")
}

// sum adds the sets and returns the sums.
func (p *products) sum() []reg.VecVirtual {
	for s := p.sets / 2; s >= 1; s /= 2 {
		for i := range s {
			for g := range p.gates {
				p.VADDPS(p.sums[i+s][g], p.sums[i][g], p.sums[i][g])
			}
		}
	}
	return p.sums[0]
}

// part is where the sums over a band's own units are kept for the vector of units from i on.
func (p *products) part(i reg.GPVirtual) operand.Mem {
	m, at := p.Load(p.field("Part").Base(), p.GP64()).(reg.GPVirtual), p.GP64()
	p.IMUL3Q(operand.U8(uint8(4*p.gates)), i, at)
	return operand.Mem{Base: m, Index: at, Scale: 1}
}

// rest returns the whole products of the vector of units from i on.
func (p *products) rest(label string, i reg.GPVirtual) map[cell.Ref]reg.VecVirtual {
	p.begin(i)
	part := p.part(i)
	for g, v := range p.sums[0] {
		p.VMOVUPS(part.Offset(g*p.width*4), v)
	}
	p.zero(1)
	table, left, from, n := p.GP64(), p.GP64(), p.GP64(), p.GP64()
	p.Load(p.field("Rest").Base(), table)
	p.Load(p.field("Rest").Len(), left)
	p.Label(label)
	p.MOVQ(operand.Mem{Base: table}, from)
	p.MOVQ(operand.Mem{Base: table, Disp: 8}, n)
	p.ADDQ(operand.Imm(16), table)
	p.add(label, from, n)
	p.DECQ(left)
	p.JNZ(operand.LabelRef(label))
	known := map[cell.Ref]reg.VecVirtual{}
	for g, v := range p.sum() {
		known[cell.Ref{Kind: cell.R, Index: g}] = v
	}
	return known
}

// await waits until the other bands are done with the step before, or is the end where one does not come.
func (p *products) await() {
	const polls = 4000
	other, left, turn, poll, at := p.GP64(), p.GP64(), p.GP64(), p.GP64(), p.GP64()
	p.Load(p.field("Others").Base(), other)
	p.Load(p.field("Others").Len(), left)
	p.Load(p.field("Turn"), turn)
	p.Label("other")
	p.MOVQ(operand.Mem{Base: other}, at)
	p.MOVQ(operand.U32(polls), poll)
	p.Label("poll")
	p.CMPQ(operand.Mem{Base: at}, turn)
	p.JGE(operand.LabelRef("come"))
	p.DECQ(poll)
	p.JNZ(operand.LabelRef("poll"))
	p.JMP(operand.LabelRef("done"))
	p.Label("come")
	p.ADDQ(operand.Imm(8), other)
	p.DECQ(left)
	p.JNZ(operand.LabelRef("other"))
}
