package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const stripBytes = 64

// formats are those of package simd, as parts of names.
var formats = []string{"", "F16", "BF16"}

func tileName(l level, rows, strips int, format string) string {
	return fmt.Sprintf("tile%dx%d%s%s", rows, strips, format, l.name)
}

func tiles(a *asm) { a.allTiles("") }

func tilesOfHalves(a *asm) {
	for _, f := range formats[1:] {
		a.allTiles(f)
	}
}

func (a *asm) allTiles(format string) {
	for m, most := range a.tiles {
		for s := 1; s <= most; s++ {
			if m == 1 && format == "F16" && a.wide() {
				a.rowOfHalves(s)
			} else {
				a.tile(m, s, format)
			}
		}
	}
}

// widen loads a vector of elements of a format.
func (a *asm) widen(from operand.Mem, to operand.Op, format string) {
	switch format {
	case "":
		a.VMOVUPS(from, to)
	case "F16":
		a.VCVTPH2PS(from, to)
	case "BF16":
		a.VPMOVZXWD(from, to)
		a.VPSLLD(operand.U8(16), to, to)
	}
}

// lower and upper load the two rows of BF16 that words of 32 bits hold (see simd.BF16). mask has the upper halves set, where
// the level has a register to spare for that.
func (a *asm) lower(from operand.Mem, to operand.Op) {
	if a.wide() {
		a.VPSLLD(operand.U8(16), from, to)
		return
	}
	a.VMOVUPS(from, to)
	a.VPSLLD(operand.U8(16), to, to)
}

func (a *asm) upper(from operand.Mem, mask, to operand.Op) {
	if a.wide() {
		a.VPANDD(from, mask, to)
		return
	}
	a.VMOVUPS(from, to)
	a.VPSRLD(operand.U8(16), to, to)
	a.VPSLLD(operand.U8(16), to, to)
}

// upperMask has the upper half of every word of 32 bits set.
func (a *asm) upperMask(to operand.Op) {
	if a.wide() {
		a.VPTERNLOGD(operand.U8(0xff), to, to, to)
		a.VPSLLD(operand.U8(16), to, to)
	}
}

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

// bytes loads a field that counts floats and turns it into bytes.
func (a *asm) bytes(t reg.Register, name string) reg.GPVirtual {
	r := a.field(t, name)
	a.SHLQ(operand.U8(2), r)
	return r
}

// rows addresses equally spaced rows with few registers: one base for every four rows, the stride and three times the stride.
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

// tile writes the kernel of one shape. All sums stay in registers. Tiles with too few sums to
// hide the latency of FMA take several k at once, each with its own set of sums.
func (a *asm) tile(m, strips int, format string) {
	const chains = 8 // FMA latency 4 × 2 ports
	per := stripBytes / 4 / a.width
	n := strips * per // vectors of a row
	sets := 1
	for sets < 4 && m*n*sets < chains {
		sets *= 2
	}
	unroll, size, of := 4, 4, ""
	if format != "" {
		size, of = 2, " of "+format
	}

	a.begin(fmt.Sprintf("tile%dx%d%s", m, strips, format), "(t *Tile)", fmt.Sprintf("is the Tile of %d rows and %d strips%s.", m, strips, of))
	t := a.Load(a.Param("t"), a.GP64())
	tall := m > (len(a.tiles)-1)/2 // lower tiles are bound by loads
	if tall {
		a.fetchSums(t, m, strips)
	}
	A := a.rows(a.sliceField(t, "A"), a.bytes(t, "ARow"), m)
	acol := a.bytes(t, "ACol")
	B := a.rows(a.sliceField(t, "B"), a.bytes(t, "BStrip"), strips)
	bstep := a.bytes(t, "BStep")
	paired := format == "BF16"
	if paired {
		a.ADDQ(bstep, bstep) // of a pair of rows
	}
	k := a.field(t, "K")
	var ahead reg.GPVirtual // there is no later tile of low ones to fetch for
	if tall {
		ahead = a.sliceField(t, "Ahead")
	}

	acc := func(set, row, v int) reg.Physical { return a.phys((set*m+row)*n + v) }
	free := sets * m * n
	next := func(i int) reg.Physical {
		if free+i >= a.regs {
			panic(fmt.Sprintf("%s: out of registers", tileName(a.level, m, strips, format)))
		}
		return a.phys(free + i)
	}
	for i := range free {
		a.zero(a.phys(i))
	}
	mask := operand.Op(nil)
	if paired && a.wide() {
		mask = next(min(m, n) + 1)
		a.upperMask(mask)
	}
	const (
		row  = iota // the next row of B
		low         // the first of the next pair
		high        // the second, which ends the pair
	)
	load := func(v, part int, to operand.Op) {
		at := func(size int) operand.Mem { return B.at(v/per, v%per*a.width*size) }
		switch part {
		case low:
			a.lower(at(4), to)
		case high:
			a.upper(at(4), mask, to)
		default:
			a.widen(at(size), to, format)
		}
	}
	step := func(set, part int) {
		if m <= n {
			for r := range m {
				a.VBROADCASTSS(A.at(r, 0), next(r))
			}
			for v := range n {
				if m == 1 && format == "" {
					a.VFMADD231PS(B.at(v/per, v%per*a.width*size), next(0), acc(set, 0, v))
					continue
				}
				load(v, part, next(m))
				for r := range m {
					a.VFMADD231PS(next(m), next(r), acc(set, r, v))
				}
			}
		} else {
			for v := range n {
				load(v, part, next(v))
			}
			for r := range m {
				a.VBROADCASTSS(A.at(r, 0), next(n))
				for v := range n {
					a.VFMADD231PS(next(v), next(n), acc(set, r, v))
				}
			}
		}
		a.advance(A, acol)
		if part == low {
			return
		}
		if ahead != nil {
			a.PREFETCHT1(operand.Mem{Base: ahead})
			a.ADDQ(bstep, ahead)
		}
		a.advance(B, bstep)
	}
	parts := []int{row, row}
	if paired {
		parts = []int{low, high}
	}
	a.SUBQ(operand.Imm(uint64(unroll)), k)
	a.JLT(operand.LabelRef("rest"))
	a.Label("loop")
	for u := range unroll {
		step(u%sets, parts[u%2])
	}
	a.SUBQ(operand.Imm(uint64(unroll)), k)
	a.JGE(operand.LabelRef("loop"))
	a.Label("rest")
	a.ADDQ(operand.Imm(uint64(unroll)), k)
	if paired {
		a.CMPQ(k, operand.Imm(2))
		a.JLT(operand.LabelRef("odd"))
		step(0, low)
		step(1%sets, high)
		a.SUBQ(operand.Imm(2), k)
		a.Label("odd")
		a.TESTQ(k, k)
	}
	a.JZ(operand.LabelRef("sums"))
	a.Label("one")
	step(0, row)
	a.DECQ(k)
	a.JNZ(operand.LabelRef("one"))

	a.Label("sums")
	for s := sets / 2; s >= 1; s /= 2 {
		for i := range s {
			for j := range m * n {
				a.VADDPS(a.phys((i+s)*m*n+j), a.phys(i*m*n+j), a.phys(i*m*n+j))
			}
		}
	}
	a.storeTile(t, m, strips, per)
	a.end()
}

// rowOfHalves writes the kernel of one row and F16, for which widening decides: VCVTPH2PS takes two cycles for a vector on a
// Zen 4. A shift or a product and a mask turn words of 32 bits, neighbours of a row, into floats, the first or the second of each,
// whose exponents are too low by 112. Such a vector has every other column of two rows of B, so there are sums for the even and
// for the odd columns, with those of even and of odd k in their halves.
func (a *asm) rowOfHalves(strips int) {
	const (
		bitsOfHalf  = 0x8fffe000 // sign, exponent, mantissa
		firstOfPair = 1 << 13    // what multiplies the first of a pair so that it ends there, its sign above
		upperLanes  = 0xff00
		// What makes up for the exponents would be out of range in one go.
		upRow, upSums = 0x1p80, 0x1p32
	)
	sets := 1
	for sets < 4 && 2*strips*sets < 8 {
		sets *= 2
	}
	a.begin(fmt.Sprintf("tile1x%dF16", strips), "(t *Tile)", fmt.Sprintf("is the Tile of 1 rows and %d strips of F16.", strips))
	t := a.Load(a.Param("t"), a.GP64())
	A := a.sliceField(t, "A")
	acol := a.bytes(t, "ACol")
	B := a.rows(a.sliceField(t, "B"), a.bytes(t, "BStrip"), strips)
	bstep := a.bytes(t, "BStep")
	k := a.field(t, "K")

	n := 2 * strips * sets
	sum := func(set, strip, odd int) reg.Physical { return a.phys((set*strips+strip)*2 + odd) }
	x, w, mask, first, up := a.phys(n), a.phys(n+1), a.phys(n+2), a.phys(n+3), a.phys(n+4)
	for i := range n {
		a.zero(a.phys(i))
	}
	a.VBROADCASTSS(a.memory(bitsOfHalf), mask)
	a.VBROADCASTSS(a.memory(firstOfPair), first)
	a.VBROADCASTSS(a.memory(math.Float32bits(upRow)), up)
	lanes, upper := a.GP32(), a.K()
	a.MOVL(operand.U32(upperLanes), lanes)
	a.KMOVW(lanes, upper)

	add := func(set, strip int, from operand.Op) {
		a.VPMADDWD(from, first, w)
		a.VPANDD(mask, w, w)
		a.VFMADD231PS(w, x, sum(set, strip, 0))
		a.VPSRAD(operand.U8(3), from, w)
		a.VPANDD(mask, w, w)
		a.VFMADD231PS(w, x, sum(set, strip, 1))
	}
	pair := func(set int) {
		a.VBROADCASTSS(operand.Mem{Base: A}, x)
		a.VBROADCASTSS(operand.Mem{Base: A, Index: acol, Scale: 1}, upper, x)
		a.VMULPS(up, x, x)
		for s := range strips {
			add(set, s, B.at(s, 0))
		}
		a.LEAQ(operand.Mem{Base: A, Index: acol, Scale: 2}, A)
		for range 2 {
			a.advance(B, bstep)
		}
	}
	unroll := max(2, sets)
	a.SUBQ(operand.Imm(uint64(2*unroll)), k)
	a.JLT(operand.LabelRef("rest"))
	a.Label("loop")
	for u := range unroll {
		pair(u % sets)
	}
	a.SUBQ(operand.Imm(uint64(2*unroll)), k)
	a.JGE(operand.LabelRef("loop"))
	a.Label("rest")
	a.ADDQ(operand.Imm(uint64(2*unroll-2)), k)
	a.JLT(operand.LabelRef("last"))
	a.Label("pair")
	pair(0)
	a.SUBQ(operand.Imm(2), k)
	a.JGE(operand.LabelRef("pair"))
	a.Label("last")
	a.CMPQ(k, operand.I8(-1)) // a row is left
	a.JNE(operand.LabelRef("sums"))
	a.KNOTW(upper, upper)
	a.VBROADCASTSS_Z(operand.Mem{Base: A}, upper, x)
	a.VMULPS(up, x, x)
	row := a.phys(n + 5)
	for s := range strips {
		a.VMOVUPS(B.at(s, 0), a.half(n+5))
		add(0, s, row)
	}

	a.Label("sums")
	for s := sets / 2; s >= 1; s /= 2 {
		for i := range 2 * strips * s {
			a.VADDPS(a.phys(2*strips*s+i), a.phys(i), a.phys(i))
		}
	}
	order := row
	a.VMOVUPS(a.interleaved(), order)
	a.VBROADCASTSS(a.memory(math.Float32bits(upSums)), up)
	for s := range strips {
		for odd := range 2 {
			i := 2*s + odd
			a.VEXTRACTF64X4(operand.U8(1), a.phys(i), a.half(n))
			a.VADDPS(a.half(n), a.half(i), a.half(i))
		}
		a.VINSERTF64X4(operand.U8(1), a.half(2*s+1), a.phys(2*s), w)
		a.VPERMPS(w, order, w)
		a.VMULPS(up, w, a.phys(s))
	}
	a.storeTile(t, 1, strips, 1)
	a.end()
}

// fetchSums fetches what the sums will be added to, which other blocks have evicted since it was written.
func (a *asm) fetchSums(t reg.Register, m, strips int) {
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

// storeTile stores or adds the sums, the first m·strips·per registers, to C.
func (a *asm) storeTile(t reg.Register, m, strips, per int) {
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
