package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// field loads a field of the struct that t points to.
func (a *asm) field(t reg.Register, name string) reg.GPVirtual {
	r := a.GP64()
	a.Load(a.Param("t").Dereference(t).Field(name), r)
	return r
}

func (a *asm) sliceField(t reg.Register, name string) reg.GPVirtual {
	r := a.GP64()
	a.Load(a.Param("t").Dereference(t).Field(name).Base(), r)
	return r
}

// bytes loads a field that counts floats and converts it to bytes.
func (a *asm) bytes(t reg.Register, name string) reg.GPVirtual {
	r := a.field(t, name)
	a.SHLQ(operand.U8(2), r)
	return r
}

// rows addresses equally spaced rows with few registers: a base for every four rows, the stride,
// and three times the stride.
type rows struct {
	base       []reg.GPVirtual
	one, three reg.GPVirtual
}

func (a *asm) rows(base, stride reg.GPVirtual, n int) rows {
	r := rows{base: []reg.GPVirtual{base}, one: stride}
	if n > 3 {
		r.three = a.GP64()
		a.LEAQ(operand.Mem{Base: stride, Index: stride, Scale: 2}, r.three)
	}
	for i := 4; i < n; i += 4 {
		next := a.GP64()
		a.LEAQ(operand.Mem{Base: r.base[len(r.base)-1], Index: stride, Scale: 4}, next)
		r.base = append(r.base, next)
	}
	return r
}

func (r rows) at(i, disp int) operand.Mem {
	m := operand.Mem{Base: r.base[i/4], Disp: disp}
	switch i % 4 {
	case 1:
		m.Index, m.Scale = r.one, 1
	case 2:
		m.Index, m.Scale = r.one, 2
	case 3:
		m.Index, m.Scale = r.three, 1
	}
	return m
}

func (a *asm) advance(r rows, step operand.Op) {
	for _, b := range r.base {
		a.ADDQ(step, b)
	}
}
