package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A rule is a step of an optimiser: it changes slices by grad and by the coefficients of package
// simd.
type rule struct {
	name    string
	loop    string   // the Go loop, for the comment
	changes []string // param, then moments
	uses    []int    // coefficients
	body    func(a elements, v []reg.VecVirtual, g reg.VecVirtual, by map[int]reg.VecVirtual)
}

// The coefficients, in the order of package simd.
const (
	byScale = iota
	byRate
	byBeta1
	byRest1
	byBeta2
	byRest2
	byRoot
	byEpsilon
)

var rules = []rule{
	{name: "descend", loop: "param[i] -= rate * (scale * grad[i])", changes: []string{"param"}, uses: []int{byScale, byRate},
		body: func(a elements, v []reg.VecVirtual, g reg.VecVirtual, by map[int]reg.VecVirtual) {
			a.VMULPS(by[byScale], g, g)
			a.VFNMADD231PS(by[byRate], g, v[0])
		}},
	{name: "momentum", loop: "first[i] = beta1*first[i] + scale*grad[i]; param[i] -= rate * first[i]", changes: []string{"param", "first"}, uses: []int{byScale, byRate, byBeta1},
		body: func(a elements, v []reg.VecVirtual, g reg.VecVirtual, by map[int]reg.VecVirtual) {
			a.VMULPS(by[byBeta1], v[1], v[1])
			a.VFMADD231PS(by[byScale], g, v[1])
			a.VFNMADD231PS(by[byRate], v[1], v[0])
		}},
	{name: "adam", loop: "g := scale * grad[i]; first[i] = beta1*first[i] + rest1*g; second[i] = beta2*second[i] + rest2*g*g; param[i] -= rate * first[i] / (√second[i]*root + epsilon)",
		changes: []string{"param", "first", "second"}, uses: []int{byScale, byRate, byBeta1, byRest1, byBeta2, byRest2, byRoot, byEpsilon},
		body: func(a elements, v []reg.VecVirtual, g reg.VecVirtual, by map[int]reg.VecVirtual) {
			a.VMULPS(by[byScale], g, g)
			a.VMULPS(by[byBeta1], v[1], v[1])
			a.VFMADD231PS(by[byRest1], g, v[1])
			a.VMULPS(by[byBeta2], v[2], v[2])
			t := a.do(a.VMULPS, by[byRest2], g)
			a.VFMADD231PS(t, g, v[2])
			t = a.rootOf(v[2])
			a.VFMADD213PS(by[byEpsilon], by[byRoot], t) // t = root·t + ε
			mean := a.vec()
			a.VMOVAPS(v[1], mean)
			a.VFNMADD231PS(by[byRate], a.divide(mean, t), v[0])
		}},
}

// rootOf returns √x for x ≥ 0. If x is infinite, it may return the root of the largest number.
func (a elements) rootOf(x reg.VecVirtual) reg.VecVirtual {
	if !a.wide() {
		v := a.vec()
		a.VSQRTPS(x, v)
		return v
	}
	const greater = 0x1e // _CMP_GT_OQ
	// 1/√x within 2⁻¹⁴ and one Newton step, within 2⁻²⁷: a third of the cycles of a root. 1/√0
	// becomes 0.
	most, k, y := a.load(a.float(math.MaxFloat32)), a.K(), a.vec()
	a.VMINPS(x, most, most)
	a.VCMPPS(operand.U8(greater), a.float(0), most, k)
	a.VRSQRT14PS_Z(most, k, y)
	root, left := a.do(a.VMULPS, most, y), a.load(a.float(0.5))
	a.VMULPS(left, y, y)
	a.VFNMADD231PS(root, y, left) // left = ½ − root·y
	a.VFMADD231PS(root, left, root)
	return root
}

// A stepper writes steps of optimisers.
type stepper struct{ elements }

func optimizers(a *asm) {
	for _, r := range rules {
		stepper{elements{a}}.step(r)
	}
}

// step writes the loop of a rule. It treats denormal numbers as zeros: moments that nothing adds to
// decay to such numbers and stay there, and each would cost over a hundred cycles.
func (a stepper) step(r rule) {
	params := append(append([]string{}, r.changes...), "grad")
	a.begin(r.name, "("+strings.Join(params, ", ")+" []float32, by *[8]float32)", fmt.Sprintf("is: for i := range param { %s }", r.loop))
	n := a.Load(a.Param("param").Len(), a.GP64()).(reg.GPVirtual)
	base := map[string]reg.GPVirtual{}
	for _, p := range params {
		base[p] = a.Load(a.Param(p).Base(), a.GP64()).(reg.GPVirtual)
	}
	coefficients := a.Load(a.Param("by"), a.GP64()).(reg.GPVirtual)
	by := map[int]reg.VecVirtual{}
	for _, c := range r.uses {
		by[c] = a.vec()
		a.VBROADCASTSS(operand.Mem{Base: coefficients, Disp: 4 * c}, by[c])
	}
	restore := a.flushDenormals()
	i := a.GP64()
	a.XORQ(i, i)
	at := func(p string) operand.Mem { return operand.Mem{Base: base[p], Index: i, Scale: 4} }

	a.SUBQ(operand.Imm(uint64(a.width)), n)
	a.JLT(operand.LabelRef("tail"))
	a.Label("loop")
	var v []reg.VecVirtual
	for _, p := range params {
		v = append(v, a.load(at(p)))
	}
	last := len(r.changes)
	r.body(a.elements, v[:last], v[last], by)
	for k, p := range r.changes {
		a.VMOVUPS(v[k], at(p))
	}
	a.ADDQ(operand.Imm(uint64(a.width)), i)
	a.SUBQ(operand.Imm(uint64(a.width)), n)
	a.JGE(operand.LabelRef("loop"))

	a.Label("tail")
	a.ADDQ(operand.Imm(uint64(a.width)), n)
	a.JZ(operand.LabelRef("done"))
	load, store := a.masked(n)
	v = nil
	for _, p := range params {
		v = append(v, load(at(p)))
	}
	r.body(a.elements, v[:last], v[last], by)
	for k, p := range r.changes {
		store(v[k], at(p))
	}
	a.Label("done")
	restore()
	a.end()
}

// masked returns functions that load and store the last n elements, fewer than a vector. Loads pad
// with zeros.
func (a stepper) masked(n reg.GPVirtual) (load func(operand.Mem) reg.VecVirtual, store func(reg.VecVirtual, operand.Mem)) {
	if a.wide() {
		k := a.tailMask(n)
		return func(m operand.Mem) reg.VecVirtual {
			v := a.vec()
			a.VMOVUPS_Z(m, k, v)
			return v
		}, func(v reg.VecVirtual, m operand.Mem) { a.VMOVUPS(v, k, m) }
	}
	mask := a.load(a.tailMaskAt(n))
	return func(m operand.Mem) reg.VecVirtual {
		v := a.vec()
		a.VMASKMOVPS(m, mask, v)
		return v
	}, func(v reg.VecVirtual, m operand.Mem) { a.VMASKMOVPS(v, mask, m) }
}

// flushDenormals makes denormal operands and results zeros, until the code that restore writes.
func (a stepper) flushDenormals() (restore func()) {
	const flush = 1<<15 | 1<<6 // FTZ, DAZ
	local := a.AllocLocal(8)
	now := operand.Mem{Base: local.Base, Index: local.Index, Scale: local.Scale, Disp: local.Disp + 4, Symbol: local.Symbol}
	a.VSTMXCSR(local)
	control := a.GP32()
	a.MOVL(local, control)
	a.ORL(operand.U32(flush), control)
	a.MOVL(control, now)
	a.VLDMXCSR(now)
	return func() { a.VLDMXCSR(local) }
}
