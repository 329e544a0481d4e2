package cuda

import (
	"math"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Products of single precision on tensor cores. Each factor is scaled by a power
// of two, so that its largest value is of the order of 2¹⁴, and split into the
// nearest halves, high, and the halves nearest to the rest, low: what is not
// within 2⁻¹⁸ of the largest loses bits that its product with the largest has no
// place for. Of the four products the smallest is left out, which is 2⁻²² of the
// result. The other three are one product of halves over three times the columns,
//
//	A·B ≈ [low A | high A | high A] · [high B | low B | high B]ᵀ,
//
// which sums small terms before large ones and scales the sum back. Both factors
// are laid out along the sum. Columns of zeros keep pieces aligned to sixteen
// bytes.

// productKnobs are those of schedules with products.
func productKnobs(s *schedule.Schedule) []knob.Knob {
	for op := range s.Operations() {
		if _, ok := op.(schedule.Gemm); !ok {
			continue
		}
		if s.Precision == schedule.FP32 {
			return []knob.Knob{pickKnob(), splitKnob()}
		}
		return []knob.Knob{pickKnob()}
	}
	return nil
}

func pickKnob() knob.Knob {
	return knob.Knob{Name: "pick", Doc: "the library's algorithm for each product: 1: the fastest of those it names, which are tried; 0: the one it recommends", Values: []int{0, 1}}
}

func splitKnob() knob.Knob {
	return knob.Knob{Name: "split", Doc: "fp32 products, but narrow ones, as three of halves on tensor cores, by the library (1) or a kernel that splits the left factor as it multiplies it (3), or in single precision (2); 0: as is expected to be the fastest", Values: []int{0, 1, 2, 3}}
}

// Rates of an H200, of which ratios alone matter: operations and bytes a second,
// seconds that a launch takes.
const (
	rateSingle = 50e12
	rateSplit  = 240e12 // all three products
	rateCopy   = 3e12
	rateWrite  = 1.6e12 // of a product whose sums are short
	timeLaunch = 2e-6
)

// pieceColumns is the length of a piece of a factor along the sum of k terms.
func pieceColumns(k int) int { return ints.RoundUp(k, 8) }

// largestParts is in how many parts the largest value of a factor is looked for;
// tailBytes is what these and the scale take behind its pieces.
const (
	largestParts = 1024
	tailBytes    = 4 * (4 + largestParts)
)

// pieceBytes is what a split factor takes, n rows of k terms, and where its tail is.
func pieceBytes(n, k int) (all, tail int64) {
	tail = 6 * int64(n) * int64(pieceColumns(k))
	return (tail + tailBytes + launch.Alignment - 1) / launch.Alignment * launch.Alignment, tail
}

// A form is how a product of single precision is formed.
type form int

const (
	single   form = iota // by the library, of single precision
	pieces               // by the library, of the pieces of both factors
	onTheWay             // by a kernel that splits the left factor (halves.go)
)

// seconds is about what op takes in a form, its right factor split ahead of it or with it.
func (s splitting) seconds(op schedule.Gemm, f form, ahead bool) float64 {
	m, n, k := op.Sizes()
	flops := 2 * float64(m) * float64(n) * float64(k)
	left, right := float64(m)*float64(k), float64(n)*float64(k)
	row := 0.0 // to add one to each
	if s.added[op] {
		row = 8*float64(m)*float64(n)/rateCopy + timeLaunch
	}
	switch f {
	case pieces:
		if ahead {
			right = 0
		}
		return max(flops/rateSplit, 4*float64(m)*float64(n)/rateWrite) + 14*(left+right)/rateCopy + s.launches(2, ahead) + row
	case onTheWay:
		_, t := divided(op, s.sms)
		if ahead {
			right = 0
		}
		if !engineCopies(op.A) {
			t += 8*left/rateCopy + timeLaunch
		}
		// The largest value of every other left factor is known.
		return t + (2*left+12*right)/rateCopy + s.launches(0.5, ahead)
	}
	return 0.9*flops/float64(n)*float64(max(n, 128))/rateSingle + row
}

// launches is what so many take, and two that split a right factor.
func (s splitting) launches(n float64, ahead bool) float64 {
	if !ahead {
		n += 2
	}
	return n * timeLaunch
}

// can reports whether op can be formed so, and worth whether that may pay.
func (s splitting) can(op schedule.Gemm, f form, ahead bool) bool {
	return (s.asked == single || s.asked == f) && (f != onTheWay || s.hopper && !(ahead && op.TransA))
}

func worth(op schedule.Gemm, f form) bool {
	m, n, k := op.Sizes()
	return f == single || m >= 256 && n >= map[form]int{pieces: 64, onTheWay: 32}[f] && k >= 32
}

// fastest is the form that is expected to be the fastest of those that all of ops can be
// formed in and that may pay for some, whose right factor is the same and split ahead of them
// or with each.
func (s splitting) fastest(ahead bool, ops ...schedule.Gemm) form {
	best, least := single, math.Inf(1)
	for f := range onTheWay + 1 {
		t, pays := 0.0, s.asked == f
		for _, op := range ops {
			if pays = pays || worth(op, f); !s.can(op, f, ahead) {
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

// A splitting says which products of a schedule are split, and which matrices
// are stored split alone: those of weights that are packed for such products
// and read by nothing else.
type splitting struct {
	some   bool // products may be split
	asked  form // of products; single: as is expected to pay
	hopper bool // the GPU has what the kernel takes that splits the left factor
	sms    int
	added  map[schedule.Gemm]bool // products to each row of which a row is added next
	kept   map[int]form           // by the matrix's number
}

func newSplitting(s *schedule.Schedule, k knob.Params, p driver.Properties) splitting {
	out := splitting{
		some: s.Precision == schedule.FP32 && k["split"] != 2 && p.Capability >= 80, asked: map[int]form{1: pieces, 3: onTheWay}[k["split"]],
		hopper: p.Hopper && p.Shared >= max(wide{groups: 2}.shared(), wide{groups: 3}.shared()), sms: p.SMs, added: map[schedule.Gemm]bool{}, kept: map[int]form{},
	}
	if !out.some {
		return out
	}
	for i := range s.Nodes {
		if op, row := addedRow(s, i); !row.Empty() {
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
			out.kept[id] = out.fastest(true, reads[id]...)
		}
	}
	return out
}

// of is the form of op.
func (s splitting) of(op schedule.Gemm) form {
	if !s.some {
		return single
	}
	if f := s.kept[op.B.M.ID]; f != single {
		return f
	}
	return s.fastest(false, op)
}

// splits reports whether op is split.
func (s splitting) splits(op schedule.Gemm) bool { return s.of(op) != single }

// splitRoom is what the pieces of a product's factors take at most: larger products are
// formed in portions.
var splitRoom int64 = 512 << 20

// splitTerms is how many terms are summed at a time by the library.
// Tensor cores cut off what they add beyond 24 bits, always towards zero, sixteen
// terms at a time, so that a sum of n terms is off by n/16 · 2⁻²⁴ of what has been
// summed, about; portions are added in single precision, rounded to nearest.
const splitTerms = 4096

// portions cuts op so that the pieces of its factors, of the left one alone where
// the right is kept, need no more than room, into equal shares of rows, or of
// the sum's terms where those are more and no more than terms at a time. Shares of
// rows need all of the right one, which may be more than room.
func portions(op schedule.Gemm, kept bool, room int64, terms int) []schedule.Gemm {
	m, n, k := op.Sizes()
	bytes, _ := pieceBytes(m, k)
	if !kept {
		right, _ := pieceBytes(n, k)
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

// part is so many rows of v, or columns.
func part(v schedule.View, columns bool, from, n int) schedule.View {
	if columns {
		return v.Columns(from, n)
	}
	return v.Band(from, n)
}

// splitBytes is what splitting op needs of scratch memory.
func (s splitting) splitBytes(op schedule.Gemm) int64 {
	kept := s.kept[op.B.M.ID] != single
	if s.of(op) == onTheWay {
		return s.wideRoom(op, kept)
	}
	m, n, k := portions(op, kept, splitRoom, splitTerms)[0].Sizes()
	left, _ := pieceBytes(m, k)
	if kept {
		return left
	}
	right, _ := pieceBytes(n, k)
	return left + right
}

// splitProduct forms a product of split factors.
func (b *binder) splitProduct(op schedule.Gemm, stream int) []launch.Command {
	kept := b.layout.kept[op.B.M.ID] != single
	scratch := b.scratch(stream)
	var out []launch.Command
	var right schedule.View
	for _, op := range portions(op, kept, splitRoom, splitTerms) {
		m, n, k := op.Sizes()
		left, tail := pieceBytes(m, k)
		_, rightTail := pieceBytes(n, k)
		p := b.product(op)
		p.Operands, p.Pick = driver.Half, false
		p.K = 3 * pieceColumns(k)
		p.A, p.LdA, p.TransA = scratch, p.K, false
		p.B, p.LdB, p.TransB = scratch+driver.Pointer(left), p.K, true
		if kept {
			p.B = b.At(op.B)
		} else if right != op.B {
			out = append(out, b.split(op.B, !op.TransB, p.B, 0, false)...)
			right = op.B
		}
		out = append(out, b.split(op.A, op.TransA, p.A, p.B+driver.Pointer(rightTail), op.Accumulate)...)
		p.Scale = p.A + driver.Pointer(tail) + 4
		out = append(out, launch.Command{Product: p})
	}
	return out
}

// split writes the pieces of a factor, or of its transpose: of a left one for a
// product with a right one whose tail is given, of a right one where there is
// none.
func (b *binder) split(from schedule.View, trans bool, to, right driver.Pointer, accumulate bool) []launch.Command {
	rows, all := from.Rows, pieceColumns(from.Cols)
	if trans {
		rows, all = from.Cols, pieceColumns(from.Rows)
	}
	_, tail := pieceBytes(rows, all)
	width, block := b.across(from, all)
	grid := [3]int{ints.CeilDiv(all, block[0]*width), min(ints.CeilDiv(from.Rows, block[1]), launch.MaxGrid), 1}
	if trans {
		width, grid, block = 1, [3]int{ints.CeilDiv(from.Cols, 32), min(ints.CeilDiv(all, 32), launch.MaxGrid), 1}, [3]int{32, 8, 1}
	}
	kind := ints.FromBool(right == 0)
	if right == 0 {
		right = to + driver.Pointer(tail) // unread
	}
	return []launch.Command{b.largest(from, to+driver.Pointer(tail)), launch.New(b.scaled("split", nil, "V", width, "TRANS", ints.FromBool(trans), "RIGHT", kind), grid, block,
		uint64(from.Rows), uint64(from.Cols), uint64(b.At(from)), uint64(from.M.Cols), uint64(all), uint64(to), uint64(to)+uint64(tail), uint64(right), uint64(ints.FromBool(accumulate)))}
}

// across is how many values side by side in v threads take at a time, and a block of them
// where rows have so many.
func (b *binder) across(v schedule.View, all int) (width int, block [3]int) {
	if width = 1; v.Cols%8 == 0 && v.M.Cols%8 == 0 && int(b.At(v))%32 == 0 {
		width = 8
	}
	x := 1
	for x < launch.BlockSize && x*width < all {
		x *= 2
	}
	return width, [3]int{x, launch.BlockSize / x, 1}
}

// largest looks for a factor's largest value, which its tail is to know.
func (b *binder) largest(from schedule.View, tail driver.Pointer) launch.Command {
	width, block := b.across(from, from.Cols)
	l := launch.New(b.scaled("largest", nil, "V", width), [3]int{min(ints.CeilDiv(from.Rows, block[1]), largestParts), 1, 1}, block, uint64(from.Rows), uint64(from.Cols), uint64(b.At(from)), uint64(from.M.Cols), uint64(tail))
	l.Early = b.Properties.Capability >= 90
	return l
}

// scaled is a kernel that knows of scales, behind what else it is made of.
func (b *binder) scaled(name string, parts []string, defines ...any) *codegen.Source {
	return b.Source(func() codegen.Source {
		text := file("scales", defines...).Text
		for _, part := range append(parts, name) {
			text += file(part).Text
		}
		return codegen.Source{Name: name, Text: text}
	}, append([]any{name, " "}, defines...)...)
}
