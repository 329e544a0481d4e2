package main

import (
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"rnnbench/rnn/cell"
)

// products writes the products of some vectors of units with the state: a sum per gate and vector,
// in one or several sets.
type products struct {
	*asm
	gates  int
	field  func(name string) gotypes.Component
	former *former // computes an input product's tiles; nil: the level has too few registers

	vectors int
	sums    [][]reg.VecVirtual // set by set, vector by vector
	weights []reg.GPVirtual    // per gate, its first strip
	at      []reg.GPVirtual    // per vector, offset in bytes of the next weights in its strip
	h       reg.GPVirtual      // address of the next unit of the state
}

// begin begins the products of so many vectors of units from i on.
func (p *products) begin(i reg.GPVirtual, vectors int) {
	table, unit, at := p.GP64(), p.GP64(), p.GP64()
	p.weights, p.sums, p.vectors = nil, nil, vectors
	p.Load(p.field("Weights").Base(), table)
	for g := range p.gates {
		p.weights = append(p.weights, p.GP64())
		p.MOVQ(operand.Mem{Base: table, Disp: 8 * g}, p.weights[g])
	}
	p.Load(p.field("Strip"), at)
	p.MOVQ(i, unit)
	p.SHRQ(operand.U8(4), unit)
	p.IMULQ(unit, at)
	if !p.wide() { // half a strip
		p.MOVQ(i, unit)
		p.ANDQ(operand.Imm(8), unit)
		p.LEAQ(operand.Mem{Base: at, Index: unit, Scale: 4}, at)
	}
	p.at = []reg.GPVirtual{at}
	if vectors > 1 && p.wide() {
		p.at = append(p.at, p.GP64())
		p.Load(p.field("Strip"), p.at[1])
		p.ADDQ(at, p.at[1])
	}
	p.h = p.GP64()
	p.Load(p.field("State"), p.h)
	for sets := 1; len(p.sums) < sets; {
		var v []reg.VecVirtual
		for range p.gates * vectors {
			v = append(v, p.vec())
		}
		p.sums = append(p.sums, v)
		if len(v)*sets < 6 { // FMA latency 4 × 1 or 2 ports
			sets *= 2
		}
	}
}

// zero sets the sums to zero, from a set on.
func (p *products) zero(from int) {
	for _, v := range p.sums[from:] {
		for g := range v {
			if p.wide() {
				p.VPSUBD(v[g], v[g], v[g]) // avo knows that it reads nothing, unlike VPXORD
			} else {
				p.asm.zero(v[g])
			}
		}
	}
}

// skip skips n units of the state, and overwrites n.
func (p *products) skip(n reg.GPVirtual) {
	p.LEAQ(operand.Mem{Base: p.h, Index: n, Scale: 4}, p.h)
	p.SHLQ(operand.U8(6), n)
	for _, r := range p.at {
		p.ADDQ(n, r)
	}
}

// row returns the address of weights: of gate g and vector v of units, for the state's u-th unit
// from here.
func (p *products) row(u, g, v int) operand.Mem {
	m := operand.Mem{Base: p.weights[g], Index: p.at[0], Scale: 1, Disp: stripBytes * u}
	switch {
	case v > 0 && p.wide():
		m.Index = p.at[1]
	case v > 0:
		m.Disp += stripBytes / 2
	}
	return m
}

// terms returns the instructions that add the products with the next units of the state.
func (p *products) terms(units int) []func() {
	var all []func()
	for u := range units {
		x := p.vec()
		all = append(all, func() { p.VBROADCASTSS(operand.Mem{Base: p.h, Disp: 4 * u}, x) })
		for v := range p.vectors {
			for g := range p.gates {
				all = append(all, func() { p.VFMADD231PS(p.row(u, g, v), x, p.sums[u%len(p.sums)][v*p.gates+g]) })
			}
		}
	}
	return all
}

// advance moves on by so many units of the state.
func (p *products) advance(units int) {
	p.ADDQ(operand.Imm(uint64(4*units)), p.h)
	for _, r := range p.at {
		p.ADDQ(operand.U32(uint32(stripBytes*units)), r)
	}
}

// add adds the products with the next n units of the state, and overwrites n.
func (p *products) add(label string, n reg.GPVirtual) {
	unroll := max(4, len(p.sums))
	some := func(units int) {
		for _, term := range p.terms(units) {
			term()
		}
		p.advance(units)
	}
	if p.former != nil && p.vectors == p.far() {
		p.both(label, n)
	}
	p.SUBQ(operand.Imm(uint64(unroll)), n)
	p.JLT(operand.LabelRef(label + "few"))
	p.Label(label + "loop")
	some(unroll)
	p.SUBQ(operand.Imm(uint64(unroll)), n)
	p.JGE(operand.LabelRef(label + "loop"))
	p.Label(label + "few")
	p.ADDQ(operand.Imm(uint64(unroll)), n)
	p.JZ(operand.LabelRef(label + "added"))
	p.Label(label + "one")
	some(1)
	p.DECQ(n)
	p.JNZ(operand.LabelRef(label + "one"))
	p.Label(label + "added")
}

// far returns how many vectors of units are computed at once if the nearest cache does not hold the
// weights.
func (p *products) far() int {
	if p.gates == 1 {
		return 2
	}
	return 1
}

// sum adds up the sets and returns the sums.
func (p *products) sum() []reg.VecVirtual {
	for s := len(p.sums) / 2; s >= 1; s /= 2 {
		for i := range s {
			for g := range p.sums[i] {
				p.VADDPS(p.sums[i+s][g], p.sums[i][g], p.sums[i][g])
			}
		}
	}
	return p.sums[0]
}

// part returns the address of the sums over a band's own units, for the vectors of units from i on.
func (p *products) part(i reg.GPVirtual) operand.Mem {
	m, at := p.Load(p.field("Part").Base(), p.GP64()).(reg.GPVirtual), p.GP64()
	p.IMUL3Q(operand.U8(uint8(4*p.gates)), i, at)
	return operand.Mem{Base: m, Index: at, Scale: 1}
}

// rest returns the complete products of so many vectors of units from i on. terms returns what to
// add to those of a gate and a vector.
func (p *products) rest(label string, i reg.GPVirtual, vectors int, terms func(gate, of int) []operand.Mem) []map[cell.Ref]reg.VecVirtual {
	p.begin(i, vectors)
	part := p.part(i)
	for v, sum := range p.sums[0] {
		p.VMOVUPS(part.Offset(v*p.width*4), sum)
	}
	for v, sum := range p.sums[0] {
		for _, term := range terms(v%p.gates, v/p.gates) {
			p.VADDPS(term, sum, sum)
		}
	}
	p.zero(1)
	n, all := p.GP64(), p.GP64()
	p.Load(p.field("Own").Field("From"), n)
	p.Load(p.field("After"), all)
	p.TESTQ(n, n)
	p.JZ(operand.LabelRef(label + "after"))
	p.Label(label)
	p.add(label, n)
	p.Label(label + "after")
	p.Load(p.field("Own").Field("N"), n)
	p.skip(n)
	p.MOVQ(all, n)
	p.XORQ(all, all)
	p.TESTQ(n, n)
	p.JNZ(operand.LabelRef(label))
	var known []map[cell.Ref]reg.VecVirtual
	sums := p.sum()
	for of := range vectors {
		m := map[cell.Ref]reg.VecVirtual{}
		for g := range p.gates {
			m[cell.Ref{Kind: cell.R, Index: g}] = sums[of*p.gates+g]
		}
		known = append(known, m)
	}
	return known
}
