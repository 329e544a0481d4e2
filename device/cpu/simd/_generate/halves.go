package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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

// Constants that widen the two halves of a word.
const (
	bitsOfHalf  = 0x8fffe000 // sign, exponent, mantissa
	firstOfPair = 1 << 13    // factor that moves the first of a pair to these bits, and its sign above them
	upperLanes  = 0xff00
	upRow       = 0x1p80 // corrects the exponents in part: the whole factor would be out of range
	upSums      = 0x1p32 // the rest
)

// rowOfHalves writes the kernel of one row and F16. Its time depends on widening: VCVTPH2PS takes
// two cycles for a vector on a Zen 4. Instead, words of 32 bits, which are neighbours of a row,
// become floats. A product and a mask give the first of each word, and a shift and a mask the
// second, with exponents too low by 112.
//
// Such a vector has every other column of two rows of B. So there are sums of the even and of the
// odd columns, with even k and odd k in their halves.
func (a tiler) rowOfHalves(strips int) {
	sets := 1
	for sets < 4 && 2*strips*sets < 8 {
		sets *= 2
	}
	a.begin(fmt.Sprintf("tile1x%dF16", strips), "(t *Tile)", fmt.Sprintf("is the Tile of 1 rows and %d strips of F16.", strips))
	t := a.Load(a.Param("t"), a.GP64())
	A := a.sliceField(t, "A")
	acol := a.bytes(t, "ACol")
	B := a.rows(a.sliceField(t, "B"), a.bytes(t, "BStrip"), strips)
	bstep := a.bytes(t, "BStep")
	k := a.field(t, "K")

	n := 2 * strips * sets
	sum := func(set, strip, odd int) reg.Physical { return a.phys((set*strips+strip)*2 + odd) }
	x, w, mask, first, up := a.phys(n), a.phys(n+1), a.phys(n+2), a.phys(n+3), a.phys(n+4)
	for i := range n {
		a.zero(a.phys(i))
	}
	a.VBROADCASTSS(a.memory(bitsOfHalf), mask)
	a.VBROADCASTSS(a.memory(firstOfPair), first)
	a.VBROADCASTSS(a.memory(math.Float32bits(upRow)), up)
	lanes, upper := a.GP32(), a.K()
	a.MOVL(operand.U32(upperLanes), lanes)
	a.KMOVW(lanes, upper)

	add := func(set, strip int, from operand.Op) {
		a.VPMADDWD(from, first, w)
		a.VPANDD(mask, w, w)
		a.VFMADD231PS(w, x, sum(set, strip, 0))
		a.VPSRAD(operand.U8(3), from, w)
		a.VPANDD(mask, w, w)
		a.VFMADD231PS(w, x, sum(set, strip, 1))
	}
	pair := func(set int) {
		a.VBROADCASTSS(operand.Mem{Base: A}, x)
		a.VBROADCASTSS(operand.Mem{Base: A, Index: acol, Scale: 1}, upper, x)
		a.VMULPS(up, x, x)
		for s := range strips {
			add(set, s, B.at(s, 0))
		}
		a.LEAQ(operand.Mem{Base: A, Index: acol, Scale: 2}, A)
		for range 2 {
			a.advance(B, bstep)
		}
	}
	unroll := max(2, sets)
	a.SUBQ(operand.Imm(uint64(2*unroll)), k)
	a.JLT(operand.LabelRef("rest"))
	a.Label("loop")
	for u := range unroll {
		pair(u % sets)
	}
	a.SUBQ(operand.Imm(uint64(2*unroll)), k)
	a.JGE(operand.LabelRef("loop"))
	a.Label("rest")
	a.ADDQ(operand.Imm(uint64(2*unroll-2)), k)
	a.JLT(operand.LabelRef("last"))
	a.Label("pair")
	pair(0)
	a.SUBQ(operand.Imm(2), k)
	a.JGE(operand.LabelRef("pair"))
	a.Label("last")
	a.CMPQ(k, operand.I8(-1)) // one row is left
	a.JNE(operand.LabelRef("sums"))
	a.KNOTW(upper, upper)
	a.VBROADCASTSS_Z(operand.Mem{Base: A}, upper, x)
	a.VMULPS(up, x, x)
	row := a.phys(n + 5)
	for s := range strips {
		a.VMOVUPS(B.at(s, 0), a.half(n+5))
		add(0, s, row)
	}

	a.Label("sums")
	a.sumsOfHalves(strips, sets)
	a.storeTile(t, 1, strips, 1)
	a.end()
}

// sumsOfHalves adds up the sets of sums of rowOfHalves, and leaves those of each strip, in order,
// in a register.
func (a tiler) sumsOfHalves(strips, sets int) {
	n := 2 * strips * sets
	w, up, order := a.phys(n+1), a.phys(n+4), a.phys(n+5)
	for s := sets / 2; s >= 1; s /= 2 {
		for i := range 2 * strips * s {
			a.VADDPS(a.phys(2*strips*s+i), a.phys(i), a.phys(i))
		}
	}
	a.VMOVUPS(a.interleaved(), order)
	a.VBROADCASTSS(a.memory(math.Float32bits(upSums)), up)
	for s := range strips {
		for odd := range 2 {
			i := 2*s + odd
			a.VEXTRACTF64X4(operand.U8(1), a.phys(i), a.half(n))
			a.VADDPS(a.half(n), a.half(i), a.half(i))
		}
		a.VINSERTF64X4(operand.U8(1), a.half(2*s+1), a.phys(2*s), w)
		a.VPERMPS(w, order, w)
		a.VMULPS(up, w, a.phys(s))
	}
}
