package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"rnnbench/rnn/cell"
)

// ifPacked jumps if rows are packed: so short that a vector holds several.
func (a compiler) ifPacked(to string) {
	packs := a.Load(a.Param("packs").Base(), a.GP64())
	a.TESTQ(packs, packs)
	a.JNZ(operand.LabelRef(to))
}

// packed emits the program for a group of short rows that fill one vector together. Vectors of
// states have their rows one after another. Rows of gates, of saved values and of their gradients
// are loaded and stored one by one: with a mask for the row's lanes, and at an address at which
// they match the row.
func (a compiler) packed(p cell.Program, v, at, rows reg.GPVirtual) {
	a.Label("packed")
	_, size := a.fieldOf("Pack", "Rows")
	pack := a.Load(a.Param("packs").Base(), a.GP64()).(reg.GPVirtual)
	a.CMPQ(rows, operand.Imm(1))
	a.JNE(operand.LabelRef("group"))
	a.ADDQ(operand.I32(int32(size)), pack)
	a.Label("group")
	i := a.GP64()
	a.XORQ(i, i)
	a.prefetch(p, v, at, i)
	k := &packer{compiler: a, v: v, at: at, pack: pack, place: places(p)}
	if a.wide() {
		bits, _ := a.fieldOf("Pack", "Bits")
		k.all, k.row = a.K(), a.K()
		a.KMOVW(operand.Mem{Base: pack, Disp: bits}, k.all)
	}
	a.straight(p, nil, k.load, k.store)
	a.JMP(operand.LabelRef("next"))
}

// A packer loads and stores vectors of short rows.
type packer struct {
	compiler
	v, at, pack reg.GPVirtual
	place       map[cell.Ref]int
	all, row    reg.OpmaskVirtual // the lanes of all rows, and of one row, if the level has mask registers
	labels      int
}

// apart reports whether other vectors lie between the rows of a vector of kind k.
func apart(k cell.Kind) bool {
	switch k {
	case cell.X, cell.R, cell.Saved, cell.DX, cell.DR:
		return true
	}
	return false
}

// base returns the address of a vector.
func (k *packer) base(ref cell.Ref) reg.GPVirtual {
	base := k.GP64()
	k.MOVQ(operand.Mem{Base: k.at, Disp: 8 * k.place[ref]}, base)
	return base
}

func (k *packer) load(ref cell.Ref) reg.VecVirtual {
	base, x := k.base(ref), k.vec()
	switch {
	case !apart(ref.Kind) && k.wide():
		k.VMOVUPS_Z(operand.Mem{Base: base}, k.all, x)
	case !apart(ref.Kind):
		k.VMOVUPS(k.lanes(), x)
		k.VMASKMOVPS(operand.Mem{Base: base}, x, x)
	default:
		k.each(ref, base, func(mask operand.Op, first bool) {
			switch {
			case k.wide() && first:
				k.VMOVUPS_Z(operand.Mem{Base: base}, mask, x)
			case k.wide():
				k.VMOVUPS(operand.Mem{Base: base}, mask, x)
			case first:
				k.VMASKMOVPS(operand.Mem{Base: base}, mask, x)
			default:
				row := k.vec()
				k.VMASKMOVPS(operand.Mem{Base: base}, mask, row)
				k.VORPS(row, x, x)
			}
		})
	}
	return x
}

func (k *packer) store(x reg.VecVirtual, ref cell.Ref) {
	base := k.base(ref)
	put := func(mask operand.Op) {
		if k.wide() {
			k.VMOVUPS(x, mask, operand.Mem{Base: base})
			return
		}
		k.VMASKMOVPS(x, mask, operand.Mem{Base: base})
	}
	switch {
	case apart(ref.Kind):
		k.each(ref, base, func(mask operand.Op, _ bool) { put(mask) })
	case k.wide():
		put(k.all)
	default:
		mask := k.vec()
		k.VMOVUPS(k.lanes(), mask)
		put(mask)
	}
}

// lanes returns the address of the lanes of all rows.
func (k *packer) lanes() operand.Mem {
	lanes, _ := k.fieldOf("Pack", "Lanes")
	return operand.Mem{Base: k.pack, Disp: lanes}
}

// each emits body for the first row, and in a loop for the other rows. mask has the row's lanes,
// and base is the address at which they match the row.
func (k *packer) each(ref cell.Ref, base reg.GPVirtual, body func(mask operand.Op, first bool)) {
	name, entry := "Bits", 4
	if !k.wide() {
		name, entry = "Lanes", 32
	}
	masks, _ := k.fieldOf("Pack", name)
	count, _ := k.fieldOf("Pack", "Rows")
	shift, size := k.vectorField("Shift")
	label := fmt.Sprint("piece", k.labels)
	k.labels++
	at, left, by := k.GP64(), k.GP64(), k.GP64()
	k.LEAQ(operand.Mem{Base: k.pack, Disp: masks + entry}, at)
	k.MOVQ(operand.Mem{Base: k.pack, Disp: count}, left)
	k.MOVQ(operand.Mem{Base: k.v, Disp: size*k.place[ref] + shift}, by)
	one := func(first bool) {
		var mask operand.Op = k.row
		if k.wide() {
			k.KMOVW(operand.Mem{Base: at}, k.row)
		} else {
			v := k.vec()
			k.VMOVUPS(operand.Mem{Base: at}, v)
			mask = v
		}
		body(mask, first)
	}
	one(true)
	k.DECQ(left)
	k.JZ(operand.LabelRef(label + "done"))
	k.Label(label)
	k.ADDQ(by, base)
	k.ADDQ(operand.Imm(uint64(entry)), at)
	one(false)
	k.DECQ(left)
	k.JNZ(operand.LabelRef(label))
	k.Label(label + "done")
}
