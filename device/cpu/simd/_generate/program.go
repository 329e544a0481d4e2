package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// A compiler writes routines.
type compiler struct{ elements }

// A routine is the assembly of one program, which several cells or passes may share.
type routine struct {
	name    string // of the function, without level
	doc     string
	program cell.Program
	keys    []catalog.Key
}

// docs describes each pass, to precede the name of a cell.
var docs = map[catalog.Pass]string{
	catalog.Inference:       "the inference pass of ",
	catalog.Forward:         "the forward pass of ",
	catalog.Backward:        "the backward pass of ",
	catalog.Compose:         "what composes steps of ",
	catalog.ComposeBackward: "what composes steps of the backward pass of ",
}

// routines lists the distinct programs of entries.
func routines(entries []catalog.Entry, suffix string) []routine {
	var all []routine
	for _, e := range entries {
		same := slices.IndexFunc(all, func(r routine) bool { return catalog.Text(r.program) == catalog.Text(e.Program) })
		if same < 0 {
			same = len(all)
			name := camel(e.Cell.Name) + e.Pass.String() + suffix
			all = append(all, routine{name: name, doc: docs[e.Pass] + e.Cell.Name, program: e.Program})
		}
		all[same].keys = append(all[same].keys, e.Key())
	}
	return all
}

// camel returns a cell's name as part of a function's name, without the hash of its file.
func camel(cell string) string {
	name := ""
	cell, _, _ = strings.Cut(cell, "@")
	for i, part := range strings.FieldsFunc(cell, func(r rune) bool { return r == '-' || r == ' ' }) {
		if i > 0 {
			part = strings.ToUpper(part[:1]) + part[1:]
		}
		name += part
	}
	return name
}

// places returns the index of each vector in a routine's operands.
func places(p cell.Program) map[cell.Ref]int {
	place := map[cell.Ref]int{}
	for i, ref := range catalog.Vectors(p) {
		place[ref] = i
	}
	return place
}

// describe returns the comment of a routine. over says what it runs over.
func (r *routine) describe(over string) []string {
	var names []string
	for _, ref := range catalog.Vectors(r.program) {
		names = append(names, ref.String())
	}
	doc := []string{fmt.Sprintf("is %s %s", r.doc, over), strings.Join(names, ", ") + ", and runs:", ""}
	for _, in := range r.program {
		doc = append(doc, "\t"+in.String())
	}
	return doc
}

func kernelRoutines() []routine     { return routines(catalog.Kernels(), "") }
func loopRoutines() []routine       { return routines(catalog.Loops(), "Loop") }
func recurrenceRoutines() []routine { return routines(catalog.Recurrences(), "Steps") }

func programs(a *asm) {
	for _, r := range kernelRoutines() {
		compiler{elements{a}}.program(r)
	}
}

// program compiles one routine: for each row, a loop over vectors of units that keeps all
// intermediate values in registers.
func (a compiler) program(r routine) {
	place := places(r.program)
	a.begin(r.name, "(v []Vector, at []uintptr, n, rows int)", r.describe("over n units of each row. Of v it takes")...)
	rows := a.rowsOf(len(place))
	rows.begin()
	a.hold(programConsts(r.program)...)
	at := func(ref cell.Ref) operand.Mem { return rows.unit(place[ref]) }

	a.Load(a.Param("rows"), rows.left)
	a.Label("row")
	a.Load(a.Param("n"), rows.n)
	a.XORQ(rows.i, rows.i)
	a.SUBQ(operand.Imm(uint64(a.width)), rows.n)
	a.JLT(operand.LabelRef("tail"))
	a.Label("loop")
	a.straight(r.program, nil, func(ref cell.Ref) reg.VecVirtual { return a.load(at(ref)) },
		func(v reg.VecVirtual, ref cell.Ref) { a.VMOVUPS(v, at(ref)) })
	a.ADDQ(operand.Imm(uint64(a.width)), rows.i)
	a.SUBQ(operand.Imm(uint64(a.width)), rows.n)
	a.JGE(operand.LabelRef("loop"))

	a.Label("tail")
	a.ADDQ(operand.Imm(uint64(a.width)), rows.n)
	a.JZ(operand.LabelRef("next"))
	a.tail(r.program, rows.n, nil, at)
	a.Label("next")
	a.DECQ(rows.left)
	a.JZ(operand.LabelRef("done"))
	rows.move("Row")
	a.JMP(operand.LabelRef("row"))
	a.Label("done")
	a.end()
}

// tail emits p for the last n units, fewer than a vector.
func (a compiler) tail(p cell.Program, n reg.GPVirtual, known map[cell.Ref]reg.VecVirtual, at func(cell.Ref) operand.Mem) {
	if a.wide() {
		k := a.tailMask(n)
		a.straight(p, known, func(ref cell.Ref) reg.VecVirtual {
			v := a.vec()
			a.VMOVUPS_Z(at(ref), k, v)
			return v
		}, func(v reg.VecVirtual, ref cell.Ref) { a.VMOVUPS(v, k, at(ref)) })
	} else {
		mask := a.tailMaskAt(n) // loaded again each time, since there are too few registers
		a.straight(p, known, func(ref cell.Ref) reg.VecVirtual {
			v := a.load(mask)
			a.VMASKMOVPS(at(ref), v, v)
			return v
		}, func(v reg.VecVirtual, ref cell.Ref) {
			a.VMASKMOVPS(v, a.load(mask), at(ref))
		})
	}
}

// straight emits the instructions once. Vectors in known are in registers. With few registers,
// other vectors are loaded again at each use.
func (a compiler) straight(p cell.Program, known map[cell.Ref]reg.VecVirtual, load func(cell.Ref) reg.VecVirtual, store func(reg.VecVirtual, cell.Ref)) {
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
func (a elements) apply(op cell.Op, x, y operand.Op) reg.VecVirtual {
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
	case cell.Div:
		return a.do(a.VDIVPS, y, x)
	case cell.Sigmoid:
		return a.mathSigmoid(x)
	case cell.Tanh:
		return a.mathTanh(x)
	case cell.ReLU:
		return a.clampLow(x, 0)
	case cell.Exp:
		return a.mathExp(x)
	case cell.Softplus:
		return a.mathSoftplus(x)
	case cell.Sqrt:
		return a.root(x)
	case cell.SigmoidGrad:
		return a.sigmoidGrad(x, y)
	case cell.TanhGrad:
		return a.tanhGrad(x, y)
	case cell.ReLUGrad:
		return a.reluGrad(x, y)
	case cell.SoftplusGrad:
		return a.softplusGrad(x, y)
	case cell.SqrtGrad:
		return a.sqrtGrad(x, y)
	}
	panic(fmt.Sprintf("no assembly for %v", op))
}

// programConsts lists the distinct constants of p, in order. Those of softplus and of slopes stay
// in memory, since there are too few registers. So do those of tanh if there is a softplus.
func programConsts(p cell.Program) []uint32 {
	var all []uint32
	crowded := slices.ContainsFunc(p, func(in cell.Instr) bool { return in.Op == cell.Softplus })
	for _, in := range p {
		switch in.Op {
		case cell.Neg:
			all = append(all, bitsSign)
		case cell.OneMinus, cell.SigmoidGrad, cell.TanhGrad:
			all = append(all, b(1))
		case cell.Sigmoid:
			all = append(all, sigmoidConsts...)
		case cell.Tanh:
			if !crowded {
				all = append(all, tanhConsts...)
			}
		case cell.ReLU, cell.ReLUGrad, cell.Sqrt:
			all = append(all, b(0))
		case cell.Exp:
			all = append(all, expConsts...)
		}
	}
	return all
}
