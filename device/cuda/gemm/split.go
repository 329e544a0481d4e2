package gemm

import (
	"math"
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Single-precision products on tensor cores. Each factor is scaled by a power of two, so that its
// largest value is about 2¹⁴. Then it is split into two fp16 halves: high is nearest to the value,
// and low to the remainder. Values below 2⁻¹⁸ of the largest lose bits, which do not matter next to
// products with the largest. Of the four products, low·low is left out; it is 2⁻²² of the result.
// The other three form one product of halves over three times the terms:
//
//	A·B ≈ [low A | high A | high A] · [high B | low B | high B]ᵀ,
//
// It sums small terms before large ones. The result is scaled back. Both factors are laid out along
// the sum. Columns of zeros align halves to 16 bytes.

// ProductKnobs returns the knobs of s if it has products.
func ProductKnobs(s *schedule.Schedule) []knob.Knob {
	for op := range s.Operations() {
		if _, ok := op.(schedule.Gemm); !ok {
			continue
		}
		if s.Precision == schedule.FP32 {
			return []knob.Knob{SplitKnob()}
		}
		if slices.Max(append(CellSums(s), 0)) > 0 {
			return []knob.Knob{SumsKnob()}
		}
		return nil
	}
	return nil
}

// SplitKnob is the knob of how fp32 products are split.
func SplitKnob() knob.Knob {
	return knob.Knob{Name: "split", Doc: "fp32 products other than skinny ones: as three fp16 products on tensor cores, by the library (1) or by a kernel that splits the left factor as it multiplies (3), or in single precision (2); 0: what is predicted to be the fastest", Values: []int{0, 1, 2, 3}}
}

// packedColumns returns the length of one half of a packed operand, high or low, of k terms.
func packedColumns(k int) int { return ints.RoundUp(k, 8) }

// AbsmaxParts is the number of parts of a factor whose largest values are found separately.
// AbsmaxBytes is the size of these values and of the multipliers around them, which lie after the packed operand.
const (
	AbsmaxParts  = 1024
	AbsmaxBytes  = addedScale + 8
	productScale = 4                     // where the multipliers of a product lie,
	addedScale   = 4 * (4 + AbsmaxParts) // and those of a product that is added to its result
)

// SplitBytes returns the bytes of a split factor of n rows and k terms, and the offset of its
// absmax cache.
func SplitBytes(n, k int) (all, absmax int64) {
	absmax = 6 * int64(n) * int64(packedColumns(k))
	return (absmax + AbsmaxBytes + launch.Alignment - 1) / launch.Alignment * launch.Alignment, absmax
}

// A Method is how a single-precision product is formed.
type Method int

const (
	Library      Method = iota // by the library, in single precision
	SplitLibrary               // by the library, of factors split and packed beforehand
	SplitKernel                // by our kernel that splits the left factor (split_fp16.go)
)

// String names the method.
func (m Method) String() string {
	return [...]string{"the library", "the library of split factors", "the split-fp16 kernel"}[m]
}

// feasible reports whether method f can form op; ahead: the right factor is split beforehand.
func (s SplitPlan) feasible(op schedule.Gemm, f Method, ahead bool) bool {
	return (s.asked == Library || s.asked == f) && (f != SplitKernel || s.hopper && !(ahead && op.TransA))
}

// profitable reports whether method f may be faster for op.
func profitable(op schedule.Gemm, f Method) bool {
	m, n, k := op.Sizes()
	return f == Library || m >= 256 && n >= map[Method]int{SplitLibrary: 64, SplitKernel: 32}[f] && k >= 32
}

// fastest returns the method that is predicted to be the fastest for ops, which share a right
// factor. It is feasible for all of them and may be faster for some. ahead: the right factor is
// split once, before all of them; else it is split with each.
func (s SplitPlan) fastest(ahead bool, ops ...schedule.Gemm) Method {
	best, least := Library, math.Inf(1)
	for f := range SplitKernel + 1 {
		t, pays := 0.0, s.asked == f
		for _, op := range ops {
			if pays = pays || profitable(op, f); !s.feasible(op, f, ahead) {
				t = math.Inf(1)
			}
			t += s.seconds(op, f, ahead)
		}
		if pays && t < least {
			best, least = f, t
		}
	}
	return best
}

// A SplitPlan says which products of a schedule are split. It also says which packed weights are
// stored in split form: those that only such products read.
type SplitPlan struct {
	Any    bool   // products may be split
	asked  Method // by the knob split; Library: predict the fastest
	hopper bool   // the GPU can run the split-fp16 kernel
	SMs    int
	added  map[schedule.Gemm]bool // products whose next operation adds a row to each of their rows
	Kept   map[int]Method         // how packed weights are stored, by matrix
}

// NewSplitPlan chooses the method of each product of s.
func NewSplitPlan(s *schedule.Schedule, k knob.Params, p driver.Properties) SplitPlan {
	out := SplitPlan{
		Any: s.Precision == schedule.FP32 && k["split"] != 2 && p.Capability >= 80, asked: map[int]Method{1: SplitLibrary, 3: SplitKernel}[k["split"]],
		hopper: p.Hopper && p.Shared >= max(Division{groups: 2}.shared(), Division{groups: 3}.shared()), SMs: p.SMs, added: map[schedule.Gemm]bool{}, Kept: map[int]Method{},
	}
	if !out.Any {
		return out
	}
	for i := range s.Nodes {
		if op, row := AddedRow(s, i); !row.Empty() {
			out.added[op] = true
		}
	}
	packs, reads := map[int]*schedule.Pack{}, map[int][]schedule.Gemm{}
	for op := range s.Operations() {
		if pack, ok := op.(schedule.Pack); ok && packs[pack.Dst.M.ID] == nil && pack.Dst == pack.Dst.M.All() {
			first := pack
			packs[pack.Dst.M.ID] = &first
		}
	}
	for op := range s.Operations() {
		if op, ok := op.(schedule.Gemm); ok && op.B == op.B.M.All() && !op.TransB {
			reads[op.B.M.ID] = append(reads[op.B.M.ID], op)
			continue
		}
		pack, _ := op.(schedule.Pack)
		for v := range schedule.Accesses(op) {
			if p := packs[v.M.ID]; p != nil && *p != pack {
				packs[v.M.ID] = nil
			}
		}
	}
	for id, pack := range packs {
		if pack != nil && len(reads[id]) > 0 {
			out.Kept[id] = out.fastest(true, reads[id]...)
		}
	}
	return out
}

// MethodOf returns the method of op.
func (s SplitPlan) MethodOf(op schedule.Gemm) Method {
	if !s.Any {
		return Library
	}
	if f := s.Kept[op.B.M.ID]; f != Library {
		return f
	}
	return s.fastest(false, op)
}

// IsSplit reports whether op is split.
func (s SplitPlan) IsSplit(op schedule.Gemm) bool { return s.MethodOf(op) != Library }

// SplitRoom is the most bytes of a product's packed operands. Larger products are formed in
// portions.
var SplitRoom int64 = 512 << 20

// splitTerms is how many terms the library sums at a time. Tensor cores add sixteen terms at a time
// and truncate the sum to 24 bits, towards zero. So a sum of n terms is off by about n/16 · 2⁻²⁴.
// Such sums are added in single precision, rounded to nearest.
const splitTerms = 4096

// Portions cuts op so that its packed operands fit into room bytes; kept: only the left one counts.
// Portions are equal shares of the rows, or of the terms if there are more terms than rows, of
// about terms terms at most. Shares of rows need the whole right factor, which may exceed room.
func Portions(op schedule.Gemm, kept bool, room int64, terms int) []schedule.Gemm {
	m, n, k := op.Sizes()
	bytes, _ := SplitBytes(m, k)
	if !kept {
		right, _ := SplitBytes(n, k)
		bytes += right
	}
	parts := int((bytes + room - 1) / room)
	rows, length := kept || m >= k, m
	if !rows {
		length, parts = k, max(parts, ints.CeilDiv(k, terms))
	}
	share := ints.RoundUp(ints.CeilDiv(length, parts), 64)
	var out []schedule.Gemm
	for from := 0; from < length; from += share {
		size, p := min(share, length-from), op
		if rows {
			p.A, p.C = part(op.A, op.TransA, from, size), op.C.Band(from, size)
		} else {
			p.A, p.B = part(op.A, !op.TransA, from, size), part(op.B, op.TransB, from, size)
			p.Accumulate = op.Accumulate || from > 0
		}
		out = append(out, p)
	}
	return out
}

// part returns n rows of v, or n columns.
func part(v schedule.View, columns bool, from, n int) schedule.View {
	if columns {
		return v.Columns(from, n)
	}
	return v.Band(from, n)
}

// ScratchBytes returns the scratch memory that splitting op needs.
func (s SplitPlan) ScratchBytes(op schedule.Gemm) int64 {
	kept := s.Kept[op.B.M.ID] != Library
	if s.MethodOf(op) == SplitKernel {
		return s.kernelScratch(op, kept)
	}
	m, n, k := Portions(op, kept, SplitRoom, splitTerms)[0].Sizes()
	left, _ := SplitBytes(m, k)
	if kept {
		return left
	}
	right, _ := SplitBytes(n, k)
	return left + right
}

// SplitProduct forms op by the library, from split factors.
func SplitProduct(t *launch.Target, op schedule.Gemm, kept bool, scratch driver.Pointer) []launch.Command {
	var out []launch.Command
	var right schedule.View
	for _, op := range Portions(op, kept, SplitRoom, splitTerms) {
		m, n, k := op.Sizes()
		left, absmax := SplitBytes(m, k)
		_, rightAbsmax := SplitBytes(n, k)
		p := Product(t, op)
		begin, columns := 0, 3*packedColumns(k)
		p.Operands = driver.Half
		p.A, p.LdA, p.TransA = scratch, columns, false
		p.B, p.LdB, p.TransB = scratch+driver.Pointer(left), columns, true
		if kept {
			p.B = t.At(op.B)
		} else if right != op.B {
			out = append(out, SplitFactor(t, op.B, !op.TransB, p.B, 0, false)...)
			right = op.B
		}
		out = append(out, SplitFactor(t, op.A, op.TransA, p.A, p.B+driver.Pointer(rightAbsmax), op.Accumulate)...)
		scale := productScale
		for _, end := range chainEnds(k) {
			chain := *p
			chain.A, chain.B, chain.K = p.A+driver.Pointer(2*begin), p.B+driver.Pointer(2*begin), end-begin
			chain.Scale = p.A + driver.Pointer(absmax) + driver.Pointer(scale)
			out, begin, scale = append(out, launch.Command{Product: &chain}), end, addedScale
		}
	}
	return out
}

// chainEnds returns at which columns of packed operands of k terms the sums end that the library forms at a time.
// Products of the low halves, in the first two thirds of the columns, are small, and so are the errors of their sums.
func chainEnds(k int) (ends []int) {
	all := packedColumns(k)
	chain := ints.RoundUp(ints.CeilDiv(all, ints.CeilDiv(k, splitTerms)), 64)
	for from := 0; from < all; from += chain {
		ends = append(ends, 2*all+min(all, from+chain))
	}
	return ends
}

// SplitFactor packs a factor, or its transpose with trans. If right is 0, it packs a right factor.
// Otherwise it packs the left factor of a product with a right factor whose absmax cache is right.
func SplitFactor(t *launch.Target, from schedule.View, trans bool, to, right driver.Pointer, accumulate bool) []launch.Command {
	if right == 0 {
		return SplitWeights(t, from, trans, to, 0)
	}
	_, absmax := splitSize(from, trans)
	own := to + driver.Pointer(absmax)
	return []launch.Command{Largest(t, from, own), split(t, from, trans, to, right, false, accumulate)}
}

// SplitWeights packs a right factor, or its transpose with trans. Unless 0, largest has its largest
// value; else it is found first.
func SplitWeights(t *launch.Target, from schedule.View, trans bool, to, largest driver.Pointer) (list []launch.Command) {
	if largest == 0 {
		_, absmax := splitSize(from, trans)
		largest = to + driver.Pointer(absmax)
		list = append(list, Largest(t, from, largest))
	}
	return append(list, split(t, from, trans, to, largest, true, false))
}

// splitSize returns the length of one half of a packed row of from, or of its transpose. absmax is
// the offset of the absmax cache after all rows.
func splitSize(from schedule.View, trans bool) (all int, absmax int64) {
	rows, cols := from.Rows, from.Cols
	if trans {
		rows, cols = cols, rows
	}
	_, absmax = SplitBytes(rows, cols)
	return packedColumns(cols), absmax
}

// split packs a factor whose largest value is known: a right one's is at right, a left one's in its
// own absmax cache after the packed factor.
func split(t *launch.Target, from schedule.View, trans bool, to, right driver.Pointer, isRight, accumulate bool) launch.Command {
	all, absmax := splitSize(from, trans)
	width, block := across(t, from, all)
	grid := [3]int{ints.CeilDiv(all, block[0]*width), min(ints.CeilDiv(from.Rows, block[1]), launch.MaxGrid), 1}
	if trans {
		width, grid, block = 1, [3]int{ints.CeilDiv(from.Cols, 32), min(ints.CeilDiv(all, 32), launch.MaxGrid), 1}, [3]int{32, 8, 1}
	}
	return launch.New(scaled(t, "split", nil, "V", width, "TRANS", ints.FromBool(trans), "RIGHT", ints.FromBool(isRight)), grid, block,
		uint64(from.Rows), uint64(from.Cols), uint64(t.At(from)), uint64(from.M.Cols), uint64(all), uint64(to), uint64(to)+uint64(absmax), uint64(right), uint64(ints.FromBool(accumulate)))
}

// across returns how many adjacent values of v a thread reads at a time, and the shape of a block
// for rows of all values.
func across(t *launch.Target, v schedule.View, all int) (width int, block [3]int) {
	if width = 1; v.Cols%8 == 0 && v.M.Cols%8 == 0 && int(t.At(v))%32 == 0 {
		width = 8
	}
	x := 1
	for x < launch.BlockSize && x*width < all {
		x *= 2
	}
	return width, [3]int{x, launch.BlockSize / x, 1}
}

// Largest finds a factor's largest value and leaves it in an absmax cache.
func Largest(t *launch.Target, from schedule.View, absmax driver.Pointer) launch.Command {
	width, block := across(t, from, from.Cols)
	l := launch.New(scaled(t, "largest", nil, "V", width), [3]int{min(ints.CeilDiv(from.Rows, block[1]), AbsmaxParts), 1, 1}, block,
		uint64(from.Rows), uint64(from.Cols), uint64(t.At(from)), uint64(from.M.Cols), uint64(absmax))
	l.Early = t.Properties.Capability >= 90
	return l
}

// scaled returns a kernel that uses scales, with the other files that it consists of.
func scaled(t *launch.Target, name string, parts []string, defines ...any) *codegen.Source {
	return t.Source(func() codegen.Source {
		text := file("scales", defines...).Text
		for _, part := range append(parts, name) {
			text += file(part).Text
		}
		return codegen.Source{Name: name, Text: text}
	}, append([]any{name, " "}, defines...)...)
}

// AddedRow returns the product at node i, and the row that the next node adds to each of its rows.
// The row is empty if there is no such addition.
func AddedRow(s *schedule.Schedule, i int) (op schedule.Gemm, row schedule.View) {
	op, ok := s.Nodes[i].Op.(schedule.Gemm)
	if !ok || i+1 >= len(s.Nodes) || s.Nodes[i].Stream != s.Nodes[i+1].Stream || len(s.Nodes[i+1].Wait) > 0 {
		return op, row
	}
	if add, ok := s.Nodes[i+1].Op.(schedule.Map); ok && add.Op == cell.Add && add.A == op.C && add.Out == op.C && add.B.Rows == 1 && add.B.M != op.C.M {
		row = add.B
	}
	return op, row
}
