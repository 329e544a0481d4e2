package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// blockVectors lists how many vectors of units a handler runs over: many, or the last ones.
var blockVectors = []int{4, 2, 1}

// The registers that handlers share. code points to the current handler's address, which its
// operands follow. table holds the address of each operand. Units begin unit bytes after it. last
// says which units the last vector has: it is the address of a mask or, if vectors are wide, a mask.
// depth is the number of units of a row.
var (
	codeReg  = reg.RSI
	tableReg = reg.RDI
	unitReg  = reg.RBX
	lastReg  = reg.R13
	depthReg = reg.R12
	operands = []reg.GPPhysical{reg.RAX, reg.RCX, reg.RDX, reg.R8, reg.R9}
)

// An interpreter writes handlers for blocks of so many vectors. The accumulator is in the first
// vector registers.
type interpreter struct {
	elements
	vectors int
}

func interpreters(a *asm) {
	var names []string
	for _, h := range catalog.Handlers() {
		for _, n := range blockVectors {
			names = append(names, interpreter{elements{a}, n}.handler(h))
		}
	}
	all := interpreter{elements: elements{a}}
	all.handlers(names)
	all.interpret()
}

// handlers writes the function that lists the addresses of handlers.
func (a interpreter) handlers(names []string) {
	a.begin("handlers", "(table []uintptr)", "lists the addresses of handlers, for each block.")
	table := a.Load(a.Param("table").Base(), a.GP64())
	address := a.GP64()
	for i, name := range names {
		a.LEAQ(operand.NewDataAddr(operand.Symbol{Name: "·" + name}, 0), address)
		a.MOVQ(address, operand.Mem{Base: table, Disp: 8 * i})
	}
	a.RET()
}

func (a interpreter) handler(h catalog.Handler) string {
	name := fmt.Sprintf("%s%s", h.Name, h.Form)
	if h.Stores {
		name += "Stored"
	}
	name += fmt.Sprint(a.vectors)
	a.begin(name, "()", fmt.Sprintf("is a handler of blocks of %d vectors.", a.vectors))
	a.Attributes(attr.NOSPLIT | attr.NOFRAME)
	if h.Name == catalog.End {
		a.RET()
		return name + a.name
	}
	var at []operand.Mem
	for k := range h.Operands() {
		if h.Name != catalog.Product && h.Form != catalog.Immediate {
			at = append(at, a.address(k, operands[k]))
		}
	}
	switch h.Name {
	case catalog.Product:
		a.product()
	case cell.Const.String():
		for v := range a.vectors {
			a.VBROADCASTSS(operand.Mem{Base: codeReg, Disp: 8}, a.phys(v))
		}
	case catalog.LoadLast, catalog.StoreLast:
		a.last(h, at)
	default:
		for v := range a.vectors {
			var in []operand.Mem
			for _, m := range at {
				in = append(in, m.Offset(4*a.width*v))
			}
			a.vector(h, a.phys(v), in)
			if h.Stores {
				a.VMOVUPS(a.phys(v), in[len(in)-1])
			}
		}
	}
	a.next(h)
	return name + a.name
}

// address loads the address of the k-th operand into r.
func (a interpreter) address(k int, r reg.GPPhysical) operand.Mem {
	a.MOVQ(operand.Mem{Base: codeReg, Disp: 8 * (1 + k)}, r)
	a.MOVQ(operand.Mem{Base: tableReg, Index: r, Scale: 8}, r)
	return operand.Mem{Base: r, Index: unitReg, Scale: 1}
}

// product emits the product of a state and packed weights, in several sets of sums so that
// multiply-adds overlap.
func (a interpreter) product() {
	state, weights, k, strip, strips := operands[0], operands[1], operands[2], operands[3], operands[4]
	a.address(0, state)
	a.address(1, weights)
	a.MOVQ(unitReg, k) // of the strip's first unit
	a.ANDQ(operand.I32(-stripBytes), k)
	a.IMULQ(depthReg, k)
	a.ADDQ(k, weights)
	if !a.wide() { // half a strip
		a.MOVQ(unitReg, k)
		a.ANDQ(operand.Imm(stripBytes/2), k)
		a.ADDQ(k, weights)
	}
	a.MOVQ(depthReg, strip)
	a.SHLQ(operand.Imm(6), strip)
	a.LEAQ(operand.Mem{Base: strip, Index: strip, Scale: 2}, strips)
	row := func(v, k int) operand.Mem {
		at := 4 * a.width * v
		m := operand.Mem{Base: weights, Disp: at%stripBytes + stripBytes*k}
		switch at / stripBytes {
		case 1, 2:
			m.Index, m.Scale = strip, uint8(at/stripBytes)
		case 3:
			m.Index, m.Scale = strips, 1
		}
		return m
	}
	sums := make([][]reg.VecVirtual, map[int]int{4: 2, 2: 4, 1: 4}[a.vectors])
	for set := range sums {
		for range a.vectors {
			v := a.vec()
			if a.wide() {
				a.VPSUBD(v, v, v) // avo knows that it reads nothing, unlike VPXORD
			} else {
				a.zero(v)
			}
			sums[set] = append(sums[set], v)
		}
	}
	terms := func(n int) {
		for set := range n {
			x := a.vec()
			a.VBROADCASTSS(operand.Mem{Base: state, Disp: 4 * set}, x)
			for v, sum := range sums[set] {
				a.VFMADD231PS(row(v, set), x, sum)
			}
		}
		a.ADDQ(operand.Imm(uint64(4*n)), state)
		a.ADDQ(operand.U32(uint32(stripBytes*n)), weights)
	}
	n := operand.Imm(uint64(len(sums)))
	a.MOVQ(depthReg, k)
	a.SUBQ(n, k)
	a.JLT(operand.LabelRef("few"))
	a.Label("terms")
	terms(len(sums))
	a.SUBQ(n, k)
	a.JGE(operand.LabelRef("terms"))
	a.Label("few")
	a.ADDQ(n, k)
	a.JZ(operand.LabelRef("sum"))
	a.Label("term")
	terms(1)
	a.DECQ(k)
	a.JNZ(operand.LabelRef("term"))
	a.Label("sum")
	for n := len(sums) / 2; n > 0; n /= 2 {
		for set := range n {
			for v := range a.vectors {
				a.VADDPS(sums[set+n][v], sums[set][v], sums[set][v])
			}
		}
	}
	to := a.address(2, operands[2])
	for v, sum := range sums[0] {
		a.VMOVUPS(sum, to.Offset(4*a.width*v))
		a.VMOVUPS(sum, a.phys(v))
	}
}

// idle reports whether i moves a register to itself.
func idle(i *ir.Instruction) bool {
	return i.Opcode == "VMOVUPS" && len(i.Operands) == 2 && i.Operands[0] == i.Operands[1]
}

// next jumps to the next handler.
func (a interpreter) next(h catalog.Handler) {
	a.ADDQ(operand.Imm(uint64(8*(1+h.Operands()))), codeReg)
	to := operand.Mem{Base: codeReg}
	in := []operand.Op{to, codeReg, tableReg, unitReg, lastReg, depthReg}
	for v := range a.vectors {
		in = append(in, a.phys(v))
	}
	a.Instruction(&ir.Instruction{Opcode: "JMP", Operands: []operand.Op{to}, Inputs: in, IsTerminal: true})
}

// vector emits h for one vector of the accumulator.
func (a interpreter) vector(h catalog.Handler, acc reg.Physical, in []operand.Mem) {
	var out operand.Op
	switch h.Name {
	case catalog.Load:
		a.VMOVUPS(in[0], acc)
		return
	case catalog.Store:
		a.VMOVUPS(acc, in[0])
		return
	case catalog.SumOfFour, catalog.TwoTerms:
		f := a.VADDPS
		if h.Name == catalog.TwoTerms {
			f = a.VMULPS
		}
		x, y := a.do(f, in[1], a.load(in[0])), a.do(f, in[3], a.load(in[2]))
		a.VADDPS(y, x, acc)
		return
	}
	switch h.Form {
	case catalog.NoOperand:
		out = a.apply(h.Op, nil, nil)
	case catalog.FromMem:
		out = a.apply(h.Op, a.load(in[0]), nil)
	case catalog.Acc:
		out = a.apply(h.Op, a.load(acc), nil)
	case catalog.AccMem:
		out = a.apply(h.Op, a.load(acc), a.second(h.Op, in[0]))
	case catalog.MemAcc:
		out = a.apply(h.Op, a.load(in[0]), a.load(acc))
	case catalog.MemMem:
		out = a.apply(h.Op, a.load(in[0]), a.second(h.Op, in[1]))
	}
	a.VMOVUPS(out, acc)
}

// second returns the second operand of op, in memory if an instruction can read it there.
func (a interpreter) second(op cell.Op, m operand.Mem) operand.Op {
	switch op {
	case cell.Add, cell.Sub, cell.Mul, cell.Div:
		return m
	}
	return a.load(m)
}

// last copies the last units, fewer than a vector.
func (a interpreter) last(h catalog.Handler, at []operand.Mem) {
	v := a.vec()
	if a.wide() {
		k := a.K()
		a.KMOVW(lastReg.As32(), k)
		if h.Name == catalog.LoadLast {
			a.VMOVUPS_Z(at[0], k, v)
			a.VMOVUPS(v, at[1])
			return
		}
		a.VMOVUPS(at[1], v)
		a.VMOVUPS(v, k, at[0])
		return
	}
	mask := a.load(operand.Mem{Base: lastReg})
	if h.Name == catalog.LoadLast {
		a.VMASKMOVPS(at[0], mask, v)
		a.VMOVUPS(v, at[1])
		return
	}
	a.VMOVUPS(at[1], v)
	a.VMASKMOVPS(v, mask, at[0])
}

// The memory of an interpretation lies on the stack: the table of operands, copies of the last units
// of each vector, and temporaries. Package fused knows these sizes, too.
const (
	tableBytes = 8 * 256
	lastBytes  = 64 * 96
	tempBytes  = 4 * 4096
)

// interpret writes the function that runs a program over rows.
func (a interpreter) interpret() {
	a.begin("interpret", "(c *Code, v *[]float32, size, n, rows, steps int)",
		"runs c over n units of each row of each step. v points to the first vector's", "data, and vectors lie size bytes apart. They are slices, for one row, or of type Vector.")
	a.Attributes(0)
	memory := a.AllocLocal(tableBytes + lastBytes + tempBytes + 64)
	a.LEAQ(memory, tableReg)
	a.ADDQ(operand.Imm(63), tableReg)
	a.ANDQ(operand.I32(-64), tableReg)
	c := a.Load(a.Param("c"), a.GP64())
	field := func(name string) reg.GPVirtual {
		return a.Load(a.Param("c").Dereference(c).Field(name), a.GP64()).(reg.GPVirtual)
	}
	tile := field("Tile")
	a.addresses(field("Vectors"), field("Temps"), tile)
	a.Load(a.Param("n"), depthReg)
	rows, steps, left, m := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.Load(a.Param("steps"), steps)
	a.Label("step")
	a.Load(a.Param("rows"), rows)
	a.Label("row")
	a.Load(a.Param("n"), left)
	a.Label("tile")
	a.MOVQ(left, m)
	a.CMPQ(m, tile)
	a.CMOVQGT(tile, m)
	a.SUBQ(m, left)
	a.XORQ(unitReg, unitReg)
	for i, name := range []string{"Four", "Two", "One"} {
		units := blockVectors[i] * a.width
		a.SUBQ(operand.Imm(uint64(units)), m)
		a.JLT(operand.LabelRef("no" + name))
		a.Label(name)
		a.Load(a.Param("c"), c)
		a.Load(a.Param("c").Dereference(c).Field(name).Base(), codeReg)
		a.call()
		a.ADDQ(operand.U32(uint32(4*units)), unitReg)
		a.SUBQ(operand.Imm(uint64(units)), m)
		a.JGE(operand.LabelRef(name))
		a.Label("no" + name)
		a.ADDQ(operand.Imm(uint64(units)), m)
	}
	a.JZ(operand.LabelRef("tiled"))
	a.Load(a.Param("c"), c)
	a.Load(a.Param("c").Dereference(c).Field("Last").Base(), codeReg)
	a.call()
	a.Label("tiled")
	a.TESTQ(left, left)
	a.JZ(operand.LabelRef("next"))
	a.forward("Tile", tile)
	a.JMP(operand.LabelRef("tile"))
	a.Label("next")
	for i, field := range []string{"Row", "Step"} {
		count, to := []reg.GPVirtual{rows, steps}[i], []string{"row", "step"}[i]
		a.DECQ(count)
		a.JZ(operand.LabelRef("no" + field))
		a.forward(field, tile)
		a.JMP(operand.LabelRef(to))
		a.Label("no" + field)
	}
	a.end()
}

// call runs the handlers of a block.
func (a interpreter) call() {
	to := operand.Mem{Base: codeReg}
	out := []operand.Op{codeReg}
	for _, r := range operands {
		out = append(out, r)
	}
	a.Instruction(&ir.Instruction{Opcode: "CALL", Operands: []operand.Op{to}, Inputs: []operand.Op{to, codeReg, tableReg, unitReg, lastReg, depthReg}, Outputs: out})
}

// addresses fills the table: with the addresses of vectors, of temporaries, and of the copies of the
// last units, less the offset of the last units.
func (a interpreter) addresses(vectors, temps, tile reg.GPVirtual) {
	data, _ := compiler{a.elements}.vectorField("Data")
	from, _ := compiler{a.elements}.vectorField("From")
	v, size := a.Load(a.Param("v"), a.GP64()).(reg.GPVirtual), a.Load(a.Param("size"), a.GP64()).(reg.GPVirtual)
	at, to, k := a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(tableReg, to)
	a.MOVQ(vectors, k)
	a.Label("vectors")
	a.MOVQ(operand.Mem{Base: v}, at)
	a.CMPQ(size, operand.Imm(24)) // a slice
	a.JEQ(operand.LabelRef("slice"))
	first := a.GP64()
	a.MOVQ(operand.Mem{Base: v, Disp: from - data}, first)
	a.LEAQ(operand.Mem{Base: at, Index: first, Scale: 4}, at)
	a.Label("slice")
	put := func() {
		a.MOVQ(at, operand.Mem{Base: to})
		a.ADDQ(operand.Imm(8), to)
	}
	put()
	a.ADDQ(size, v)
	a.DECQ(k)
	a.JNZ(operand.LabelRef("vectors"))

	a.LEAQ(operand.Mem{Base: tableReg, Disp: tableBytes + lastBytes}, at)
	a.MOVQ(temps, k)
	a.TESTQ(k, k)
	a.JZ(operand.LabelRef("notemps"))
	a.Label("temps")
	put()
	a.LEAQ(operand.Mem{Base: at, Index: tile, Scale: 4}, at)
	a.DECQ(k)
	a.JNZ(operand.LabelRef("temps"))
	a.Label("notemps")

	n, last := a.Load(a.Param("n"), a.GP64()).(reg.GPVirtual), a.GP64()
	a.Label("lasttile")
	a.MOVQ(n, last)
	a.SUBQ(tile, n)
	a.JG(operand.LabelRef("lasttile"))
	a.MOVQ(last, n)
	a.ANDQ(operand.Imm(uint64(a.width-1)), n)
	a.SUBQ(n, last)
	a.SHLQ(operand.Imm(2), last)
	a.LEAQ(operand.Mem{Base: tableReg, Disp: tableBytes}, at)
	a.SUBQ(last, at)
	a.MOVQ(vectors, k)
	a.Label("copies")
	put()
	a.ADDQ(operand.Imm(64), at)
	a.DECQ(k)
	a.JNZ(operand.LabelRef("copies"))
	if a.wide() {
		a.MOVL(operand.U32(0xffff), lastReg.As32())
		a.BZHIL(n.As32(), lastReg.As32(), lastReg.As32())
		return
	}
	a.LEAQ(a.tailMaskAt(n), lastReg)
}

// forward moves the addresses of vectors on: by a tile, or from the last tile of a row to the next
// row, or to the next step.
func (a interpreter) forward(by string, tile reg.GPVirtual) {
	c, count, to := a.GP64(), a.GP64(), a.GP64()
	a.Load(a.Param("c"), c)
	a.Load(a.Param("c").Dereference(c).Field("Vectors"), count)
	a.MOVQ(tableReg, to)
	if by == "Tile" {
		bytes := a.GP64()
		a.MOVQ(tile, bytes)
		a.SHLQ(operand.Imm(2), bytes)
		a.Label("move" + by)
		a.ADDQ(bytes, operand.Mem{Base: to})
	} else {
		data, _ := compiler{a.elements}.vectorField("Data")
		stride, _ := compiler{a.elements}.vectorField(by)
		v, size, more, done := a.GP64(), a.GP64(), a.GP64(), a.GP64()
		a.Load(a.Param("v"), v)
		a.Load(a.Param("size"), size)
		a.Load(a.Param("n"), more)
		a.XORQ(done, done) // floats of the row's tiles before the last
		a.Label("tiles" + by)
		a.SUBQ(tile, more)
		a.JLE(operand.LabelRef("counted" + by))
		a.SUBQ(tile, done)
		a.JMP(operand.LabelRef("tiles" + by))
		a.Label("counted" + by)
		a.Label("move" + by)
		a.MOVQ(operand.Mem{Base: v, Disp: stride - data}, more)
		a.ADDQ(done, more)
		a.SHLQ(operand.Imm(2), more)
		a.ADDQ(more, operand.Mem{Base: to})
		a.ADDQ(size, v)
	}
	a.ADDQ(operand.Imm(8), to)
	a.DECQ(count)
	a.JNZ(operand.LabelRef("move" + by))
}
