package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// int8s is the format of tiles of 8-bit integers. Its tiles have one row.
const int8s = "I8"

// int8Strips is the most strips of such a tile.
const int8Strips = 4

// tilesOfInt8 writes the products of 8-bit integers and, for the lower level alone, the rounding of
// rows, which both use.
func tilesOfInt8(a *asm) {
	i := integers{tiler{halves{a}}}
	for s := 1; s <= int8Strips; s++ {
		i.tile(s)
	}
	if !a.wide() {
		i.mostBits()
		i.quantize()
	}
}

// An integers writes kernels of 8-bit integers.
type integers struct{ tiler }

// Opcode and prefix of VPDPBUSD zmm, zmm, zmm, of AVX512-VNNI.
const (
	opDotBytes = 0x50
	prefix66   = 1
)

// headerBytes is where the words of a strip begin: see simd.I8.
const headerBytes = 2 * stripBytes

// tile writes the product of a row by so many strips. AVX2 multiplies unsigned by signed bytes
// and adds pairs in 16 bits, which saturate. So it multiplies |x| by w with the sign of x: both are at
// most 127, and two products fit. VPDPBUSD takes x+128, and sums begin with what that adds.
func (a integers) tile(strips int) {
	a.begin(fmt.Sprintf("tile1x%d%s", strips, int8s), "(t *Tile)", fmt.Sprintf("is the Tile of 1 row and %d strips of 8-bit integers.", strips))
	per := stripBytes / 4 / a.width
	n := strips * per
	x, abs, ones, w := a.phys(n), a.phys(n+1), a.phys(n+2), a.phys(n+3)
	t := a.Load(a.Param("t"), a.GP64())
	A := a.sliceField(t, "A")
	B := a.rows(a.sliceField(t, "B"), a.bytes(t, "BStrip"), strips)
	k := a.field(t, "K")
	if a.wide() {
		for v := range n {
			a.VMOVUPS(B.at(v, stripBytes), a.phys(v))
		}
		a.VPBROADCASTD(a.memory(0x80808080), ones)
	} else {
		for v := range n {
			a.zero(a.phys(v))
		}
		a.VMOVUPS(a.memory(0x00010001), ones)
	}
	a.Label("loop")
	a.VPBROADCASTD(operand.Mem{Base: A}, x)
	if a.wide() {
		a.VPXORD(ones, x, x)
	} else {
		a.VPABSB(x, abs)
	}
	for v := range n {
		at := B.at(v/per, headerBytes+v%per*a.width*4)
		a.VMOVUPS(at, w)
		if a.wide() {
			pairer{a.asm}.evex(prefix66, opDotBytes, a.phys(v), x, w)
			continue
		}
		a.VPSIGNB(x, w, w)
		a.VPMADDUBSW(w, abs, w)
		a.VPMADDWD(ones, w, w)
		a.VPADDD(w, a.phys(v), a.phys(v))
	}
	a.ADDQ(operand.Imm(4), A)
	a.advance(B, operand.Imm(stripBytes))
	a.DECQ(k)
	a.JNZ(operand.LabelRef("loop"))
	a.scaleSums(t, strips, per, x, w)
	a.storeTile(t, 1, strips, per)
	a.end()
}

// scaleSums turns integer sums into floats, scaled by the row and the column.
func (a integers) scaleSums(t reg.Register, strips, per int, row, both reg.Physical) {
	scale, err := a.Param("t").Dereference(t).Field("Scale").Resolve()
	if err != nil {
		panic(err)
	}
	a.VBROADCASTSS(scale.Addr, row)
	B := a.rows(a.sliceField(t, "B"), a.bytes(t, "BStrip"), strips)
	for v := range strips * per {
		a.VCVTDQ2PS(a.phys(v), a.phys(v))
		a.VMULPS(B.at(v/per, v%per*a.width*4), row, both)
		a.VMULPS(both, a.phys(v), a.phys(v))
	}
}

// mostBits writes the search for the largest value of a row, by its bits: so a NaN is the largest.
func (a integers) mostBits() {
	a.begin("mostBits", "(src []float32) uint32", "returns the most bits of a value without its sign. The length is a multiple of 32.")
	s := a.Load(a.Param("src").Base(), a.GP64()).(reg.GPVirtual)
	n := a.Load(a.Param("src").Len(), a.GP64()).(reg.GPVirtual)
	const chains = 4
	unsigned := a.phys(2 * chains)
	a.VMOVUPS(a.memory(0x7fffffff), unsigned)
	for i := range chains {
		a.zero(a.phys(i))
	}
	a.TESTQ(n, n)
	a.JZ(operand.LabelRef("done"))
	a.Label("loop")
	for i := range chains {
		x := a.phys(chains + i)
		a.VANDPS(operand.Mem{Base: s, Disp: 32 * i}, unsigned, x)
		a.VPMAXUD(x, a.phys(i), a.phys(i))
	}
	a.ADDQ(operand.U32(32*chains), s)
	a.SUBQ(operand.Imm(8*chains), n)
	a.JNZ(operand.LabelRef("loop"))
	a.Label("done")
	for i := chains / 2; i > 0; i /= 2 {
		for j := range i {
			a.VPMAXUD(a.phys(i+j), a.phys(j), a.phys(j))
		}
	}
	xmm := func(i int) reg.Physical { return reg.LookupPhysical(reg.KindVector, reg.Index(i), reg.S128) }
	a.VEXTRACTF128(operand.U8(1), a.phys(0), xmm(1))
	a.VPMAXUD(xmm(1), xmm(0), xmm(0))
	for _, order := range []uint8{0x4e, 0xb1} {
		a.VPSHUFD(operand.U8(order), xmm(0), xmm(1))
		a.VPMAXUD(xmm(1), xmm(0), xmm(0))
	}
	most := a.GP32()
	a.VMOVD(xmm(0), most)
	a.Store(most, a.ReturnIndex(0))
	a.end()
}

// quantize writes the rounding of a row to 8-bit integers.
func (a integers) quantize() {
	a.begin("quantize", "(dst, src []float32, inverse float32)",
		"stores the values of src times inverse as 8-bit integers, rounded to even. The length is a multiple of 32.")
	d := a.Load(a.Param("dst").Base(), a.GP64()).(reg.GPVirtual)
	s := a.Load(a.Param("src").Base(), a.GP64()).(reg.GPVirtual)
	n := a.Load(a.Param("src").Len(), a.GP64()).(reg.GPVirtual)
	inverse, order := a.phys(4), a.phys(5)
	m, err := a.Param("inverse").Resolve()
	if err != nil {
		panic(err)
	}
	a.VBROADCASTSS(m.Addr, inverse)
	places := a.StaticGlobal("places") // packing goes by halves of vectors
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, from := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		a.AddDatum(4*i, operand.U32(from))
	}
	a.VMOVUPS(places, order)
	a.TESTQ(n, n)
	a.JZ(operand.LabelRef("done"))
	a.Label("loop")
	for i := range 4 {
		a.VMULPS(operand.Mem{Base: s, Disp: 32 * i}, inverse, a.phys(i))
		a.VCVTPS2DQ(a.phys(i), a.phys(i))
	}
	a.VPACKSSDW(a.phys(1), a.phys(0), a.phys(0))
	a.VPACKSSDW(a.phys(3), a.phys(2), a.phys(2))
	a.VPACKSSWB(a.phys(2), a.phys(0), a.phys(0))
	a.VPERMD(a.phys(0), order, a.phys(0))
	a.VMOVUPS(a.phys(0), operand.Mem{Base: d})
	a.ADDQ(operand.U32(128), s)
	a.ADDQ(operand.Imm(32), d)
	a.SUBQ(operand.Imm(32), n)
	a.JNZ(operand.LabelRef("loop"))
	a.Label("done")
	a.end()
}
