package main

import (
	"fmt"
	"go/types"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A level is an instruction set to generate for.
type level struct {
	name    string // suffix of function names
	file    string // part of file names
	width   int    // floats of a vector
	regs    int    // vector registers
	tiles   []int  // most strips of a tile, by rows
	dotRows int    // most rows of a Dot
}

// The levels. A tile's accumulators, its row of B and one or all of its values of A must fit
// into the registers.
var levels = []level{
	{
		name:    "AVX2",
		file:    "avx2",
		width:   8,
		regs:    16,
		tiles:   []int{0, 6, 3, 2, 1, 1, 1},
		dotRows: 2,
	},
	{
		name:    "AVX512",
		file:    "avx512",
		width:   16,
		regs:    32,
		tiles:   []int{0, 8, 8, 8, 6, 5, 4, 3, 3},
		dotRows: 4,
	},
}

// asm writes functions for one level. Its methods hide the difference between the levels; methods
// of the embedded context are single instructions.
type asm struct {
	*build.Context
	level
	pkg    *types.Package
	consts map[string]operand.Mem
	held   map[uint32]reg.VecVirtual // constants in registers, in the current function
	masks  *operand.Mem
	shared reg.OpmaskVirtual // the register that opmask returns in the current routine; nil: a new one each time
}

func newAsm(pkg *types.Package, l level) *asm {
	a := &asm{Context: build.NewContext(), level: l, pkg: pkg, consts: map[string]operand.Mem{}}
	a.ConstraintExpr(constraint)
	return a
}

func (a *asm) wide() bool { return a.width == 16 }

// begin starts a function. The level is appended to its name.
func (a *asm) begin(name, signature string, doc ...string) {
	a.Function(name + a.name)
	a.Attributes(attr.NOSPLIT)
	a.Doc(append([]string{name + a.name + " " + doc[0]}, doc[1:]...)...)
	s, err := gotypes.ParseSignatureInPackage(a.pkg, "func"+signature)
	if err != nil {
		panic(err)
	}
	a.Signature(s)
	a.held = map[uint32]reg.VecVirtual{}
}

// opmask returns a mask register for a few instructions.
func opmask(a *asm) reg.OpmaskVirtual {
	if a.shared != nil {
		return a.shared
	}
	return a.K()
}

func (a *asm) end() {
	a.shared = nil
	a.VZEROUPPER()
	a.RET()
}

// vec returns a fresh vector register.
func (a *asm) vec() reg.VecVirtual {
	if a.wide() {
		return a.ZMM()
	}
	return a.YMM()
}

// phys returns vector register i.
func (a *asm) phys(i int) reg.Physical {
	if a.wide() {
		return reg.LookupPhysical(reg.KindVector, reg.Index(i), reg.S512)
	}
	return reg.LookupPhysical(reg.KindVector, reg.Index(i), reg.S256)
}

// half returns the lower 256 bits of vector register i.
func (a *asm) half(i int) reg.Physical {
	return reg.LookupPhysical(reg.KindVector, reg.Index(i), reg.S256)
}

func (a *asm) zero(v operand.Op) {
	if a.wide() {
		a.VPXORD(v, v, v)
	} else {
		a.VXORPS(v, v, v)
	}
}

// memory returns the address of a constant. It is repeated over a vector if the level has no cheap
// way to hold it in a register.
func (a *asm) memory(bits uint32) operand.Mem {
	if a.wide() {
		return a.repeated("c", bits, 1)
	}
	return a.repeated("c", bits, a.width)
}

// repeated returns the address of so many copies of a value.
func (a *asm) repeated(prefix string, bits uint32, times int) operand.Mem {
	name := fmt.Sprintf("%s%08x", prefix, bits)
	m, ok := a.consts[name]
	if !ok {
		m = a.StaticGlobal(name)
		a.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range times {
			a.AddDatum(4*i, operand.U32(bits))
		}
		a.consts[name] = m
	}
	return m
}

// bits returns an operand with bits in every lane: a register if hold has loaded it, otherwise
// memory.
func (a *asm) bits(bits uint32) operand.Op {
	if r, ok := a.held[bits]; ok {
		return r
	}
	return a.repeated(map[bool]string{true: "v", false: "c"}[a.wide()], bits, a.width)
}

func (a *asm) float(f float32) operand.Op { return a.bits(math.Float32bits(f)) }

// hold loads constants into registers before a loop, if the level has enough registers.
func (a *asm) hold(bits ...uint32) {
	if !a.wide() {
		return
	}
	for _, b := range bits {
		if _, ok := a.held[b]; ok {
			continue
		}
		r := a.vec()
		a.VBROADCASTSS(a.memory(b), r)
		a.held[b] = r
	}
}

// load moves an operand into a fresh register.
func (a *asm) load(from operand.Op) reg.VecVirtual {
	v := a.vec()
	a.VMOVUPS(from, v)
	return v
}

// do applies a three-operand instruction, in Go's order of operands, to a fresh register.
func (a *asm) do(f func(ops ...operand.Op), x, y operand.Op) reg.VecVirtual {
	v := a.vec()
	f(x, y, v)
	return v
}

// maskTable returns the address of 16 words of ones followed by 16 words of zeros.
func (a *asm) maskTable() operand.Mem {
	if a.masks == nil {
		m := a.StaticGlobal("mask")
		a.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range 32 {
			w := uint32(0)
			if i < 16 {
				w = math.MaxUint32
			}
			a.AddDatum(4*i, operand.U32(w))
		}
		a.masks = &m
	}
	return *a.masks
}

// checkRegisters reports a 256-bit function that uses registers of AVX-512.
func (a *asm) checkRegisters(f *ir.File) error {
	if a.wide() {
		return nil
	}
	for _, fn := range f.Functions() {
		for _, isa := range fn.ISA {
			if len(isa) >= 6 && isa[:6] == "AVX512" {
				return fmt.Errorf("%s needs %s", fn.Name, isa)
			}
		}
		for _, i := range fn.Instructions() {
			for _, r := range i.Registers() {
				if p := reg.ToPhysical(r); p != nil && p.Kind() == reg.KindVector && p.PhysicalIndex() > 15 {
					return fmt.Errorf("%s uses %s", fn.Name, p.Asm())
				}
			}
		}
	}
	return nil
}
