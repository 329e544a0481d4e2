package main

import (
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileRows is the number of rows of an input product's tile (see fused.TileRows).
const tileRows = 16

// A former computes the tiles of an input product among the products of steps. A tile is one vector
// of columns by as many rows as half of the registers hold. Products of steps mostly wait for their
// weights, which a core reads from L2 at less than half the rate of its multiply-adds. A tile has
// sixteen multiply-adds for each vector of weights. Its sums stay in registers from step to step.
type former struct {
	*asm
	field func(name string) gotypes.Component
	sums  []reg.VecVirtual
	w, in reg.GPVirtual // addresses of the next row of the tile's weights and of its inputs, while terms are added
}

// begin loads the sums of a tile that was left.
func (f *former) begin() {
	at := f.GP64()
	f.Load(f.field("Sums").Base(), at)
	for i := range tileRows {
		f.sums = append(f.sums, f.vec())
		f.VMOVUPS(operand.Mem{Base: at, Disp: stripBytes * i}, f.sums[i])
	}
}

// end stores the sums of the current tile.
func (f *former) end() {
	at := f.GP64()
	f.Load(f.field("Sums").Base(), at)
	for i, v := range f.sums {
		f.VMOVUPS(v, operand.Mem{Base: at, Disp: stripBytes * i})
	}
}

// load begins a series of terms of the tile, and store ends it.
func (f *former) load() {
	f.w, f.in = f.GP64(), f.GP64()
	f.Load(f.field("RowOfWeights"), f.w)
	f.Load(f.field("Inputs"), f.in)
}

func (f *former) store() {
	f.Store(f.w, f.field("RowOfWeights"))
	f.Store(f.in, f.field("Inputs"))
}

// term returns the instructions that add the next term of each sum.
func (f *former) term() []func() {
	w := f.vec()
	all := []func(){func() { f.VMOVUPS(operand.Mem{Base: f.w}, w) }}
	for i, v := range f.sums {
		all = append(all, func() { f.VFMADD231PS_BCST(operand.Mem{Base: f.in, Disp: 4 * i}, w, v) })
	}
	return all
}

// advance moves on to the next term.
func (f *former) advance() {
	f.ADDQ(operand.Imm(stripBytes), f.w)
	f.ADDQ(operand.Imm(4*tileRows), f.in)
}

// last computes the rest of the tiles after the last step, and then jumps to done.
func (f *former) last(done string) {
	n, until := f.GP64(), f.GP64()
	f.Load(f.field("Count"), n)
	f.Load(f.field("Until"), until)
	f.CMPQ(n, until)
	f.JNE(operand.LabelRef("formed"))
	f.Label("form")
	f.Load(f.field("Terms"), n)
	f.TESTQ(n, n)
	f.JZ(operand.LabelRef("sums"))
	f.load()
	f.Label("term")
	for _, t := range f.term() {
		t()
	}
	f.advance()
	f.DECQ(n)
	f.JNZ(operand.LabelRef("term"))
	f.Store(n, f.field("Terms"))
	f.Label("sums")
	f.Load(f.field("Tiles"), n)
	f.TESTQ(n, n)
	f.JZ(operand.LabelRef(done))
	f.finish("final")
	f.JMP(operand.LabelRef("form"))
	f.Label("formed")
}

// finish stores a complete tile and begins the next, if there is one.
func (f *former) finish(label string) {
	tile, to, by, mask := f.GP64(), f.GP64(), f.GP64(), f.GP32()
	f.Load(f.field("Tile"), tile)
	f.MOVQ(operand.Mem{Base: tile, Disp: 16}, to)
	f.MOVL(operand.Mem{Base: tile, Disp: 24}, mask)
	k := f.K()
	f.KMOVW(mask, k)
	f.Load(f.field("OutBy"), by)
	for i, v := range f.sums {
		if i > 0 {
			f.ADDQ(by, to)
		}
		f.VMOVUPS(v, k, operand.Mem{Base: to})
		f.VPSUBD(v, v, v)
	}
	f.ADDQ(operand.Imm(32), tile)
	f.Store(tile, f.field("Tile"))
	f.Load(f.field("Tiles"), to)
	f.DECQ(to)
	f.Store(to, f.field("Tiles"))
	f.JZ(operand.LabelRef(label + "idle"))
	f.MOVQ(operand.Mem{Base: tile}, to)
	f.Store(to, f.field("RowOfWeights"))
	f.MOVQ(operand.Mem{Base: tile, Disp: 8}, to)
	f.Store(to, f.field("Inputs"))
	f.Load(f.field("Depth"), to)
	f.Store(to, f.field("Terms"))
	f.Label(label + "idle")
}

// both adds the products with the next n units of the state, interleaved with terms of a tile: as
// many multiply-adds of one as of the other, or three for four. It leaves in n the units that are
// too few for a term, or all units left once there is no tile.
func (p *products) both(label string, n reg.GPVirtual) {
	shift := 2 // four units
	if p.gates == 1 {
		shift = 3
	}
	times, left := p.GP64(), p.GP64()
	p.Label(label + "both")
	p.MOVQ(n, times)
	p.SHRQ(operand.U8(uint8(shift)), times)
	p.JZ(operand.LabelRef(label + "alone"))
	p.Load(p.field("Terms"), left)
	p.TESTQ(left, left)
	p.JNZ(operand.LabelRef(label + "terms"))
	p.Load(p.field("Tiles"), left)
	p.TESTQ(left, left)
	p.JZ(operand.LabelRef(label + "alone"))
	p.former.finish(label)
	p.JMP(operand.LabelRef(label + "both"))
	p.Label(label + "terms")
	p.CMPQ(left, times)
	p.CMOVQLT(left, times)
	p.SUBQ(times, left)
	p.Store(left, p.field("Terms"))
	p.MOVQ(times, left)
	p.SHLQ(operand.U8(uint8(shift)), left)
	p.SUBQ(left, n)
	p.former.load()
	p.Label(label + "among")
	own, terms := p.terms(1<<shift), p.former.term()
	for i, done := 0, 0; i < len(own); i++ {
		own[i]()
		for ; done < (i+1)*len(terms)/len(own); done++ {
			terms[done]()
		}
	}
	p.former.advance()
	p.advance(1 << shift)
	p.DECQ(times)
	p.JNZ(operand.LabelRef(label + "among"))
	p.former.store()
	p.JMP(operand.LabelRef(label + "both"))
	p.Label(label + "alone")
}
