package main

import (
	"fmt"
	"go/types"
	"slices"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

func loops(a *asm) {
	for _, r := range loopRoutines() {
		compiler{elements{a}}.loop(r)
	}
}

// vectorField returns the offset of a field of Vector and the size of one.
func (a compiler) vectorField(name string) (offset, size int) { return a.fieldOf("Vector", name) }

// fieldOf returns the offset of a field of a struct and the size of one.
func (a compiler) fieldOf(of, name string) (offset, size int) {
	s := a.pkg.Scope().Lookup(of).Type().Underlying().(*types.Struct)
	sizes := types.SizesFor("gc", "amd64")
	var fields []*types.Var
	at := -1
	for i := range s.NumFields() {
		fields = append(fields, s.Field(i))
		if s.Field(i).Name() == name {
			at = i
		}
	}
	return int(sizes.Offsetsof(fields)[at]), int(sizes.Sizeof(s))
}

// bypass is the kind of vectors that no later step of the loop reads.
const bypass = cell.Next

// prefetch prefetches, in each pass over a vector of units, as much of a later row as the program
// reads of this one. A processor does not recognise gates that are read side by side as a stream.
// Prefetches out of order arrive at half the rate, so a row of gates is prefetched from end to end.
func (a compiler) prefetch(p cell.Program, v, at, i reg.GPVirtual) {
	refs, _ := p.Vectors() // vectors that it reads come first
	ahead, size := a.vectorField("Ahead")
	pace, _ := a.vectorField("Pace")
	beside, _ := a.vectorField("Beside")
	to, by := a.GP64(), a.GP64()
	for k, ref := range refs {
		n := sideBySide(refs, ref)
		if n == 0 {
			continue
		}
		a.MOVQ(operand.Mem{Base: v, Disp: size*k + pace}, to)
		a.IMULQ(i, to)
		a.ADDQ(operand.Mem{Base: v, Disp: size*k + ahead}, to)
		a.SHLQ(operand.Imm(2), to)
		a.ADDQ(operand.Mem{Base: at, Disp: 8 * k}, to)
		a.PREFETCHT0(operand.Mem{Base: to})
		if n > 1 {
			a.MOVQ(operand.Mem{Base: v, Disp: size*k + beside}, by)
		}
		for range n - 1 {
			a.LEAQ(operand.Mem{Base: to, Index: by, Scale: 4}, to)
			a.PREFETCHT0(operand.Mem{Base: to})
		}
	}
}

// sideBySide counts the adjacent vectors from ref on, like SideBySide of package fused.
func sideBySide(refs []cell.Ref, ref cell.Ref) int {
	switch ref.Kind {
	case cell.DOut, cell.Prev, cell.Next:
		return 1
	case cell.X, cell.R, cell.Saved:
	default:
		return 0
	}
	next := func(by int) cell.Ref { return cell.Ref{Kind: ref.Kind, Index: ref.Index + by} }
	if slices.Contains(refs, next(-1)) {
		return 0
	}
	n := 1
	for slices.Contains(refs, next(n)) {
		n++
	}
	return n
}

// inRows are the registers of a routine that runs over rows of units: what it is given, and where it is.
type inRows struct {
	compiler
	v, at    reg.GPVirtual // vectors, and where the current row of each begins
	i, n     reg.GPVirtual // unit, and how many are left
	left     reg.GPVirtual // rows that are left
	to, more reg.GPVirtual
	vectors  int
}

func (a compiler) rowsOf(vectors int) inRows {
	v := a.Load(a.Param("v").Base(), a.GP64()).(reg.GPVirtual)
	at := a.Load(a.Param("at").Base(), a.GP64()).(reg.GPVirtual)
	return inRows{a, v, at, a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), vectors}
}

// begin sets each address to the first row.
func (a inRows) begin() {
	data, size := a.vectorField("Data")
	a.add("From", func(k int) operand.Mem { return operand.Mem{Base: a.v, Disp: size*k + data} })
}

// move adds a field of each vector to its address.
func (a inRows) move(name string) {
	a.add(name, func(k int) operand.Mem { return operand.Mem{Base: a.at, Disp: 8 * k} })
}

func (a inRows) add(name string, address func(k int) operand.Mem) {
	offset, size := a.vectorField(name)
	for k := range a.vectors {
		a.MOVQ(address(k), a.to)
		a.MOVQ(operand.Mem{Base: a.v, Disp: size*k + offset}, a.more)
		a.LEAQ(operand.Mem{Base: a.to, Index: a.more, Scale: 4}, a.to)
		a.MOVQ(a.to, operand.Mem{Base: a.at, Disp: 8 * k})
	}
}

// unit is where the current unit of a vector is.
func (a inRows) unit(k int) operand.Mem {
	base := a.GP64()
	a.MOVQ(operand.Mem{Base: a.at, Disp: 8 * k}, base)
	return operand.Mem{Base: base, Index: a.i, Scale: 4}
}

// loop compiles one routine: for each row of each step, a loop over vectors of units.
func (a compiler) loop(r routine) {
	refs, place := catalog.Vectors(r.program), places(r.program)
	a.begin(r.name, "(v []Vector, at []uintptr, n, rows, steps, stream int, packs []Pack)",
		r.describe("over n units of each row of each step. Of v it takes")...)
	if a.wide() { // mask registers are few, and each would be live throughout
		a.shared = a.K()
	}
	rows := a.rowsOf(len(refs))
	v, at, i, n, left := rows.v, rows.at, rows.i, rows.n, rows.left
	steps := a.Load(a.Param("steps"), a.GP64()).(reg.GPVirtual)
	stream := a.Load(a.Param("stream"), a.GP64()).(reg.GPVirtual)
	rows.begin()
	a.hold(programConsts(r.program)...)
	vector := func(ref cell.Ref) operand.Mem { return rows.unit(place[ref]) }
	a.Label("step")
	a.Load(a.Param("rows"), left)
	a.Label("row")
	a.ifPacked("packed")
	a.Load(a.Param("n"), n)
	a.XORQ(i, i)
	a.SUBQ(operand.Imm(uint64(a.width)), n)
	a.JLT(operand.LabelRef("tail"))
	a.Label("loop")
	a.prefetch(r.program, v, at, i)
	a.straight(r.program, nil, func(ref cell.Ref) reg.VecVirtual { return a.load(vector(ref)) }, a.storing(stream, vector))
	a.ADDQ(operand.Imm(uint64(a.width)), i)
	a.SUBQ(operand.Imm(uint64(a.width)), n)
	a.JGE(operand.LabelRef("loop"))
	a.Label("tail")
	a.ADDQ(operand.Imm(uint64(a.width)), n)
	a.JZ(operand.LabelRef("next"))
	a.tail(r.program, n, nil, vector)
	a.Label("next")
	a.DECQ(left)
	a.JZ(operand.LabelRef("nextstep"))
	rows.move("Row")
	a.JMP(operand.LabelRef("row"))
	a.Label("nextstep")
	a.DECQ(steps)
	a.JZ(operand.LabelRef("done"))
	rows.move("Step")
	a.JMP(operand.LabelRef("step"))
	a.packed(r.program, v, at, left)
	a.Label("done")
	a.SFENCE() // orders stores that bypass the caches before the stores that announce them
	a.end()
}

// storing returns a function that stores a vector. If stream is not 0, some vectors bypass the
// caches.
func (a compiler) storing(stream reg.GPVirtual, vector func(cell.Ref) operand.Mem) func(reg.VecVirtual, cell.Ref) {
	stores := 0
	return func(x reg.VecVirtual, ref cell.Ref) {
		to := vector(ref)
		if ref.Kind != bypass {
			a.VMOVUPS(x, to)
			return
		}
		around, stored := fmt.Sprintf("around%d", stores), fmt.Sprintf("stored%d", stores)
		stores++
		a.TESTQ(stream, stream)
		a.JNZ(operand.LabelRef(around))
		a.VMOVUPS(x, to)
		a.JMP(operand.LabelRef(stored))
		a.Label(around)
		a.VMOVNTPS(x, to)
		a.Label(stored)
	}
}
