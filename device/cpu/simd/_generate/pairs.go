package main

import (
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pairs reports whether the level has kernels with instructions of AVX512-BF16. They run only if a
// higher level of package simd is chosen.
func (l level) pairs() bool { return l.width == 16 }

// tilesOfPairs writes the kernels that multiply BF16 by VDPBF16PS, and the rounding to BF16.
func tilesOfPairs(a *asm) {
	if !a.pairs() {
		return
	}
	tiler{halves{a}}.allTiles(pairs)
	p := pairer{a}
	p.roundRow()
	p.peak()
}

// empty reports whether nothing was written.
func empty(a *asm) bool {
	f, err := a.Result()
	return err == nil && len(f.Functions()) == 0
}

// A pairer writes instructions that Go's assembler does not support.
type pairer struct{ *asm }

// Opcodes and prefixes of EVEX instructions of map 0F38.
const (
	opDotPairs   = 0x52 // VDPBF16PS zmm, zmm, zmm, with prefix F3
	opRoundPairs = 0x72 // VCVTNE2PS2BF16 zmm, zmm, zmm, with prefix F2
	prefixF3     = 2
	prefixF2     = 3
)

// evex writes, as bytes, an instruction on three registers of 512 bits. dst, x and y are its
// operands in Intel's order.
func (a pairer) evex(prefix, op byte, dst, x, y reg.Physical) {
	d, v, m := byte(dst.PhysicalIndex()), byte(x.PhysicalIndex()), byte(y.PhysicalIndex())
	inverted := func(bit byte) byte { return bit&1 ^ 1 }
	p0 := inverted(d>>3)<<7 | inverted(m>>4)<<6 | inverted(m>>3)<<5 | inverted(d>>4)<<4 | 2
	p1 := (^v&0xf)<<3 | 1<<2 | prefix
	p2 := byte(2<<5) | inverted(v>>4)<<3
	modrm := byte(3<<6) | d&7<<3 | m&7
	for _, b := range []byte{0x62, p0, p1, p2, op, modrm} {
		a.Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(b)}})
	}
}

// dot adds to each float of sum the two products of the pairs of BF16 in x and y.
func (a pairer) dot(x, y, sum reg.Physical) { a.evex(prefixF3, opDotPairs, sum, x, y) }

// roundPairs rounds the floats of low and high to the lower and the upper half of dst, with ties to
// even. Denormal numbers become zero.
func (a pairer) roundPairs(low, high, dst reg.Physical) {
	a.evex(prefixF2, opRoundPairs, dst, high, low)
}

// roundRow writes the rounding of a row of a product's left factor.
func (a pairer) roundRow() {
	a.begin("roundRow", "(dst, src []float32)",
		"stores src as BF16, two to a float of dst, and zeros up to a multiple of 32 elements.")
	d := a.Load(a.Param("dst").Base(), a.GP64()).(reg.GPVirtual)
	s := a.Load(a.Param("src").Base(), a.GP64()).(reg.GPVirtual)
	n := a.Load(a.Param("src").Len(), a.GP64()).(reg.GPVirtual)
	low, high, out := a.phys(0), a.phys(1), a.phys(2)
	store := func() {
		a.roundPairs(low, high, out)
		a.VMOVUPS(out, operand.Mem{Base: d})
	}
	a.SUBQ(operand.Imm(32), n)
	a.JLT(operand.LabelRef("rest"))
	a.Label("loop")
	a.VMOVUPS(operand.Mem{Base: s}, low)
	a.VMOVUPS(operand.Mem{Base: s, Disp: 64}, high)
	store()
	a.ADDQ(operand.U32(128), s)
	a.ADDQ(operand.Imm(64), d)
	a.SUBQ(operand.Imm(32), n)
	a.JGE(operand.LabelRef("loop"))
	a.Label("rest")
	a.ADDQ(operand.Imm(32), n)
	a.JZ(operand.LabelRef("done"))
	bits, first, second := a.GP64(), a.K(), a.K()
	a.MOVQ(operand.I32(-1), bits)
	a.BZHIQ(n, bits, bits)
	a.KMOVW(bits.As32(), first)
	a.SHRQ(operand.U8(16), bits)
	a.KMOVW(bits.As32(), second)
	a.VMOVUPS_Z(operand.Mem{Base: s}, first, low)
	a.VMOVUPS_Z(operand.Mem{Base: s, Disp: 64}, second, high)
	store()
	a.Label("done")
	a.end()
}

// peak writes a loop of VDPBF16PS on registers alone.
func (a pairer) peak() {
	a.begin("peakPairs", "(n int)", "runs n rounds of 12 VDPBF16PS on registers.")
	n := a.Load(a.Param("n"), a.GP64()).(reg.GPVirtual)
	for i := range peakChains + 1 {
		a.zero(a.phys(i))
	}
	a.TESTQ(n, n)
	a.JZ(operand.LabelRef("done"))
	a.Label("loop")
	for i := range peakChains {
		a.dot(a.phys(peakChains), a.phys(peakChains), a.phys(i))
	}
	a.DECQ(n)
	a.JNZ(operand.LabelRef("loop"))
	a.Label("done")
	a.end()
}
