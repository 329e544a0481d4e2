package cuda

import (
	"math"

	"rnnbench/rnn/schedule"
)

// Products of single precision by a kernel that splits the left factor in halves as it
// multiplies them (kernels/halves.cu): what split.go leaves of one product of halves
// is that the left factor's pieces, one and a half times its bytes, go through memory.
// The right factor's are made ahead, in the order in which they are multiplied.

// Sizes of a block's part of a product, as kernels/halves.cu has them.
const (
	deepHalves    = 32  // terms at a time
	columnsHalves = 128 // columns
)

// A wide is how a product is divided among blocks.
type wide struct {
	groups int // of 64 rows of a block
	share  int // terms of a part, in deepHalves
	parts  int // of the sums
	items  int // parts of the product
}

func (w wide) rows() int    { return 64 * w.groups }
func (w wide) threads() int { return 128 * (w.groups + 1) }
func (w wide) stage() int   { return 4 * deepHalves * (w.rows() + columnsHalves) }
func (w wide) stages() int  { return 16 / w.groups } // 4 of a block alone on its multiprocessor
func (w wide) shared() int  { return 1024 + w.stages()*(w.stage()+16) }

// wideBytes is what the pieces of a right factor of k terms and n columns take, and where
// its tail is.
func wideBytes(n, k int) (all, tail int64) {
	tail = 4 * int64(roundUp(n, columnsHalves)) * int64(roundUp(k, deepHalves))
	return (tail + tailBytes + alignment - 1) / alignment * alignment, tail
}

// engineCopies reports whether the copy engine can bring the left factor of op: rows that
// begin at multiples of 16 bytes.
func engineCopies(op schedule.Gemm) bool {
	m, _, k := op.Sizes()
	return op.A.M.Cols%4 == 0 && op.A.Col%4 == 0 && op.A.Row*op.A.M.Cols%4 == 0 && m < 1<<30 && k < 1<<30
}

// divided is how op is divided on a GPU of so many multiprocessors, and about how many
// seconds it takes.
func divided(op schedule.Gemm, sms int) (best wide, seconds float64) {
	m, n, k := op.Sizes()
	deep, seconds := ceil(k, deepHalves), math.Inf(1)
	w := wide{groups: 4}
	tiles := ceil(m, w.rows()) * ceil(n, columnsHalves)
	for parts := ceil(k, splitTerms); parts == ceil(k, splitTerms) || parts <= min(256, deep/8); parts++ {
		w.share = ceil(deep, parts)
		w.parts = ceil(deep, w.share)
		w.items = tiles * w.parts
		const timeStage, timeItem = 1.1e-6, 2e-6
		t := float64(ceil(w.items, sms)) * (float64(w.share)*timeStage + timeItem)
		if w.parts > 1 {
			t += 8*float64(w.parts)*float64(m)*float64(n)/rateCopy + timeLaunch
		}
		if t < seconds {
			best, seconds = w, t
		}
	}
	return best, seconds
}

// wideParts cuts op so that the pieces of its right factor, unless that is kept, need no more
// than room, into shares of the sum's terms.
func wideParts(op schedule.Gemm, kept bool, room int64) []schedule.Gemm {
	_, n, k := op.Sizes()
	bytes, _ := wideBytes(n, k)
	if kept || bytes <= room {
		return []schedule.Gemm{op}
	}
	share := roundUp(ceil(k, int((bytes+room-1)/room)), deepHalves)
	var out []schedule.Gemm
	for from := 0; from < k; from += share {
		size, p := min(share, k-from), op
		p.A, p.B = part(op.A, !op.TransA, from, size), part(op.B, op.TransB, from, size)
		p.Accumulate = op.Accumulate || from > 0
		out = append(out, p)
	}
	return out
}

// wideRoom is what wideProduct needs of scratch memory.
func (s splitting) wideRoom(op schedule.Gemm, kept bool) int64 {
	op = wideParts(op, kept, splitRoom)[0]
	m, n, k := op.Sizes()
	w, _ := divided(op, s.sms)
	bytes := int64(roundUp(tailBytes, alignment))
	if !kept {
		right, _ := wideBytes(n, k)
		bytes += right
	}
	if w.parts > 1 {
		bytes += 4 * int64(w.parts) * int64(m) * int64(n)
	}
	return bytes
}

// wideProduct forms a product whose left factor is split on the way.
func (b *binder) wideProduct(op schedule.Gemm, stream int) []step {
	kept := b.layout.kept[op.B.M.ID] != single
	tail := b.base + Pointer(b.layout.scratch[stream])
	var out []step
	for _, op := range wideParts(op, kept, splitRoom) {
		m, n, k := op.Sizes()
		w, _ := divided(op, b.properties.SMs)
		free := tail + Pointer(roundUp(tailBytes, alignment))
		right := free
		all, at := wideBytes(n, k)
		if kept {
			right = b.at(op.B)
		} else {
			out = append(out, b.widePieces(op.B, op.TransB, !op.TransA, right)...)
			free += Pointer(all)
		}
		c, ld, add := b.at(op.C), op.C.M.Cols, op.Accumulate
		if w.parts > 1 {
			c, ld, add = free, n, false
		}
		width := func(at Pointer, ld int) int {
			if n%4 == 0 && ld%4 == 0 && at%16 == 0 {
				return 4
			}
			return 1
		}
		left := &Tensor{At: b.at(op.A), Sizes: [3]int{op.A.Cols, op.A.Rows, 1}, Strides: [2]int{4 * op.A.M.Cols, 4 * op.A.M.Cols * op.A.Rows}, Box: [3]int{32, w.rows(), 1}, Turned: true}
		if op.TransA {
			left.Box[1] = deepHalves
		}
		blocks := min(w.items, b.properties.SMs*4/w.groups)
		l := newLaunch(b.scaled("halves", "halves", "KERNEL", 2, "V", width(c, ld), "ALONG", number(!op.TransA), "GROUPS", w.groups, "STAGES", w.stages()), [3]int{blocks, 1, 1}, [3]int{w.threads(), 1, 1},
			uint64(m), uint64(n), uint64(k), uint64(w.items), uint64(w.share), uint64(tail), uint64(right), uint64(right)+uint64(at), uint64(c), uint64(ld), uint64(m)*uint64(n), uint64(number(add)))
		l.launch.Shared, l.launch.Tensors = w.shared(), []*Tensor{left}
		l.launch.pack()
		out = append(out, b.largest(op.A, tail), l)
		if w.parts > 1 {
			width := width(b.at(op.C), op.C.M.Cols)
			out = append(out, newLaunch(b.scaled("add_parts", "halves", "KERNEL", 1, "V", width, "ALONG", 0, "GROUPS", 4, "STAGES", 1), [3]int{min(ceil(m*n, width*blockSize), maxGrid), 1, 1}, [3]int{blockSize, 1, 1},
				uint64(m), uint64(n), uint64(w.parts), uint64(c), uint64(b.at(op.C)), uint64(op.C.M.Cols), uint64(number(op.Accumulate))))
		}
	}
	return out
}

// widePieces makes the pieces of a right factor, whose terms lie along rows of from where
// it is transposed, as a left one is that has them along its rows or not.
func (b *binder) widePieces(from schedule.View, trans, along bool, to Pointer) []step {
	terms, columns, term, column := from.Rows, from.Cols, from.M.Cols, 1
	if trans {
		terms, columns, term, column = from.Cols, from.Rows, 1, from.M.Cols
	}
	_, tail := wideBytes(columns, terms)
	return []step{b.largest(from, to+Pointer(tail)), newLaunch(b.scaled("pieces", "halves", "KERNEL", 0, "V", 1, "ALONG", number(along), "GROUPS", 4, "STAGES", 1),
		[3]int{ceil(ceil(terms, deepHalves), 2), ceil(columns, columnsHalves), 1}, [3]int{blockSize, 1, 1},
		uint64(terms), uint64(columns), uint64(b.at(from)), uint64(term), uint64(column), uint64(to), uint64(to)+uint64(tail))}
}
