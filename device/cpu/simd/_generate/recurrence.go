package main

import (
	"fmt"
	"strings"

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

// recurrence compiles one routine with its products: for each step a loop over vectors of units, whose
// products with the state before the step stay in registers for the program. What a band of units adds
// to its own products comes first, while the other bands' states are on their way.
func (a compiler) recurrence(r routine) {
	refs := catalog.Vectors(r.program)
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
	p := &products{asm: a.asm, gates: gates, field: func(name string) gotypes.Component { return a.Param("s").Dereference(s).Field(name) }}
	if a.wide() {
		p.former = &former{asm: a.asm, field: p.field}
		p.former.begin()
	}
	i, n := a.GP64(), a.GP64()
	most := 1 // vectors at once
	if gates == 1 || a.wide() {
		most = 2
	}
	// blocks calls body for as many vectors at once as there are left.
	blocks := func(label string, body func(label string, vectors int)) {
		a.XORQ(i, i)
		a.Load(p.field("Units"), n)
		for vectors := most; vectors >= 1; vectors-- {
			units := operand.Imm(uint64(vectors * a.width))
			of := fmt.Sprint(label, vectors)
			if vectors > 1 {
				pairs := a.GP64()
				a.Load(p.field("Pairs"), pairs)
				a.TESTQ(pairs, pairs)
				a.JZ(operand.LabelRef(of + "none"))
			}
			a.SUBQ(units, n)
			a.JLT(operand.LabelRef(of + "done"))
			a.Label(of)
			body(of, vectors)
			a.ADDQ(units, i)
			a.SUBQ(units, n)
			a.JGE(operand.LabelRef(of))
			a.Label(of + "done")
			a.ADDQ(units, n)
			a.Label(of + "none")
		}
	}
	tail := func(to string) {
		a.TESTQ(n, n)
		a.JZ(operand.LabelRef(to))
	}

	a.Label("step")
	if p.former != nil {
		p.former.last("done")
	}
	a.Load(p.field("Own").Field("N"), n)
	a.TESTQ(n, n)
	a.JZ(operand.LabelRef("all"))
	p.mark()
	own := func(label string, vectors int) {
		p.begin(i, vectors)
		p.zero(0)
		k := a.GP64()
		a.Load(p.field("Own").Field("From"), k)
		p.skip(k)
		a.Load(p.field("Own").Field("N"), k)
		p.add(label, k)
		part := p.part(i)
		for g, v := range p.sum() {
			a.VMOVUPS(v, part.Offset(g*a.width*4))
		}
	}
	blocks("own", own)
	tail("wait")
	own("ownlast", 1)
	a.Label("wait")
	p.await()

	a.Label("all")
	at := a.Load(p.field("At").Base(), a.GP64()).(reg.GPVirtual)
	vector := func(of int) func(cell.Ref) operand.Mem {
		return func(ref cell.Ref) operand.Mem {
			base := a.GP64()
			a.MOVQ(operand.Mem{Base: at, Disp: 8 * place[ref]}, base)
			return operand.Mem{Base: base, Index: i, Scale: 4, Disp: 4 * a.width * of}
		}
	}
	first, program := map[int][]cell.Ref{}, r.program
	if a.wide() { // with vectors of half a strip it costs more than it saves
		first, program = aheadOf(r.program)
	}
	blocks("rest", func(label string, vectors int) {
		sums := p.rest(label+"all", i, vectors, func(gate, of int) []operand.Mem {
			var terms []operand.Mem
			for _, ref := range first[gate] {
				terms = append(terms, vector(of)(ref))
			}
			return terms
		})
		for of := range vectors {
			address := vector(of)
			a.straight(program, sums[of], func(ref cell.Ref) reg.VecVirtual { return a.load(address(ref)) },
				func(v reg.VecVirtual, ref cell.Ref) { a.VMOVUPS(v, address(ref)) })
		}
	})
	tail("next")
	sums := p.rest("last", i, 1, func(int, int) []operand.Mem { return nil })
	a.tail(r.program, n, sums[0], vector(0))

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
	if p.former != nil {
		a.JMP(operand.LabelRef("step"))
		a.Label("done")
		p.former.end()
	} else {
		a.JNZ(operand.LabelRef("step"))
		a.Label("done")
	}
	a.end()
}

// aheadOf lists by gate what a program adds to the recurrent product and to nothing else: the sums of these
// begin before the product does, instead of being waited for after it. The program is what is left.
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

// products are those of some vectors of units with the state: sums of gates vectors each, in some sets.
type products struct {
	*asm
	gates  int
	field  func(name string) gotypes.Component
	former *former // of an input product's tiles; nil: the level has no registers for them

	vectors int
	sums    [][]reg.VecVirtual // set by set, vector by vector
	weights []reg.GPVirtual    // per gate, its first strip
	at      []reg.GPVirtual    // what comes next: of the strip of each vector, in bytes from there on
	h       reg.GPVirtual      // and of the state
}

// begin is ahead of products of so many vectors of units from i on.
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

// zero sets sums to zero from a set on.
func (p *products) zero(from int) {
	for _, v := range p.sums[from:] {
		for g := range v {
			if p.wide() {
				p.VPSUBD(v[g], v[g], v[g]) // which avo knows to read nothing, unlike VPXORD
			} else {
				p.asm.zero(v[g])
			}
		}
	}
}

// skip leaves n units of the state out, and overwrites n.
func (p *products) skip(n reg.GPVirtual) {
	p.LEAQ(operand.Mem{Base: p.h, Index: n, Scale: 4}, p.h)
	p.SHLQ(operand.U8(6), n)
	for _, r := range p.at {
		p.ADDQ(n, r)
	}
}

// row addresses the weights of a gate and a vector of units that u units on of the state multiply.
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

// terms returns the instructions that add the products with so many units of the state.
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

// advance goes on by so many units of the state.
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

// far is how many vectors of units are computed at once by weights that the nearest cache does not hold.
func (p *products) far() int {
	if p.gates == 1 {
		return 2
	}
	return 1
}

// sum adds the sets and returns the sums.
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

// part is where the sums over a band's own units are kept for the vectors of units from i on.
func (p *products) part(i reg.GPVirtual) operand.Mem {
	m, at := p.Load(p.field("Part").Base(), p.GP64()).(reg.GPVirtual), p.GP64()
	p.IMUL3Q(operand.U8(uint8(4*p.gates)), i, at)
	return operand.Mem{Base: m, Index: at, Scale: 1}
}

// rest returns the whole products of so many vectors of units from i on, with terms added to those of a gate
// and a vector.
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

// unset is what a band's units hold until it has computed them: a signalling NaN, which no operation gives.
const unset = 0x7fa5a5a5

// mark has the band's units two steps on say that they are not computed, where another step will ask.
// Whoever sees those of the next step, which are stored later, sees the marks.
func (p *products) mark() {
	to, by, n := p.GP64(), p.GP64(), p.GP64()
	p.Load(p.field("Count"), n)
	p.CMPQ(n, operand.Imm(3))
	p.JLT(operand.LabelRef("marked"))
	p.Load(p.field("State"), to)
	p.Load(p.field("StateBy"), by)
	p.LEAQ(operand.Mem{Base: to, Index: by, Scale: 2}, to)
	p.Load(p.field("Own").Field("From"), by)
	p.LEAQ(operand.Mem{Base: to, Index: by, Scale: 4}, to)
	p.Load(p.field("Own").Field("N"), n)
	v := p.vec()
	p.VBROADCASTSS(p.memory(unset), v)
	p.units("mark", to, n, func() { p.VMOVUPS(v, operand.Mem{Base: to}) }, func() { p.MOVL(operand.U32(unset), operand.Mem{Base: to}) })
	p.Label("marked")
}

// units calls vector for each whole vector of n units and one for each unit left; both may be none.
func (p *products) units(label string, at, n reg.GPVirtual, vector, one func()) {
	p.SUBQ(operand.Imm(uint64(p.width)), n)
	p.JLT(operand.LabelRef(label + "few"))
	p.Label(label + "vector")
	vector()
	p.ADDQ(operand.Imm(uint64(4*p.width)), at)
	p.SUBQ(operand.Imm(uint64(p.width)), n)
	p.JGE(operand.LabelRef(label + "vector"))
	p.Label(label + "few")
	p.ADDQ(operand.Imm(uint64(p.width)), n)
	p.JZ(operand.LabelRef(label + "over"))
	p.Label(label + "one")
	one()
	p.ADDQ(operand.Imm(4), at)
	p.DECQ(n)
	p.JNZ(operand.LabelRef(label + "one"))
	p.Label(label + "over")
}

// fetch asks for the other bands' units, so that their lines are on their way at the same time.
func (p *products) fetch() {
	at, n := p.GP64(), p.GP64()
	p.Load(p.field("State"), at)
	lines := func(label string) {
		p.Label(label)
		p.SUBQ(operand.Imm(stripBytes/4), n)
		p.JLT(operand.LabelRef(label + "asked"))
		p.PREFETCHT0(operand.Mem{Base: at})
		p.ADDQ(operand.Imm(stripBytes), at)
		p.JMP(operand.LabelRef(label))
		p.Label(label + "asked")
	}
	p.Load(p.field("Own").Field("From"), n)
	lines("before")
	p.Load(p.field("Own").Field("N"), n)
	p.LEAQ(operand.Mem{Base: at, Index: n, Scale: 4}, at)
	p.Load(p.field("After"), n)
	lines("after")
}

// await waits until the other bands have computed the last of their units, which they store last, or is
// the end where one does not come. What is looked at before it is there makes storing it dear.
func (p *products) await() {
	const polls = 4000
	sure, poll, table, left, at, n := p.GP64(), p.GP64(), p.GP64(), p.GP64(), p.GP64(), p.GP64()
	p.Load(p.field("Sure"), sure)
	p.TESTQ(sure, sure)
	p.JZ(operand.LabelRef("unsure"))
	p.XORQ(sure, sure)
	p.Store(sure, p.field("Sure"))
	p.JMP(operand.LabelRef("all"))
	p.Label("unsure")
	p.fetch()
	p.MOVQ(operand.U32(polls), poll)
	v := p.vec()
	p.VBROADCASTSS(p.memory(unset), v)
	p.Label("poll")
	missing, some := p.GP32(), p.GP32()
	p.XORL(missing, missing)
	p.Load(p.field("Last").Base(), table)
	p.Load(p.field("Last").Len(), left)
	p.Label("other")
	p.Load(p.field("State"), at)
	p.MOVQ(operand.Mem{Base: table}, n)
	p.LEAQ(operand.Mem{Base: at, Index: n, Scale: 4}, at)
	p.MOVQ(operand.Mem{Base: table, Disp: 8}, n)
	p.units("poll", at, n, func() {
		if p.wide() {
			k := p.K()
			p.VPCMPEQD(operand.Mem{Base: at}, v, k)
			p.KMOVW(k, some)
		} else {
			p.VPMOVMSKB(p.do(p.VPCMPEQD, operand.Mem{Base: at}, v), some)
		}
		p.ORL(some, missing)
	}, func() {
		p.XORL(some, some)
		p.CMPL(operand.Mem{Base: at}, operand.U32(unset))
		p.SETEQ(some.As8())
		p.ORL(some, missing)
	})
	p.ADDQ(operand.Imm(16), table)
	p.DECQ(left)
	p.JNZ(operand.LabelRef("other"))
	p.TESTL(missing, missing)
	p.JZ(operand.LabelRef("all"))
	p.DECQ(poll)
	p.JNZ(operand.LabelRef("poll"))
	p.JMP(operand.LabelRef("done"))
}
