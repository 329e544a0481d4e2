package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unset is the value of a band's units until it has computed them: a signalling NaN, which no
// operation produces.
const unset = 0x7fa5a5a5

// mark sets the band's units of two steps ahead to unset, if a later step will read them. It does
// so before the band stores its units of the next step. So a worker that sees those sees the marks,
// too.
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

// units calls vector for each whole vector of n units, and one for each unit left. There may be
// none of either.
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

// fetch prefetches the other bands' units, so that all lines are on their way at the same time.
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

// await waits until the other bands have stored their last units, which they compute last. If a
// band does not arrive, the run ends. Polling a line makes storing it expensive, so it polls no
// other lines.
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
