package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A mover writes the kernels that move and convert matrices.
type mover struct{ halves }

func moves(a *asm) {
	m := mover{halves{a}}
	m.stream()
	m.pack()
	m.transpose()
	m.narrow()
	m.widenAll()
}

// stream writes the copy that bypasses the caches.
func (a mover) stream() {
	a.begin("stream", "(dst, src []float32)",
		"copies src to dst with stores that bypass the caches. dst starts at a multiple of 64 bytes; its length is a multiple of 64.")
	d := a.Load(a.Param("dst").Base(), a.GP64()).(reg.GPVirtual)
	n := a.Load(a.Param("dst").Len(), a.GP64()).(reg.GPVirtual)
	s := a.Load(a.Param("src").Base(), a.GP64()).(reg.GPVirtual)
	a.SUBQ(operand.Imm(64), n)
	a.JLT(operand.LabelRef("done"))
	a.Label("loop")
	var v []reg.VecVirtual
	for i := range 64 / a.width {
		v = append(v, a.load(operand.Mem{Base: s, Disp: i * a.width * 4}))
	}
	for i := range v {
		a.VMOVNTPS(v[i], operand.Mem{Base: d, Disp: i * a.width * 4})
	}
	a.ADDQ(operand.U32(256), s)
	a.ADDQ(operand.U32(256), d)
	a.SUBQ(operand.Imm(64), n)
	a.JGE(operand.LabelRef("loop"))
	a.Label("done")
	a.SFENCE()
	a.end()
}

// pack writes the copy of 1 or 4 strips from a matrix whose rows run along the strips.
func (a mover) pack() {
	for _, strips := range []int{1, 4} {
		a.begin(fmt.Sprintf("pack%d", strips), "(dst, src []float32, strip, stride, k int)",
			fmt.Sprintf("is: for i := range k, s := range %d { copy(dst[s*strip+i*StripWidth:][:StripWidth], src[i*stride+s*StripWidth:]) }", strips))
		d := a.Load(a.Param("dst").Base(), a.GP64()).(reg.GPVirtual)
		s := a.Load(a.Param("src").Base(), a.GP64()).(reg.GPVirtual)
		strip := a.Load(a.Param("strip"), a.GP64()).(reg.GPVirtual)
		stride := a.Load(a.Param("stride"), a.GP64()).(reg.GPVirtual)
		k := a.Load(a.Param("k"), a.GP64()).(reg.GPVirtual)
		a.SHLQ(operand.U8(2), strip)
		a.SHLQ(operand.U8(2), stride)
		D := a.rows(d, strip, strips)
		per := 16 / a.width
		a.TESTQ(k, k)
		a.JZ(operand.LabelRef("done"))
		a.Label("loop")
		var v []reg.VecVirtual
		for i := range strips * per {
			v = append(v, a.load(operand.Mem{Base: s, Disp: i * a.width * 4}))
		}
		for i := range v {
			a.VMOVUPS(v[i], D.at(i/per, i%per*a.width*4))
		}
		a.ADDQ(stride, s)
		a.advance(D, operand.Imm(stripBytes))
		a.DECQ(k)
		a.JNZ(operand.LabelRef("loop"))
		a.Label("done")
		a.end()
	}
}

// transpose writes the transposition of one vector's width of rows, four columns at a time.
func (a mover) transpose() {
	lanes := a.width / 4
	a.begin("transpose", "(dst, src []float32, dstStride, srcStride, n int)",
		fmt.Sprintf("is: for i := range n { for j := range %d { dst[i*dstStride+j] = src[j*srcStride+i] } }, for n a multiple of 4.", a.width))
	d := a.Load(a.Param("dst").Base(), a.GP64()).(reg.GPVirtual)
	s := a.Load(a.Param("src").Base(), a.GP64()).(reg.GPVirtual)
	ds := a.Load(a.Param("dstStride"), a.GP64()).(reg.GPVirtual)
	ss := a.Load(a.Param("srcStride"), a.GP64()).(reg.GPVirtual)
	n := a.Load(a.Param("n"), a.GP64()).(reg.GPVirtual)
	a.SHLQ(operand.U8(2), ds)
	a.SHLQ(operand.U8(2), ss)
	S := a.rows(s, ss, a.width)
	D := a.rows(d, ds, 4)
	a.SUBQ(operand.Imm(4), n)
	a.JLT(operand.LabelRef("done"))
	a.Label("loop")
	// Lane l of t[i] holds four values of row 4l+i, so that transposing within lanes ends in order.
	var t [4]reg.VecVirtual
	for i := range t {
		x := a.XMM()
		a.VMOVUPS(S.at(i, 0), x)
		if a.wide() {
			t[i] = a.ZMM()
			a.VINSERTF32X4(operand.U8(1), S.at(4+i, 0), x.AsZ(), t[i])
			for l := 2; l < lanes; l++ {
				a.VINSERTF32X4(operand.U8(uint8(l)), S.at(4*l+i, 0), t[i], t[i])
			}
		} else {
			t[i] = a.YMM()
			a.VINSERTF128(operand.U8(1), S.at(4+i, 0), x.AsY(), t[i])
		}
	}
	ab := a.do(a.VUNPCKLPS, t[1], t[0])
	cd := a.do(a.VUNPCKLPS, t[3], t[2])
	AB := a.do(a.VUNPCKHPS, t[1], t[0])
	CD := a.do(a.VUNPCKHPS, t[3], t[2])
	for i, v := range []reg.VecVirtual{
		a.do(a.VUNPCKLPD, cd, ab),
		a.do(a.VUNPCKHPD, cd, ab),
		a.do(a.VUNPCKLPD, CD, AB),
		a.do(a.VUNPCKHPD, CD, AB),
	} {
		a.VMOVUPS(v, D.at(i, 0))
	}
	a.advance(S, operand.Imm(16))
	a.LEAQ(operand.Mem{Base: d, Index: ds, Scale: 4}, d)
	a.SUBQ(operand.Imm(4), n)
	a.JGE(operand.LabelRef("loop"))
	a.Label("done")
	a.end()
}

// narrow writes the rounding of floats to formats of 16 bits, StripWidth at a time. In BF16 it
// takes twice as many, while there are enough.
func (a mover) narrow() {
	for _, format := range formats[1:] {
		a.begin("narrow"+format, "(dst, src []float32)",
			fmt.Sprintf("stores src as %s, two to a float of dst, whose length counts for nothing. That of src is a multiple of StripWidth.", format))
		d := a.Load(a.Param("dst").Base(), a.GP64()).(reg.GPVirtual)
		s := a.Load(a.Param("src").Base(), a.GP64()).(reg.GPVirtual)
		n := a.Load(a.Param("src").Len(), a.GP64()).(reg.GPVirtual)
		a.hold(1, bitsHalf, bitsQuiet)
		from := func(i int) operand.Mem { return operand.Mem{Base: s, Disp: i * a.width * 4} }
		vectors := 16 / a.width
		if format == "BF16" {
			a.pairsOfRows(n, s, d, func() {
				for i := range vectors {
					x := a.upperHalf(a.load(from(i)))
					y := a.do(a.VPSLLD, operand.U8(16), a.upperHalf(a.load(from(vectors+i))))
					if a.wide() {
						a.VPORD(x, y, y)
					} else {
						a.VPOR(x, y, y)
					}
					a.VMOVUPS(y, operand.Mem{Base: d, Disp: i * a.width * 4})
				}
			})
		}
		a.SUBQ(operand.Imm(16), n)
		a.JLT(operand.LabelRef("done"))
		a.Label("loop")
		var words []reg.VecVirtual // words of 32 bits
		for i := range vectors {
			x := a.load(from(i))
			if format == "F16" {
				a.VCVTPS2PH(operand.U8(0), x, operand.Mem{Base: d, Disp: i * a.width * 2})
			} else {
				words = append(words, a.upperHalf(x))
			}
		}
		switch {
		case words == nil:
		case a.wide():
			a.VPMOVDW(words[0], operand.Mem{Base: d})
		default:
			y := a.do(a.VPACKUSDW, words[1], words[0])
			a.VPERMQ(operand.U8(0xd8), y, y)
			a.VMOVUPS(y, operand.Mem{Base: d})
		}
		a.ADDQ(operand.Imm(stripBytes), s)
		a.ADDQ(operand.Imm(stripBytes/2), d)
		a.SUBQ(operand.Imm(16), n)
		a.JGE(operand.LabelRef("loop"))
		a.Label("done")
		a.end()
	}
}

// pairsOfRows repeats body for each pair of rows of n floats. It advances floats by both rows, and
// halves by their halves.
func (a mover) pairsOfRows(n, floats, halves reg.GPVirtual, body func()) {
	a.SUBQ(operand.Imm(32), n)
	a.JLT(operand.LabelRef("odd"))
	a.Label("pair")
	body()
	a.ADDQ(operand.Imm(2*stripBytes), floats)
	a.ADDQ(operand.Imm(stripBytes), halves)
	a.SUBQ(operand.Imm(32), n)
	a.JGE(operand.LabelRef("pair"))
	a.Label("odd")
	a.ADDQ(operand.Imm(32), n)
}

// widenAll writes the inverse of narrow.
func (a mover) widenAll() {
	for _, format := range formats[1:] {
		a.begin("widen"+format, "(dst, src []float32)",
			fmt.Sprintf("stores the elements of src, %s, two to a float, in dst, whose length is a multiple of StripWidth.", format))
		d := a.Load(a.Param("dst").Base(), a.GP64()).(reg.GPVirtual)
		n := a.Load(a.Param("dst").Len(), a.GP64()).(reg.GPVirtual)
		s := a.Load(a.Param("src").Base(), a.GP64()).(reg.GPVirtual)
		to := func(i int) operand.Mem { return operand.Mem{Base: d, Disp: i * a.width * 4} }
		vectors := 16 / a.width
		if format == "BF16" {
			mask := a.vec()
			a.upperMask(mask)
			a.pairsOfRows(n, d, s, func() {
				for i := range vectors {
					from := operand.Mem{Base: s, Disp: i * a.width * 4}
					x, y := a.vec(), a.vec()
					a.lower(from, x)
					a.upper(from, mask, y)
					a.VMOVUPS(x, to(i))
					a.VMOVUPS(y, to(vectors+i))
				}
			})
		}
		a.SUBQ(operand.Imm(16), n)
		a.JLT(operand.LabelRef("done"))
		a.Label("loop")
		for i := range vectors {
			v := a.vec()
			a.widen(operand.Mem{Base: s, Disp: i * a.width * 2}, v, format)
			a.VMOVUPS(v, to(i))
		}
		a.ADDQ(operand.Imm(stripBytes/2), s)
		a.ADDQ(operand.Imm(stripBytes), d)
		a.SUBQ(operand.Imm(16), n)
		a.JGE(operand.LabelRef("loop"))
		a.Label("done")
		a.end()
	}
}

// Constants of upperHalf: just below half of the last bit that is kept, and the bit that makes a
// NaN quiet.
const (
	bitsHalf  = 0x7fff
	bitsQuiet = 0x40
)

// upperHalf rounds floats to their upper halves, with ties to even. NaN stays NaN.
func (a halves) upperHalf(x reg.VecVirtual) reg.VecVirtual {
	top := a.do(a.VPSRLD, operand.U8(16), x)
	v, nan := a.vec(), a.vec()
	if a.wide() {
		a.VPANDD(a.bits(1), top, v)
		a.VPORD(a.bits(bitsQuiet), top, nan)
	} else {
		a.VPAND(a.bits(1), top, v)
		a.VPOR(a.bits(bitsQuiet), top, nan)
	}
	v = a.do(a.VPADDD, a.bits(bitsHalf), v)
	v = a.do(a.VPADDD, x, v)
	v = a.do(a.VPSRLD, operand.U8(16), v)
	const unordered = 3
	if a.wide() {
		k := a.K()
		a.VCMPPS(operand.U8(unordered), x, x, k)
		a.VMOVDQA32(nan, k, v)
		return v
	}
	mask := a.vec()
	a.VCMPPS(operand.U8(unordered), x, x, mask)
	a.VBLENDVPS(mask, nan, v, v)
	return v
}
