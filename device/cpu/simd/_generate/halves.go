package main

import "github.com/mmcloughlin/avo/operand"

// formats lists the formats of package simd, as parts of names.
var formats = []string{"", "F16", "BF16"}

// pairs is the format of tiles with two BF16, two of a sum's terms, in each word of both operands.
const pairs = "Pairs"

func tilesOfHalves(a *asm) {
	for _, f := range formats[1:] {
		tiler{halves{a}}.allTiles(f)
	}
}

// halves writes code that reads and writes elements of 16 bits.
type halves struct{ *asm }

// widen loads a vector of elements of a format.
func (a halves) widen(from operand.Mem, to operand.Op, format string) {
	switch format {
	case "":
		a.VMOVUPS(from, to)
	case "F16":
		a.VCVTPH2PS(from, to)
	case "BF16":
		a.VPMOVZXWD(from, to)
		a.VPSLLD(operand.U8(16), to, to)
	}
}

// lower and upper load the two rows of BF16 that words of 32 bits hold (see simd.BF16). mask has
// the upper halves set, if the level has a register for it.
func (a halves) lower(from operand.Mem, to operand.Op) {
	if a.wide() {
		a.VPSLLD(operand.U8(16), from, to)
		return
	}
	a.VMOVUPS(from, to)
	a.VPSLLD(operand.U8(16), to, to)
}

func (a halves) upper(from operand.Mem, mask, to operand.Op) {
	if a.wide() {
		a.VPANDD(from, mask, to)
		return
	}
	a.VMOVUPS(from, to)
	a.VPSRLD(operand.U8(16), to, to)
	a.VPSLLD(operand.U8(16), to, to)
}

// upperMask sets the upper half of every word of 32 bits.
func (a halves) upperMask(to operand.Op) {
	if a.wide() {
		a.VPTERNLOGD(operand.U8(0xff), to, to, to)
		a.VPSLLD(operand.U8(16), to, to)
	}
}
