package cuda

import (
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Weights that only persistent layers read are packed as their kernels take them:
// a block reads its own at the start, in few, long loads.

// orders says how weights that layers of s read are packed, by their matrix's
// number. What products read, too, or layers in different ways, is as always.
func (b *binder) orders(s *schedule.Schedule) map[int]persistent.WeightLayout {
	out := map[int]persistent.WeightLayout{}
	read := func(v schedule.View, as persistent.WeightLayout) {
		if before, known := out[v.M.ID]; known && before != as {
			as = persistent.ByColumn
		}
		out[v.M.ID] = as
	}
	for op := range s.Operations() {
		switch op := op.(type) {
		case schedule.Gemm:
			as := persistent.ByColumn
			if b.layout.Lower[op.B.M.ID] {
				as = persistent.ByLane
			}
			read(op.B, as)
		case schedule.PersistentBackward:
			read(op.R, persistent.ByColumn)
		case schedule.Persistent:
			as := persistent.ByColumn
			if b.layout.Own[op.R[0].M.ID] {
				as = persistent.ByLane
			} else if t, err := b.Chosen(op); err == nil && b.Knobs["resident"] != 3 {
				as = t.Order
			}
			for _, r := range op.R {
				read(r, as)
			}
		}
	}
	return out
}

// arrange settles how packed weights of s lie in memory, and where: those that
// would be a copy of what nothing in s writes are where that is.
func (b *binder) arrange(s *schedule.Schedule) {
	b.order, b.alias = b.orders(s), map[int]bool{}
	written := map[int]int{} // how often, by the matrix's number
	for op := range s.Operations() {
		for v, write := range schedule.Accesses(op) {
			if write {
				written[v.M.ID]++
			}
		}
	}
	for op := range s.Operations() {
		if op, ok := op.(schedule.Pack); ok && written[op.Src.M.ID] == 0 && written[op.Dst.M.ID] == 1 && b.copies(op) {
			b.alias[op.Dst.M.ID] = true
			b.layout.Offsets[op.Dst.M.ID] = int64(b.At(op.Src) - b.Base)
		}
	}
}

// copies reports whether packing by op would leave the elements of op's source as
// they are, in their order.
func (b *binder) copies(op schedule.Pack) bool {
	id := op.Dst.M.ID
	as := b.order[id]
	return b.Element(op.Src) == b.Element(op.Dst) && op.Src.Cols == op.Src.M.Cols && op.Dst == op.Dst.M.All() &&
		b.layout.Factors[id] == nil && b.layout.Kept[id] == gemm.Library && (as == persistent.ByUnit && op.Trans || as == persistent.ByColumn && !op.Trans) &&
		(b.At(op.Src)-b.Base)%launch.Alignment == 0
}

// pack is op, whose result lies in memory in a given order.
func (b *binder) pack(op schedule.Pack, as persistent.WeightLayout) launch.Command {
	switch {
	case as == persistent.ByLane:
		return persistent.PackFragments(b.Target, op)
	case op.Trans == (as == persistent.ByColumn):
		return pointwise.Transpose(b.Target, op.Src, op.Dst)
	}
	return pointwise.Map(b.Target, schedule.Map{Op: cell.Copy, Out: op.Dst, A: op.Src})
}
