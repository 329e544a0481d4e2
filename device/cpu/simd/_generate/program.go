package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"rnnbench/rnn/cell"
)

// A routine is the assembly of one program.
type routine struct {
	name    string // of the function, without level
	doc     string
	program cell.Program
}

// routines lists the programs of all cells, each once.
func routines() []routine {
	var all []routine
	for _, c := range cell.All() {
		all = unique(all, c.Name, "", []routine{
			{"Inference", "the inference pass of " + c.Name, c.Inference},
			{"Forward", "the forward pass of " + c.Name, c.Forward},
			{"Backward", "the backward pass of " + c.Name, c.Backward},
		})
	}
	return all
}

// unique adds to all those of more whose program is not there yet, under the name of a cell.
func unique(all []routine, cell, suffix string, more []routine) []routine {
	name := ""
	for i, part := range strings.FieldsFunc(cell, func(r rune) bool { return r == '-' || r == ' ' }) {
		if i > 0 {
			part = strings.ToUpper(part[:1]) + part[1:]
		}
		name += part
	}
	for _, r := range more {
		key := programText(r.program)
		if !slices.ContainsFunc(all, func(s routine) bool { return programText(s.program) == key }) {
			r.name = name + r.name + suffix
			all = append(all, r)
		}
	}
	return all
}

// programText identifies a program; package fused compares it.
func programText(p cell.Program) string {
	var lines []string
	for _, in := range p {
		lines = append(lines, in.String())
	}
	return strings.Join(lines, "; ")
}

// vectors lists a program's vectors in the order of package fused: what it reads, then what it only writes.
func vectors(p cell.Program) []cell.Ref {
	reads, writes := p.Vectors()
	known := map[cell.Ref]bool{}
	for _, r := range reads {
		known[r] = true
	}
	for _, w := range writes {
		if !known[w] {
			reads = append(reads, w)
		}
	}
	return reads
}

func programs(a *asm) {
	for _, r := range routines() {
		a.program(r)
	}
}

// program compiles one routine: a loop over vectors of units, in which all that the program
// computes stays in registers.
func (a *asm) program(r routine) {
	doc := []string{fmt.Sprintf("is %s over n units. Of v it takes", r.doc)}
	place := map[cell.Ref]int{}
	var names []string
	for i, ref := range vectors(r.program) {
		place[ref] = i
		names = append(names, ref.String())
	}
	doc = append(doc, strings.Join(names, ", ")+", and runs:", "")
	for _, in := range r.program {
		doc = append(doc, "\t"+in.String())
	}
	a.begin(r.name, "(v [][]float32, n int)", doc...)
	table := a.Load(a.Param("v").Base(), a.GP64()).(reg.GPVirtual)
	n := a.Load(a.Param("n"), a.GP64()).(reg.GPVirtual)
	a.hold(programConsts(r.program)...)
	i := a.GP64()
	a.XORQ(i, i)
	at := func(ref cell.Ref) operand.Mem {
		base := a.GP64()
		a.MOVQ(operand.Mem{Base: table, Disp: 24 * place[ref]}, base)
		return operand.Mem{Base: base, Index: i, Scale: 4}
	}

	a.SUBQ(operand.Imm(uint64(a.width)), n)
	a.JLT(operand.LabelRef("tail"))
	a.Label("loop")
	a.straight(r.program, nil, func(ref cell.Ref) reg.VecVirtual { return a.load(at(ref)) },
		func(v reg.VecVirtual, ref cell.Ref) { a.VMOVUPS(v, at(ref)) })
	a.ADDQ(operand.Imm(uint64(a.width)), i)
	a.SUBQ(operand.Imm(uint64(a.width)), n)
	a.JGE(operand.LabelRef("loop"))

	a.Label("tail")
	a.ADDQ(operand.Imm(uint64(a.width)), n)
	a.JZ(operand.LabelRef("done"))
	a.tail(r.program, n, nil, at)
	a.Label("done")
	a.end()
}

// tail emits p for the last n units, fewer than a vector.
func (a *asm) tail(p cell.Program, n reg.GPVirtual, known map[cell.Ref]reg.VecVirtual, at func(cell.Ref) operand.Mem) {
	if a.wide() {
		k := a.tailMask(n)
		a.straight(p, known, func(ref cell.Ref) reg.VecVirtual {
			v := a.vec()
			a.VMOVUPS_Z(at(ref), k, v)
			return v
		}, func(v reg.VecVirtual, ref cell.Ref) { a.VMOVUPS(v, k, at(ref)) })
	} else {
		mask := a.tailMaskAt(n) // loaded anew each time, for want of registers
		a.straight(p, known, func(ref cell.Ref) reg.VecVirtual {
			v := a.load(mask)
			a.VMASKMOVPS(at(ref), v, v)
			return v
		}, func(v reg.VecVirtual, ref cell.Ref) {
			a.VMASKMOVPS(v, a.load(mask), at(ref))
		})
	}
}

// straight emits the instructions once. Vectors that are known are in registers; with few registers,
// others are loaded again at each use.
func (a *asm) straight(p cell.Program, known map[cell.Ref]reg.VecVirtual, load func(cell.Ref) reg.VecVirtual, store func(reg.VecVirtual, cell.Ref)) {
	value := map[cell.Ref]reg.VecVirtual{}
	maps.Copy(value, known)
	for _, in := range p {
		var arg [2]operand.Op
		for k, ref := range in.Args() {
			v, ok := value[ref]
			if !ok {
				if k == 1 && in.A == in.B {
					v = arg[0].(reg.VecVirtual)
				} else {
					v = load(ref)
				}
				if a.wide() {
					value[ref] = v
				}
			}
			arg[k] = v
		}
		out := a.apply(in.Op, arg[0], arg[1])
		value[in.Out] = out
		if in.Out.Kind != cell.Temp {
			store(out, in.Out)
		}
	}
}

// apply emits one operation into a fresh register, except that Copy returns its operand.
func (a *asm) apply(op cell.Op, x, y operand.Op) reg.VecVirtual {
	switch op {
	case cell.Zero:
		v := a.vec()
		a.zero(v)
		return v
	case cell.Copy:
		return x.(reg.VecVirtual)
	case cell.Neg:
		return a.xor(a.bits(bitsSign), x)
	case cell.OneMinus:
		return a.oneMinus(x)
	case cell.Add:
		return a.do(a.VADDPS, y, x)
	case cell.Sub:
		return a.do(a.VSUBPS, y, x)
	case cell.Mul:
		return a.do(a.VMULPS, y, x)
	case cell.Sigmoid:
		return a.mathSigmoid(x)
	case cell.Tanh:
		return a.mathTanh(x)
	case cell.ReLU:
		return a.clampLow(x, 0)
	case cell.SigmoidGrad:
		return a.sigmoidGrad(x, y)
	case cell.TanhGrad:
		return a.tanhGrad(x, y)
	case cell.ReLUGrad:
		return a.reluGrad(x, y)
	}
	panic(fmt.Sprintf("no assembly for %v", op))
}

// programConsts lists the constants of p, in order and each once.
func programConsts(p cell.Program) []uint32 {
	var all []uint32
	for _, in := range p {
		switch in.Op {
		case cell.Neg:
			all = append(all, bitsSign)
		case cell.OneMinus, cell.SigmoidGrad, cell.TanhGrad:
			all = append(all, b(1))
		case cell.Sigmoid:
			all = append(all, sigmoidConsts...)
		case cell.Tanh:
			all = append(all, tanhConsts...)
		case cell.ReLU, cell.ReLUGrad:
			all = append(all, b(0))
		}
	}
	return all
}
