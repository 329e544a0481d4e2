package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A function of slices computes each element of dst, or the result, from the elements of the
// operands.
type function struct {
	name   string
	loop   string   // the Go loop, for the comment
	out    bool     // it writes dst
	in     []string // operands
	scalar bool     // it takes a scalar s
	consts []uint32
	body   func(a elements, in []operand.Op, s operand.Op) operand.Op
	reduce reduction
}

type reduction int

const (
	none reduction = iota
	sum
	most
)

var functions = []function{
	{name: "add", loop: "dst[i] = a[i] + b[i]", out: true, in: []string{"a", "b"},
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.do(a.VADDPS, in[1], in[0]) }},
	{name: "sub", loop: "dst[i] = a[i] - b[i]", out: true, in: []string{"a", "b"},
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.do(a.VSUBPS, in[1], in[0]) }},
	{name: "mul", loop: "dst[i] = a[i] * b[i]", out: true, in: []string{"a", "b"},
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.do(a.VMULPS, in[1], in[0]) }},
	{name: "div", loop: "dst[i] = a[i] / b[i]", out: true, in: []string{"a", "b"},
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.do(a.VDIVPS, in[1], in[0]) }},
	{name: "scale", loop: "dst[i] = s * a[i]", out: true, in: []string{"a"}, scalar: true,
		body: func(a elements, in []operand.Op, s operand.Op) operand.Op { return a.do(a.VMULPS, s, in[0]) }},
	{name: "oneMinus", loop: "dst[i] = 1 - a[i]", out: true, in: []string{"a"}, consts: bs(1),
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.oneMinus(in[0]) }},
	{name: "relu", loop: "dst[i] = max(a[i], 0)", out: true, in: []string{"a"}, consts: []uint32{0},
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.clampLow(in[0], 0) }},
	{name: "sigmoid", loop: "dst[i] = 1 / (1 + exp(-a[i]))", out: true, in: []string{"a"}, consts: sigmoidConsts,
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.mathSigmoid(in[0]) }},
	{name: "tanh", loop: "dst[i] = tanh(a[i])", out: true, in: []string{"a"}, consts: tanhConsts,
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.mathTanh(in[0]) }},
	{name: "exp", loop: "dst[i] = exp(a[i])", out: true, in: []string{"a"}, consts: expConsts,
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.mathExp(in[0]) }},
	{name: "softplus", loop: "dst[i] = log(1 + exp(a[i]))", out: true, in: []string{"a"}, consts: softplusConsts,
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.mathSoftplus(in[0]) }},
	{name: "sqrt", loop: "dst[i] = √max(a[i], 0)", out: true, in: []string{"a"}, consts: []uint32{0},
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.root(in[0]) }},
	{name: "softplusGrad", loop: "dst[i] = dy[i] * (1 - exp(-y[i]))", out: true, in: []string{"dy", "y"}, consts: tanhConsts,
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.softplusGrad(in[0], in[1]) }},
	{name: "sqrtGrad", loop: "dst[i] = dy[i] / max(2 * y[i], 0.001)", out: true, in: []string{"dy", "y"}, consts: bs(minSlope),
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.sqrtGrad(in[0], in[1]) }},
	{name: "sigmoidGrad", loop: "dst[i] = dy[i] * y[i] * (1 - y[i])", out: true, in: []string{"dy", "y"}, consts: bs(1),
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.sigmoidGrad(in[0], in[1]) }},
	{name: "tanhGrad", loop: "dst[i] = dy[i] * (1 - y[i]*y[i])", out: true, in: []string{"dy", "y"}, consts: bs(1),
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.tanhGrad(in[0], in[1]) }},
	{name: "reluGrad", loop: "dst[i] = dy[i] if y[i] > 0, else 0", out: true, in: []string{"dy", "y"}, consts: []uint32{0},
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.reluGrad(in[0], in[1]) }},
	{name: "expSum", loop: "dst[i] = exp(a[i] - s); sum += dst[i]", out: true, in: []string{"a"}, scalar: true, consts: expConsts, reduce: sum,
		body: func(a elements, in []operand.Op, s operand.Op) operand.Op { return a.mathExp(a.do(a.VSUBPS, s, in[0])) }},
	{name: "sum", loop: "sum += a[i]", in: []string{"a"}, reduce: sum,
		body: func(_ elements, in []operand.Op, _ operand.Op) operand.Op { return in[0] }},
	{name: "squares", loop: "sum += a[i] * a[i]", in: []string{"a"}, reduce: sum,
		body: func(a elements, in []operand.Op, _ operand.Op) operand.Op { return a.do(a.VMULPS, in[0], in[0]) }},
	{name: "most", loop: "sum = max(sum, a[i]), from -Inf", in: []string{"a"}, reduce: most,
		body: func(_ elements, in []operand.Op, _ operand.Op) operand.Op { return in[0] }},
}

func (a elements) oneMinus(x operand.Op) reg.VecVirtual {
	v := a.load(a.float(1))
	a.VSUBPS(x, v, v)
	return v
}

func (a elements) sigmoidGrad(dy, y operand.Op) reg.VecVirtual {
	v := a.oneMinus(y)
	w := a.do(a.VMULPS, y, dy)
	a.VMULPS(w, v, v)
	return v
}

func (a elements) tanhGrad(dy, y operand.Op) reg.VecVirtual {
	v := a.load(a.float(1))
	a.VFNMADD231PS(y, y, v)
	a.VMULPS(dy, v, v)
	return v
}

func (a elements) reluGrad(dy, y operand.Op) reg.VecVirtual {
	const greater = 0x1e // _CMP_GT_OQ
	v := a.vec()
	if a.wide() {
		k := opmask(a.asm)
		a.VCMPPS(operand.U8(greater), a.float(0), y, k)
		a.VMOVAPS_Z(dy, k, v)
		return v
	}
	a.VCMPPS(operand.U8(greater), a.float(0), y, v)
	a.VANDPS(dy, v, v)
	return v
}

// root returns √x, or 0 if x < 0.
func (a elements) root(x operand.Op) reg.VecVirtual {
	v := a.clampLow(x, 0)
	a.VSQRTPS(v, v)
	return v
}

// softplusGrad returns dy·(1 - exp(-y)). With t = tanh(y/2), 1 - exp(-y) = 2t/(1+t), which keeps
// the relative precision near 0.
func (a elements) softplusGrad(dy, y operand.Op) reg.VecVirtual {
	t := a.mathTanh(a.do(a.VMULPS, a.float(.5), y))
	d := a.do(a.VADDPS, a.float(1), t)
	a.VADDPS(t, t, t)
	v := a.divide(t, d)
	a.VMULPS(dy, v, v)
	return v
}

// minSlope is cell.MinSlope.
const minSlope = float32(0.001)

func (a elements) sqrtGrad(dy, y operand.Op) reg.VecVirtual {
	v := a.do(a.VADDPS, y, y)
	d := a.load(a.float(minSlope))
	a.VMAXPS(v, d, d)
	return a.do(a.VDIVPS, d, dy)
}

const infinity = 0xff800000 // -Inf

func pointwise(a *asm) {
	for _, f := range functions {
		elements{a}.function(f)
	}
}

// params returns the names of the slices of f.
func (f *function) params() []string {
	if f.out {
		return append([]string{"dst"}, f.in...)
	}
	return f.in
}

func (f *function) signature() string {
	s := "(" + strings.Join(f.params(), ", ") + " []float32"
	if f.scalar {
		s += ", s float32"
	}
	s += ")"
	if f.reduce != none {
		s += " (sum float32)"
	}
	return s
}

func (a elements) function(f function) {
	params := f.params()
	a.begin(f.name, f.signature(), fmt.Sprintf("is: for i := range %s { %s }", params[0], f.loop))

	n := a.Load(a.Param(params[0]).Len(), a.GP64()).(reg.GPVirtual)
	base := map[string]reg.GPVirtual{}
	for _, p := range params {
		base[p] = a.Load(a.Param(p).Base(), a.GP64()).(reg.GPVirtual)
	}
	var s, acc reg.VecVirtual
	if f.scalar {
		s = a.vec()
		m, err := a.Param("s").Resolve()
		if err != nil {
			panic(err)
		}
		a.VBROADCASTSS(m.Addr, s)
	}
	a.hold(f.consts...)
	switch f.reduce {
	case sum:
		acc = a.vec()
		a.zero(acc)
	case most:
		acc = a.vec()
		a.VBROADCASTSS(a.memory(infinity), acc)
	}
	i := a.GP64()
	a.XORQ(i, i)
	at := func(p string) operand.Mem { return operand.Mem{Base: base[p], Index: i, Scale: 4} }

	a.SUBQ(operand.Imm(uint64(a.width)), n)
	a.JLT(operand.LabelRef("tail"))
	a.Label("loop")
	var in []operand.Op
	for _, p := range f.in {
		in = append(in, a.load(at(p)))
	}
	out := f.body(a, in, s)
	if f.out {
		a.VMOVUPS(out, at("dst"))
	}
	switch f.reduce {
	case sum:
		a.VADDPS(out, acc, acc)
	case most:
		a.VMAXPS(out, acc, acc)
	}
	a.ADDQ(operand.Imm(uint64(a.width)), i)
	a.SUBQ(operand.Imm(uint64(a.width)), n)
	a.JGE(operand.LabelRef("loop"))

	a.Label("tail")
	a.ADDQ(operand.Imm(uint64(a.width)), n)
	a.JZ(operand.LabelRef("done"))
	a.lastElements(f, n, at, s, acc)
	a.Label("done")
	switch f.reduce {
	case sum:
		a.Store(a.horizontal(acc, a.VADDPS), a.ReturnIndex(0))
	case most:
		a.Store(a.horizontal(acc, a.VMAXPS), a.ReturnIndex(0))
	}
	a.end()
}

// lastElements emits f for the last n elements, fewer than a vector.
func (a elements) lastElements(f function, n reg.GPVirtual, at func(string) operand.Mem, s operand.Op, acc reg.VecVirtual) {
	var in []operand.Op
	if a.wide() {
		k := a.tailMask(n)
		for _, p := range f.in {
			v := a.vec()
			a.VMOVUPS_Z(at(p), k, v)
			in = append(in, v)
		}
		out := f.body(a, in, s)
		if f.out {
			a.VMOVUPS(out, k, at("dst"))
		}
		switch f.reduce {
		case sum:
			a.VADDPS(out, acc, k, acc)
		case most:
			a.VMAXPS(out, acc, k, acc)
		}
		return
	}
	mask := a.load(a.tailMaskAt(n))
	for _, p := range f.in {
		v := a.vec()
		a.VMASKMOVPS(at(p), mask, v)
		in = append(in, v)
	}
	out := f.body(a, in, s)
	if f.out {
		a.VMASKMOVPS(out, mask, at("dst"))
	}
	switch f.reduce {
	case sum:
		a.VADDPS(a.do(a.VANDPS, out, mask), acc, acc)
	case most:
		v := a.do(a.VMAXPS, out, acc)
		a.VBLENDVPS(mask, v, acc, acc)
	}
}

// tailMask returns a mask of the low n lanes, n < 32.
func (a *asm) tailMask(n reg.GPVirtual) reg.Register {
	m := a.GP32()
	a.MOVL(operand.U32(0xffff), m)
	a.BZHIL(n.As32(), m, m)
	k := a.K()
	a.KMOVW(m, k)
	return k
}

// tailMaskAt returns the address of a vector whose low n lanes are ones, n ≤ 8.
func (a *asm) tailMaskAt(n reg.GPVirtual) operand.Mem {
	p, t := a.GP64(), a.GP64()
	a.LEAQ(a.maskTable(), p)
	a.MOVQ(operand.U32(16), t)
	a.SUBQ(n, t)
	return operand.Mem{Base: p, Index: t, Scale: 4}
}

// horizontal combines the lanes of v into the first.
func (a *asm) horizontal(v reg.VecVirtual, f func(...operand.Op)) reg.VecVirtual {
	if a.wide() {
		h := a.YMM()
		a.VEXTRACTF64X4(operand.U8(1), v, h)
		f(h, v.AsY(), h)
		v = h
	}
	x := a.XMM()
	a.VEXTRACTF128(operand.U8(1), v.AsY(), x)
	f(x, v.AsX(), x)
	y := a.XMM()
	a.VPSHUFD(operand.U8(0x4e), x, y)
	f(x, y, x)
	a.VPSHUFD(operand.U8(0xb1), x, y)
	f(x, y, x)
	return x
}
