package cuda

import (
	"math"
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Products of single precision by a kernel that splits the left factor in halves as it
// multiplies it (kernels/halves.cu): what limits one product of the pieces of both factors
// (split.go) is that the left one's, one and a half times its bytes, go through memory.
// The right factor's are made ahead, in the order in which they are multiplied.

// Terms at a time, and columns of a block's part of a product, as kernels/halves.cu has them.
const (
	deepHalves    = 32
	columnsHalves = 128
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
func (w wide) stages() int  { return 8 - w.groups } // 192 or 200 KB
func (w wide) shared() int {
	return 1024 + w.stages()*(4*deepHalves*(w.rows()+columnsHalves)+16) + w.groups*4*columnsHalves
}

// wideBytes is what the pieces of a right factor of k terms and n columns take, and where
// its tail is.
func wideBytes(n, k int) (all, tail int64) {
	tail = 4 * int64(ints.RoundUp(n, columnsHalves)) * int64(ints.RoundUp(k, deepHalves))
	return (tail + tailBytes + launch.Alignment - 1) / launch.Alignment * launch.Alignment, tail
}

// engineCopies reports whether the copy engine can bring parts of v: rows that begin at
// multiples of 16 bytes. Of others it is given a copy.
func engineCopies(v schedule.View) bool { return v.M.Cols%4 == 0 && v.Col%4 == 0 }

// copyBytes is what a copy of v takes that the engine can bring.
func copyBytes(v schedule.View) int64 {
	return int64(ints.RoundUp(4*v.Rows*ints.RoundUp(v.Cols, 4), launch.Alignment))
}

// divided is how op is divided on a GPU of so many multiprocessors, and about how many
// seconds it takes, as measured on an H200.
func divided(op schedule.Gemm, sms int) (best wide, least float64) {
	const start = 3e-6
	m, n, k := op.Sizes()
	deep := ints.CeilDiv(k, deepHalves)
	least = math.Inf(1)
	for _, g := range []struct {
		groups      int
		stage, item float64
	}{{3, 0.9e-6, 1.25e-6}, {2, 0.65e-6, 1e-6}} {
		w := wide{groups: g.groups}
		tiles := ints.CeilDiv(m, w.rows()) * ints.CeilDiv(n, columnsHalves)
		for parts := 1; parts == 1 || parts <= min(256, deep/8); parts++ {
			w.share = ints.CeilDiv(deep, parts)
			w.parts = ints.CeilDiv(deep, w.share)
			w.items = tiles * w.parts
			t := start + float64(ints.CeilDiv(w.items, sms))*(float64(w.share)*g.stage+g.item)
			if w.parts > 1 {
				t += 8*float64(w.parts)*float64(m)*float64(n)/rateCopy + timeLaunch
			}
			if t < least {
				best, least = w, t
			}
		}
	}
	return best, least
}

// wideParts cuts op so that the pieces of its right factor, unless that is kept, need no more
// than room, into shares of the sum's terms.
func wideParts(op schedule.Gemm, kept bool, room int64) []schedule.Gemm {
	_, n, k := op.Sizes()
	bytes, _ := wideBytes(n, k)
	if kept || bytes <= room {
		return []schedule.Gemm{op}
	}
	share := ints.RoundUp(ints.CeilDiv(k, int((bytes+room-1)/room)), deepHalves)
	var out []schedule.Gemm
	for from := 0; from < k; from += share {
		size, p := min(share, k-from), op
		p.A, p.B = part(op.A, !op.TransA, from, size), part(op.B, op.TransB, from, size)
		p.Accumulate = op.Accumulate || from > 0
		out = append(out, p)
	}
	return out
}

// wideRoom is what wideProduct needs of scratch memory: of all portions what the one needs that
// needs most, which may be the last, since a shorter sum may be in more parts.
func (s splitting) wideRoom(op schedule.Gemm, kept bool) (most int64) {
	copied := int64(0)
	if !engineCopies(op.A) {
		copied = copyBytes(op.A)
	}
	for _, op := range wideParts(op, kept, splitRoom) {
		m, n, k := op.Sizes()
		bytes := int64(0)
		if !kept {
			bytes, _ = wideBytes(n, k)
		}
		if w, _ := divided(op, s.sms); w.parts > 1 {
			bytes += 4 * int64(w.parts) * int64(m) * int64(n)
		}
		most = max(most, bytes)
	}
	return copied + most
}

// wideProduct forms a product whose left factor is split on the way, and adds a row to each
// of its rows, if there is one and sums are not in parts.
func (b *binder) wideProduct(op schedule.Gemm, bias schedule.View, stream int) []launch.Command {
	kept := b.layout.kept[op.B.M.ID] != single
	copied := !engineCopies(op.A)
	tail, out := b.tail(op.A, stream, copied)
	rightTail := b.At(op.B)
	if !kept {
		var more []launch.Command
		rightTail, more = b.tail(op.B, stream, false)
		out = append(out, more...)
	}
	scratch := b.scratch(stream)
	whole, from, ldFrom := op.A, b.At(op.A), op.A.M.Cols
	if copied {
		from, ldFrom = scratch, ints.RoundUp(whole.Cols, 4)
		scratch += driver.Pointer(copyBytes(whole))
		l := launch.New(b.scaled("copyrows", nil, "V", 1), [3]int{min(ints.CeilDiv(whole.Rows, 8), largestParts), 1, 1}, [3]int{32, 8, 1},
			uint64(whole.Rows), uint64(whole.Cols), uint64(b.At(whole)), uint64(whole.M.Cols), uint64(from), uint64(ldFrom), uint64(tail))
		l.Early = true
		out = append(out, l)
	}
	portions := wideParts(op, kept, splitRoom)
	for i, op := range portions {
		m, n, k := op.Sizes()
		w, _ := divided(op, b.Properties.SMs)
		var right link
		if kept {
			_, at := wideBytes(n, k)
			right = link{at: b.At(op.B), tail: b.At(op.B) + driver.Pointer(at), parts: scratch}
		} else {
			var more []launch.Command
			right, more = b.right(op, rightTail, scratch, stream)
			out = append(out, more...)
		}
		c, ld, add := b.At(op.C), op.C.M.Cols, op.Accumulate
		row := c // unread
		if !bias.Empty() {
			row = b.At(bias)
		}
		if w.parts > 1 {
			c, ld, add = right.parts, n, false
		}
		width := func(at driver.Pointer, ld int) int {
			if n%4 == 0 && ld%4 == 0 && at%16 == 0 {
				return 4
			}
			return 1
		}
		left := &driver.Tensor{At: from + driver.Pointer(4*((op.A.Row-whole.Row)*ldFrom+op.A.Col-whole.Col)), Sizes: [3]int{op.A.Cols, op.A.Rows, 1}, Strides: [2]int{4 * ldFrom, 4 * ldFrom * op.A.Rows}, Box: [3]int{deepHalves, w.rows(), 1}, Turned: true}
		if op.TransA {
			left.Box[1] = deepHalves
		}
		l := launch.New(b.scaled("halves", []string{"pieces"}, "V", width(c, ld), "ALONG", ints.FromBool(!op.TransA), "GROUPS", w.groups, "STAGES", w.stages(), "BIAS", ints.FromBool(!bias.Empty())),
			[3]int{min(w.items, b.Properties.SMs), 1, 1}, [3]int{w.threads(), 1, 1},
			uint64(m), uint64(n), uint64(k), uint64(w.items), uint64(w.share), uint64(tail), uint64(right.at), uint64(right.tail), uint64(c), uint64(ld), uint64(m)*uint64(n), uint64(ints.FromBool(add)), uint64(row))
		l.Launch.Shared, l.Launch.Tensors = w.shared(), []*driver.Tensor{left}
		l.Launch.Pack()
		l.Early = true
		out = append(out, l)
		if w.parts > 1 {
			b.pending = append(b.pending, sumOf{rows: m, cols: n, parts: w.parts, from: c, to: op.C, add: op.Accumulate})
			if rows, ok := b.sumBehind(op, stream); ok && i == len(portions)-1 {
				b.added[b.now+1] = true
				b.pending = append(b.pending, sumOf{rows: 1, cols: rows.A.Cols, parts: pointwise.SumParts(rows, b.Properties), from: b.sums(stream), to: rows.Out, add: rows.Accumulate})
			}
			if b.now >= b.chainEnd {
				out, b.pending = append(out, b.addParts(b.pending)), nil
			}
		}
	}
	return out
}

// addedRow is operation i, if that is a product, and the row that the next one adds to each of
// its rows, if it does.
func addedRow(s *schedule.Schedule, i int) (op schedule.Gemm, row schedule.View) {
	op, ok := s.Nodes[i].Op.(schedule.Gemm)
	if !ok || i+1 >= len(s.Nodes) || s.Nodes[i].Stream != s.Nodes[i+1].Stream || len(s.Nodes[i+1].Wait) > 0 {
		return op, row
	}
	if add, ok := s.Nodes[i+1].Op.(schedule.Map); ok && add.Op == cell.Add && add.A == op.C && add.Out == op.C && add.B.Rows == 1 && add.B.M != op.C.M {
		row = add.B
	}
	return op, row
}

// biased is that row where the kernel that forms the product adds it.
func (b *binder) biased(s *schedule.Schedule, i int) (row schedule.View) {
	if i < 0 {
		return row
	}
	op, row := addedRow(s, i)
	if row.Empty() || b.layout.factors[op.B.M.ID] != nil || b.layout.of(op) != onTheWay || len(wideParts(op, b.layout.kept[op.B.M.ID] != single, splitRoom)) > 1 {
		return schedule.View{}
	}
	if w, _ := divided(op, b.Properties.SMs); w.parts > 1 {
		return schedule.View{}
	}
	return row
}

// A tailing is where a stream has the tails of factors that are split with a product (scales.cu):
// what was found of one holds for later products of the stream until something is written to it.
type tailing struct {
	at    int64
	slots int
	sums  int64 // of parts of a factor's rows
}

// slotBytes is what a tail takes, and mostSlots how many a stream has at most.
const (
	slotBytes = (tailBytes + launch.Alignment - 1) / launch.Alignment * launch.Alignment
	mostSlots = 64
)

// A tailed is a factor whose largest value is known, in a slot of a stream.
type tailed struct {
	view         schedule.View
	stream, slot int
}

// tail is where v's is on a stream, and what finds its largest value unless that is known or
// found by who copies v.
func (b *binder) tail(v schedule.View, stream int, copied bool) (driver.Pointer, []launch.Command) {
	room, used := b.layout.tails[stream], 0
	oldest := -1
	for i, t := range b.tails {
		if t.stream != stream {
			continue
		}
		if t.view == v {
			b.tails = append(slices.Delete(b.tails, i, i+1), t)
			return b.slot(room, t.slot), nil
		}
		if used++; oldest < 0 {
			oldest = i
		}
	}
	slot := 0
	if used == room.slots {
		slot = b.tails[oldest].slot
		b.tails = slices.Delete(b.tails, oldest, oldest+1)
	} else {
		for slices.ContainsFunc(b.tails, func(t tailed) bool { return t.stream == stream && t.slot == slot }) {
			slot++
		}
	}
	b.tails = append(b.tails, tailed{view: v, stream: stream, slot: slot})
	at := b.slot(room, slot)
	if copied {
		return at, nil
	}
	if i, op := b.sumAhead(v, stream, b.now); i > 0 {
		b.summed[i] = true
		return at, []launch.Command{pointwise.PartSums(b.Target, op, b.sums(stream), at, file("scales").Text)}
	}
	return at, []launch.Command{b.largest(v, at)}
}

// sumAhead is the sum of v's rows that is the next one on a stream behind a node, if nothing is written to v
// until then, which can be begun by who looks for v's largest value. At most one is begun, none while a chain goes on, since
// the parts of one that is among it are added up at its end.
func (b *binder) sumAhead(v schedule.View, stream, node int) (int, schedule.SumRows) {
	const far = 32
	if _, ok := b.chained[node]; ok {
		return 0, schedule.SumRows{}
	}
	for i := node + 1; node >= 0 && i < min(node+far, len(b.schedule.Nodes)); i++ {
		n := b.schedule.Nodes[i]
		if op, ok := n.Op.(schedule.SumRows); ok && n.Stream%launch.MaxStreams == stream {
			parts := pointwise.SumParts(op, b.Properties)
			if op.A != v || b.summed[i] || parts == 1 || parts*pointwise.SumBlocks(v) > largestParts {
				break
			}
			return i, op
		}
		if slices.ContainsFunc(n.Op.Writes(), v.Overlaps) {
			break
		}
	}
	return 0, schedule.SumRows{}
}

// sums is where the sums of parts of a factor's rows are that are begun ahead.
func (b *binder) sums(stream int) driver.Pointer {
	return b.Base + driver.Pointer(b.layout.tails[stream].sums)
}

func (b *binder) slot(room tailing, i int) driver.Pointer {
	return b.Base + driver.Pointer(room.at+int64(i)*slotBytes)
}

// forget drops what is known of factors that op writes to.
func (b *binder) forget(op schedule.Op) {
	for _, v := range op.Writes() {
		b.tails = slices.DeleteFunc(b.tails, func(t tailed) bool { return t.view.Overlaps(v) })
	}
}
