package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// elements writes element-wise functions, a vector at a time.
type elements struct{ *asm }

// exp(x) = 2ⁿ·exp(r) with n = round(x·log₂e) and |r| ≤ ln(2)/2, after Cody and Waite; exp(r) - 1 = r + r²·P(r).
// P minimises the largest error of exp(r) - 1 relative to itself, 2⁻²⁶·² (Lawson's iteration on 400 points).
var expPoly = []float32{0.499999981496155, 0.16666543424251182, 0.041667200713151234, 0.008366547132995427, 0.0013882516363389295}

const (
	log2e  = float32(math.Log2E)
	ln2Hi  = float32(math.Ln2)
	ln2Lo  = float32(math.Ln2 - float64(ln2Hi))
	magic  = float32(3 << 22) // adding it rounds to an integer, which ends up in the low bits
	expMax = float32(89)      // exp overflows below it
	expMin = float32(-105)    // exp underflows to 0 above it
	tanMin = float32(-20)     // exp(-40) - 1 rounds to -1

	tanMagic = magic + 127

	bitsMagic = uint32(0x4b400000)
	bitsSign  = uint32(0x80000000)
	bitsAbs   = uint32(0x7fffffff)
)

// 2·P(2r)
var tanPoly = func() (p []float32) {
	for i, c := range expPoly {
		p = append(p, c*float32(int(2)<<i))
	}
	return p
}()

func b(f float32) uint32 { return math.Float32bits(f) }

func bs(fs ...float32) (u []uint32) {
	for _, f := range fs {
		u = append(u, b(f))
	}
	return u
}

var reduceConsts = append(bs(log2e, ln2Hi, ln2Lo, magic, 1), bs(expPoly...)...)

// split returns n as a float, n + magic, and r, which overwrites x.
func (a elements) split(x reg.VecVirtual) (n, shifted, r reg.VecVirtual) {
	shifted = a.load(a.float(magic))
	a.VFMADD231PS(a.float(log2e), x, shifted)
	n = a.do(a.VSUBPS, a.float(magic), shifted)
	a.VFNMADD231PS(a.float(ln2Hi), n, x)
	a.VFNMADD231PS(a.float(ln2Lo), n, x)
	return n, shifted, x
}

// poly returns the polynomial of r with the given coefficients.
func (a elements) poly(r operand.Op, coefficients []float32) reg.VecVirtual {
	last := len(coefficients) - 1
	p := a.load(a.float(coefficients[last]))
	for i := last - 1; i >= 0; i-- {
		a.VFMADD213PS(a.float(coefficients[i]), r, p)
	}
	return p
}

// exponent returns 2ⁿ for an integer n ≥ -126 in the lanes of v.
func (a elements) exponent(v operand.Op) reg.VecVirtual {
	s := a.vec()
	a.VPSLLD(operand.U8(23), v, s)
	a.VPADDD(a.float(1), s, s)
	return s
}

// exp returns exp(x) for x in [expMin, expMax] and NaN, and overwrites x.
func (a elements) exp(x reg.VecVirtual) reg.VecVirtual {
	n, shifted, r := a.split(x)
	p := a.poly(r, expPoly)
	a.VFMADD213PS(a.float(1), r, p)
	a.VFMADD213PS(a.float(1), r, p)
	if a.wide() {
		a.VSCALEFPS(n, p, p)
		return p
	}
	// 2ⁿ in two factors, since n may be beyond the exponents of normal numbers.
	i := a.do(a.VPSUBD, a.bits(bitsMagic), shifted)
	half := a.vec()
	a.VPSRAD(operand.U8(1), i, half)
	a.VPSUBD(half, i, i)
	a.VMULPS(a.exponent(half), p, p)
	a.VMULPS(a.exponent(i), p, p)
	return p
}

// clampLow returns max(x, low), or NaN if x is NaN.
func (a elements) clampLow(x operand.Op, low float32) reg.VecVirtual {
	v := a.load(a.float(low))
	a.VMAXPS(x, v, v)
	return v
}

// divide returns num/d for d in [1/2, 3], and overwrites num.
func (a elements) divide(num, d reg.VecVirtual) reg.VecVirtual {
	if !a.wide() {
		return a.do(a.VDIVPS, d, num)
	}
	// A reciprocal within 2⁻¹⁴ and one Newton step on the quotient, within 2⁻²⁸: half the
	// cycles of a division.
	y := a.vec()
	a.VRCP14PS(d, y)
	q := a.do(a.VMULPS, num, y)
	a.VFNMADD231PS(d, q, num)
	a.VFMADD231PS(y, num, q)
	return q
}

func (a elements) and(x, y operand.Op) reg.VecVirtual {
	if a.wide() {
		return a.do(a.VPANDD, x, y)
	}
	return a.do(a.VANDPS, x, y)
}

func (a elements) or(x, y operand.Op) reg.VecVirtual {
	if a.wide() {
		return a.do(a.VPORD, x, y)
	}
	return a.do(a.VORPS, x, y)
}

func (a elements) xor(x, y operand.Op) reg.VecVirtual {
	if a.wide() {
		return a.do(a.VPXORD, x, y)
	}
	return a.do(a.VXORPS, x, y)
}

// The functions that programs consist of. Each returns a fresh register and does not change its
// operands.

func (a elements) mathExp(x operand.Op) reg.VecVirtual {
	x = a.clampLow(x, expMin)
	v := a.load(a.float(expMax))
	a.VMINPS(x, v, v)
	return a.exp(v)
}

// mathSigmoid is 1/(1+exp(-x)), with exp(-|x|) so that nothing overflows: exp(-|x|)/(1+exp(-|x|)) for x < 0.
func (a elements) mathSigmoid(x operand.Op) reg.VecVirtual {
	e := a.exp(a.clampLow(a.or(a.bits(bitsSign), x), expMin))
	d := a.do(a.VADDPS, a.float(1), e)
	num := a.vec()
	if a.wide() {
		k := opmask(a.asm)
		a.VPMOVD2M(x, k)
		a.VMOVUPS(a.float(1), num)
		a.VMOVAPS(e, k, num)
	} else {
		one := a.load(a.float(1))
		a.VBLENDVPS(x, e, one, num)
	}
	return a.divide(num, d)
}

// mathTanh is h/(1+h) with the sign of x, where h = (exp(-2|x|) - 1)/2, which keeps the relative
// precision near 0. exp(-2|x|) = 2ⁿ·exp(2r) with |r| ≤ ln(2)/4, and so h = 2ⁿ·(exp(2r)-1)/2 +
// (2ⁿ-1)/2, where (exp(2r)-1)/2 = r + r²·2P(2r).
func (a elements) mathTanh(x operand.Op) reg.VecVirtual {
	r := a.clampLow(a.or(a.bits(bitsSign), x), tanMin)
	shifted := a.load(a.float(tanMagic))
	a.VFMADD231PS(a.float(2*log2e), r, shifted)
	n := a.do(a.VSUBPS, a.float(tanMagic), shifted)
	a.VFNMADD231PS(a.float(ln2Hi/2), n, r)
	a.VFNMADD231PS(a.float(ln2Lo/2), n, r)
	p := a.poly(r, tanPoly)
	r2 := a.do(a.VMULPS, r, r)
	a.VFMADD213PS(r, r2, p)
	s := a.vec()
	a.VPSLLD(operand.U8(23), shifted, s) // 2ⁿ: the magic number holds the bias of the exponent
	h := a.load(a.float(-.5))
	a.VFMADD231PS(a.float(.5), s, h)
	a.VFMADD231PS(p, s, h)
	d := a.do(a.VADDPS, a.float(1), h)
	q := a.divide(h, d)
	if a.wide() {
		const select3 = 0xd8 // x where the mask is set, otherwise q
		a.VPTERNLOGD(operand.U8(select3), a.bits(bitsSign), x, q)
		return q
	}
	return a.or(a.and(a.bits(bitsAbs), q), a.and(a.bits(bitsSign), x))
}

// artanh(s)/s = 1 + w·Q(w) with w = s²: the series, to 2⁻²⁶ for w ≤ 1/9.
var artanhPoly = []float32{1. / 3, 1. / 5, 1. / 7, 1. / 9, 1. / 11, 1. / 13}

// mathSoftplus is max(x, 0) + log(1+e) with e = exp(-|x|), where log(1+e) = 2·artanh(s) and s = e/(2+e) ≤ 1/3.
func (a elements) mathSoftplus(x operand.Op) reg.VecVirtual {
	e := a.exp(a.clampLow(a.or(a.bits(bitsSign), x), expMin))
	s := a.divide(e, a.do(a.VADDPS, a.float(2), e))
	w := a.do(a.VMULPS, s, s)
	p := a.poly(w, artanhPoly)
	a.VMULPS(w, p, p)
	a.VADDPS(s, s, s)
	a.VFMADD213PS(s, s, p)
	a.VADDPS(a.clampLow(x, 0), p, p)
	return p
}

var (
	expConsts      = append(bs(expMin, expMax), reduceConsts...)
	sigmoidConsts  = append(append(bs(expMin), bitsSign), reduceConsts...)
	softplusConsts = append(append(bs(expMin, 2, 0), bitsSign), append(bs(artanhPoly...), reduceConsts...)...)
	tanhConsts     = append(append(bs(tanMin, tanMagic, 2*log2e, ln2Hi/2, ln2Lo/2, -.5, .5, 1), bitsSign), bs(tanPoly...)...)
)
