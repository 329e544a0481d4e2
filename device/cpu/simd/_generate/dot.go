package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var dotCols = []int{1, 4}

func dotName(l level, rows, cols int) string { return fmt.Sprintf("dot%dx%d%s", rows, cols, l.name) }

// A dotter writes the kernels of Dot.
type dotter struct {
	*asm
	m, n int
	sets int // sets of sums, which hide the latency of FMA
}

func dots(a *asm) {
	for m := 1; m <= a.dotRows; m++ {
		for _, n := range dotCols {
			d := dotter{asm: a, m: m, n: n, sets: 1}
			for d.sets < 4 && m*n*d.sets < 8 {
				d.sets *= 2
			}
			d.kernel()
		}
	}
}

// kernel writes the kernel of one shape: m·n sums of vectors, added across lanes at the end.
func (a *dotter) kernel() {
	m, n, sets := a.m, a.n, a.sets
	a.begin(fmt.Sprintf("dot%dx%d", m, n), "(t *Dot)", fmt.Sprintf("is the Dot of %d rows and %d columns.", m, n))
	t := a.Load(a.Param("t"), a.GP64())
	A := a.rows(a.sliceField(t, "A"), a.bytes(t, "ARow"), m)
	B := a.rows(a.sliceField(t, "B"), a.bytes(t, "BRow"), n)
	k := a.field(t, "K")
	free := sets * m * n
	if free+m+1 > a.regs {
		panic(dotName(a.level, m, n) + ": out of registers")
	}
	for i := range free {
		a.zero(a.phys(i))
	}
	step := func(set, disp int, load func(from operand.Mem, to operand.Op)) {
		for r := range m {
			load(A.at(r, disp), a.phys(free+r))
		}
		for c := range n {
			load(B.at(c, disp), a.phys(free+m))
			for r := range m {
				a.VFMADD231PS(a.phys(free+m), a.phys(free+r), a.phys(a.acc(set, r, c)))
			}
		}
	}
	full := func(from operand.Mem, to operand.Op) { a.VMOVUPS(from, to) }
	advance := func(vectors int) {
		bytes := operand.U32(uint32(vectors * a.width * 4))
		a.advance(A, bytes)
		a.advance(B, bytes)
	}
	if sets > 1 {
		a.SUBQ(operand.Imm(uint64(sets*a.width)), k)
		a.JLT(operand.LabelRef("few"))
		a.Label("loop")
		for s := range sets {
			step(s, s*a.width*4, full)
		}
		advance(sets)
		a.SUBQ(operand.Imm(uint64(sets*a.width)), k)
		a.JGE(operand.LabelRef("loop"))
		a.Label("few")
		a.ADDQ(operand.Imm(uint64(sets*a.width)), k)
	}
	a.SUBQ(operand.Imm(uint64(a.width)), k)
	a.JLT(operand.LabelRef("tail"))
	a.Label("one")
	step(0, 0, full)
	advance(1)
	a.SUBQ(operand.Imm(uint64(a.width)), k)
	a.JGE(operand.LabelRef("one"))
	a.Label("tail")
	a.ADDQ(operand.Imm(uint64(a.width)), k)
	a.JZ(operand.LabelRef("sums"))
	if a.wide() {
		mask := a.tailMask(k)
		step(0, 0, func(from operand.Mem, to operand.Op) { a.VMOVUPS_Z(from, mask, to) })
	} else {
		mask := a.phys(free + m + 1)
		a.VMOVUPS(a.tailMaskAt(k), mask)
		step(0, 0, func(from operand.Mem, to operand.Op) { a.VMASKMOVPS(from, mask, to) })
	}
	a.Label("sums")
	for s := 1; s < sets; s++ {
		for i := range m * n {
			a.VADDPS(a.phys(s*m*n+i), a.phys(i), a.phys(i))
		}
	}
	a.store(t, free)
	a.end()
}

// store stores the sums in C or adds them to it. Register free is for temporaries.
func (a *dotter) store(t reg.Register, free int) {
	m, n := a.m, a.n
	c := a.sliceField(t, "C")
	crow := a.bytes(t, "CRow")
	add := a.GP8()
	a.Load(a.Param("t").Dereference(t).Field("Accumulate"), add)
	C := a.rows(c, crow, m)
	a.addLanes(free)
	a.TESTB(add, add)
	a.JZ(operand.LabelRef("store"))
	for r := range m {
		x := a.part(a.acc(0, r, 0), reg.S128)
		if n == 4 {
			a.VADDPS(C.at(r, 0), x, x)
		} else {
			a.VADDSS(C.at(r, 0), x, x)
		}
	}
	a.Label("store")
	for r := range m {
		x := a.part(a.acc(0, r, 0), reg.S128)
		if n == 4 {
			a.VMOVUPS(x, C.at(r, 0))
		} else {
			a.VMOVSS(x, C.at(r, 0))
		}
	}
}

// acc returns the register of a sum.
func (a *dotter) acc(set, row, col int) int { return (set*a.m+row)*a.n + col }

// part returns the lower part of register i.
func (a *dotter) part(i int, s reg.Spec) reg.Physical {
	return reg.LookupPhysical(reg.KindVector, reg.Index(i), s)
}

// addLanes adds up the lanes of each sum. It leaves the sums of a row in the row's first register.
// Register free is for temporaries.
func (a *dotter) addLanes(free int) {
	m, n := a.m, a.n
	tmp := func(s reg.Spec) reg.Physical { return a.part(free, s) }
	for r := range m {
		for j := range n {
			i := a.acc(0, r, j)
			if a.wide() {
				a.VEXTRACTF64X4(operand.U8(1), a.part(i, reg.S512), tmp(reg.S256))
				a.VADDPS(tmp(reg.S256), a.part(i, reg.S256), a.part(i, reg.S256))
				a.VEXTRACTF32X4(operand.U8(1), a.part(i, reg.S256), tmp(reg.S128))
			} else {
				a.VEXTRACTF128(operand.U8(1), a.part(i, reg.S256), tmp(reg.S128))
			}
			a.VADDPS(tmp(reg.S128), a.part(i, reg.S128), a.part(i, reg.S128))
		}
		x := func(j int) reg.Physical { return a.part(a.acc(0, r, min(j, n-1)), reg.S128) }
		if n == 4 {
			a.VHADDPS(x(1), x(0), x(0))
			a.VHADDPS(x(3), x(2), x(2))
			a.VHADDPS(x(2), x(0), x(0))
		} else {
			a.VHADDPS(x(0), x(0), x(0))
			a.VHADDPS(x(0), x(0), x(0))
		}
	}
}
