package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const stripBytes = 64

func tileName(l level, rows, strips int, format string) string {
	return fmt.Sprintf("tile%dx%d%s%s", rows, strips, format, l.name)
}

// A tiler writes the micro-kernels of products.
type tiler struct{ halves }

func tiles(a *asm) { tiler{halves{a}}.allTiles("") }

func (a tiler) allTiles(format string) {
	for m, most := range a.tiles {
		for s := 1; s <= most; s++ {
			a.tile(m, s, format)
		}
	}
}

// A shape is one tile's kernel. All sums stay in registers. Tiles with too few sums to hide the latency of
// FMA take several k at once, each with its own set of sums.
type shape struct {
	tiler
	m, n, per   int // rows; vectors of a row and of a strip
	sets        int // of sums
	size        int // bytes of an element
	format      string
	A, B        rows
	acol, bstep reg.GPVirtual
	ahead       reg.GPVirtual // address to prefetch; nil: none
	aheadStep   reg.GPVirtual
	mask        operand.Op // mask of upper halves
}

func (a tiler) tile(m, strips int, format string) {
	const chains = 8 // FMA latency 4 × 2 ports
	per := stripBytes / 4 / a.width
	t := &shape{tiler: a, m: m, n: strips * per, per: per, sets: 1, size: 4, format: format}
	for t.sets < 4 && m*t.n*t.sets < chains {
		t.sets *= 2
	}
	of := ""
	switch format {
	case "":
	case pairs:
		of = " of pairs of BF16"
	default:
		t.size, of = 2, " of "+format
	}
	a.begin(fmt.Sprintf("tile%dx%d%s", m, strips, format), "(t *Tile)", fmt.Sprintf("is the Tile of %d rows and %d strips%s.", m, strips, of))
	t.write(strips)
}

func (a *shape) write(strips int) {
	t := a.Load(a.Param("t"), a.GP64())
	tall := a.m > (len(a.tiles)-1)/2 // lower tiles are bound by loads
	if tall {
		a.fetchSums(t, a.m, strips)
	}
	a.A = a.rows(a.sliceField(t, "A"), a.bytes(t, "ARow"), a.m)
	a.acol = a.bytes(t, "ACol")
	a.B = a.rows(a.sliceField(t, "B"), a.bytes(t, "BStrip"), strips)
	a.bstep = a.bytes(t, "BStep")
	if a.paired() {
		a.ADDQ(a.bstep, a.bstep) // from one pair of rows to the next
	}
	k := a.field(t, "K")
	if tall { // with low tiles there is no later tile to fetch for
		a.ahead, a.aheadStep = a.sliceField(t, "Ahead"), a.bytes(t, "AheadStep")
		if a.paired() {
			a.ADDQ(a.aheadStep, a.aheadStep)
		}
	}
	for i := range a.sets * a.m * a.n {
		a.zero(a.phys(i))
	}
	if a.paired() && a.wide() {
		a.mask = a.next(min(a.m, a.n) + 1)
		a.upperMask(a.mask)
	}
	a.terms(k)
	a.Label("sums")
	for s := a.sets / 2; s >= 1; s /= 2 {
		for i := range s {
			for j := range a.m * a.n {
				a.VADDPS(a.phys((i+s)*a.m*a.n+j), a.phys(i*a.m*a.n+j), a.phys(i*a.m*a.n+j))
			}
		}
	}
	a.storeTile(t, a.m, strips, a.per)
	a.end()
}

// terms adds k terms to the sums.
func (a *shape) terms(k reg.GPVirtual) {
	const unroll = 4
	parts := []part16{row, row}
	if a.paired() {
		parts = []part16{low, high}
	}
	a.SUBQ(operand.Imm(unroll), k)
	a.JLT(operand.LabelRef("rest"))
	a.Label("loop")
	for u := range unroll {
		a.step(u%a.sets, parts[u%2])
	}
	a.SUBQ(operand.Imm(unroll), k)
	a.JGE(operand.LabelRef("loop"))
	a.Label("rest")
	a.ADDQ(operand.Imm(unroll), k)
	if a.paired() {
		a.CMPQ(k, operand.Imm(2))
		a.JLT(operand.LabelRef("odd"))
		a.step(0, low)
		a.step(1%a.sets, high)
		a.SUBQ(operand.Imm(2), k)
		a.Label("odd")
		a.TESTQ(k, k)
	}
	a.JZ(operand.LabelRef("sums"))
	a.Label("one")
	a.step(0, row)
	a.DECQ(k)
	a.JNZ(operand.LabelRef("one"))
}

// paired reports whether words of B hold elements of two rows (see simd.BF16).
func (a *shape) paired() bool { return a.format == "BF16" }

// acc returns the register of a sum.
func (a *shape) acc(set, row, v int) reg.Physical { return a.phys((set*a.m+row)*a.n + v) }

// next returns the i-th register after the sums.
func (a *shape) next(i int) reg.Physical {
	free := a.sets * a.m * a.n
	if free+i >= a.regs {
		panic(fmt.Sprintf("%s: out of registers", tileName(a.level, a.m, a.n/a.per, a.format)))
	}
	return a.phys(free + i)
}

// A part16 says which row of B a step takes.
type part16 int

const (
	row  part16 = iota // the next one
	low                // the first of the next pair
	high               // the second of the pair
)

// loadB loads vector v of a row of B.
func (a *shape) loadB(v int, part part16, to operand.Op) {
	at := func(size int) operand.Mem { return a.B.at(v/a.per, v%a.per*a.width*size) }
	switch part {
	case low:
		a.lower(at(4), to)
	case high:
		a.upper(at(4), a.mask, to)
	default:
		if a.format == pairs {
			a.VMOVUPS(at(4), to)
			return
		}
		a.widen(at(a.size), to, a.format)
	}
}

// step adds the next term to each sum of a set.
func (a *shape) step(set int, part part16) {
	m, n := a.m, a.n
	if m <= n {
		for r := range m {
			a.VBROADCASTSS(a.A.at(r, 0), a.next(r))
		}
		for v := range n {
			if m == 1 && a.format == "" {
				a.VFMADD231PS(a.B.at(v/a.per, v%a.per*a.width*a.size), a.next(0), a.acc(set, 0, v))
				continue
			}
			a.loadB(v, part, a.next(m))
			for r := range m {
				a.multiplyAdd(a.next(m), a.next(r), a.acc(set, r, v))
			}
		}
	} else {
		for v := range n {
			a.loadB(v, part, a.next(v))
		}
		for r := range m {
			a.VBROADCASTSS(a.A.at(r, 0), a.next(n))
			for v := range n {
				a.multiplyAdd(a.next(v), a.next(n), a.acc(set, r, v))
			}
		}
	}
	a.advance(a.A, a.acol)
	if part == low {
		return
	}
	if a.ahead != nil {
		a.PREFETCHT1(operand.Mem{Base: a.ahead})
		a.ADDQ(a.aheadStep, a.ahead)
	}
	a.advance(a.B, a.bstep)
}

// multiplyAdd adds the product of x and y to a sum.
func (a *shape) multiplyAdd(x, y, sum reg.Physical) {
	if a.format == pairs {
		pairer{a.asm}.dot(x, y, sum)
	} else {
		a.VFMADD231PS(x, y, sum)
	}
}

// fetchSums prefetches the part of C that the sums will be added to. Other blocks have evicted it
// since it was written.
func (a tiler) fetchSums(t reg.Register, m, strips int) {
	add := a.GP8()
	a.Load(a.Param("t").Dereference(t).Field("Accumulate"), add)
	a.TESTB(add, add)
	a.JZ(operand.LabelRef("fetched"))
	C := a.rows(a.sliceField(t, "C"), a.bytes(t, "CRow"), m)
	for r := range m {
		for s := range strips {
			a.PREFETCHT0(C.at(r, s*stripBytes))
		}
	}
	a.Label("fetched")
}

// storeTile stores the sums, in the first m·strips·per registers, in C or adds them to it.
func (a tiler) storeTile(t reg.Register, m, strips, per int) {
	n := strips * per
	c := a.sliceField(t, "C")
	crow := a.bytes(t, "CRow")
	last := a.field(t, "Last")
	add := a.GP8()
	a.Load(a.Param("t").Dereference(t).Field("Accumulate"), add)
	C := a.rows(c, crow, m)

	if a.wide() {
		k := a.tailMask(last)
		a.TESTB(add, add)
		a.JZ(operand.LabelRef("store"))
		for r := range m {
			for v := range n - 1 {
				a.VADDPS(C.at(r, v*stripBytes), a.phys(r*n+v), a.phys(r*n+v))
			}
			a.VADDPS_Z(C.at(r, (n-1)*stripBytes), a.phys(r*n+n-1), k, a.phys(r*n+n-1))
		}
		a.Label("store")
		for r := range m {
			for v := range n - 1 {
				a.VMOVUPS(a.phys(r*n+v), C.at(r, v*stripBytes))
			}
			a.VMOVUPS(a.phys(r*n+n-1), k, C.at(r, (n-1)*stripBytes))
		}
		return
	}

	// The sums take at most twelve registers.
	low, high, tmp := a.phys(13), a.phys(14), a.phys(15)
	at := a.tailMaskAt(last)
	a.VMOVUPS(at, low)
	a.VMOVUPS(at.Offset(32), high)
	a.TESTB(add, add)
	a.JZ(operand.LabelRef("store"))
	for r := range m {
		for v := range n - 2 {
			a.VADDPS(C.at(r, v*32), a.phys(r*n+v), a.phys(r*n+v))
		}
		for i, mask := range []operand.Op{low, high} {
			v := n - 2 + i
			a.VMASKMOVPS(C.at(r, v*32), mask, tmp)
			a.VADDPS(tmp, a.phys(r*n+v), a.phys(r*n+v))
		}
	}
	a.Label("store")
	for r := range m {
		for v := range n - 2 {
			a.VMOVUPS(a.phys(r*n+v), C.at(r, v*32))
		}
	}
	a.CMPQ(last, operand.Imm(stripBytes/4))
	a.JNE(operand.LabelRef("partial"))
	for r := range m {
		for v := n - 2; v < n; v++ {
			a.VMOVUPS(a.phys(r*n+v), C.at(r, v*32))
		}
	}
	a.JMP(operand.LabelRef("done"))
	a.Label("partial")
	for r := range m {
		for i, mask := range []operand.Op{low, high} {
			v := n - 2 + i
			a.VMASKMOVPS(a.phys(r*n+v), mask, C.at(r, v*32))
		}
	}
	a.Label("done")
}
