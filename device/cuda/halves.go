package cuda

import (
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/schedule"
)

// Products of single precision by a kernel that splits the left factor in halves as it
// multiplies it (kernels/halves.cu): what limits one product of the pieces of both factors
// (split.go) is that the left one's, one and a half times its bytes, go through memory.
// The right factor's are made ahead, in the order in which they are multiplied.

// wideProduct forms a product whose left factor is split on the way, and adds a row to each
// of its rows, if there is one and sums are not in parts.
func (b *binder) wideProduct(op schedule.Gemm, bias schedule.View, stream int) []launch.Command {
	kept := b.layout.Kept[op.B.M.ID] != gemm.Library
	copied := !gemm.EngineCopies(op.A)
	tail, out := b.tail(op.A, stream, copied)
	rightTail := b.At(op.B)
	if !kept {
		var more []launch.Command
		rightTail, more = b.tail(op.B, stream, false)
		out = append(out, more...)
	}
	scratch := b.scratch(stream)
	left := gemm.LeftFactor{View: op.A, At: b.At(op.A), Stride: op.A.M.Cols, Tail: tail}
	if copied {
		left.At, left.Stride = scratch, ints.RoundUp(op.A.Cols, 4)
		scratch += driver.Pointer(gemm.CopyBytes(op.A))
		out = append(out, gemm.CopyLeft(b.Target, left))
	}
	portions := gemm.CutTerms(op, kept, gemm.SplitRoom)
	for i, op := range portions {
		m, n, k := op.Sizes()
		w, _ := gemm.Divide(op, b.Properties.SMs)
		var right gemm.Operand
		if kept {
			_, at := gemm.PackedBytes(n, k)
			right = gemm.Operand{At: b.At(op.B), Tail: b.At(op.B) + driver.Pointer(at), Parts: scratch}
		} else {
			var more []launch.Command
			right, more = b.right(op, rightTail, scratch, stream)
			out = append(out, more...)
		}
		out = append(out, gemm.SplitFP16(b.Target, op, w, left, right, bias))
		if w.Parts > 1 {
			b.pending = append(b.pending, gemm.PartialSums{Rows: m, Cols: n, Parts: w.Parts, From: right.Parts, To: op.C, Add: op.Accumulate})
			if rows, ok := b.sumBehind(op, stream); ok && i == len(portions)-1 {
				b.added[b.now+1] = true
				b.pending = append(b.pending, gemm.PartialSums{Rows: 1, Cols: rows.A.Cols, Parts: pointwise.SumParts(rows, b.Properties), From: b.sums(stream), To: rows.Out, Add: rows.Accumulate})
			}
			if b.now >= b.chainEnd {
				out, b.pending = append(out, gemm.AddParts(b.Target, b.pending)), nil
			}
		}
	}
	return out
}

// biased is that row where the kernel that forms the product adds it.
func (b *binder) biased(s *schedule.Schedule, i int) (row schedule.View) {
	if i < 0 {
		return row
	}
	op, row := gemm.AddedRow(s, i)
	if row.Empty() || b.layout.Factors[op.B.M.ID] != nil || b.layout.MethodOf(op) != gemm.SplitKernel || len(gemm.CutTerms(op, b.layout.Kept[op.B.M.ID] != gemm.Library, gemm.SplitRoom)) > 1 {
		return schedule.View{}
	}
	if w, _ := gemm.Divide(op, b.Properties.SMs); w.Parts > 1 {
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
	slotBytes = (gemm.TailBytes + launch.Alignment - 1) / launch.Alignment * launch.Alignment
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
		return at, []launch.Command{pointwise.PartSums(b.Target, op, b.sums(stream), at, gemm.Scales())}
	}
	return at, []launch.Command{gemm.Largest(b.Target, v, at)}
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
			if op.A != v || b.summed[i] || parts == 1 || parts*pointwise.SumBlocks(v) > gemm.LargestParts {
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
