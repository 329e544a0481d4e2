package cuda

import (
	"fmt"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Weights that only persistent layers read are packed as their kernels take them:
// a block reads its own at the start, in few, long loads.

// An order is how packed weights lie in memory.
type order int

const (
	byColumn order = iota // the units of a column side by side, as products read them
	byUnit                // the columns of a unit side by side, for kernels/cluster.cu
	byLane                // in fragments of products on tensor cores
)

// orders says how weights that layers of s read are packed, by their matrix's
// number. What products read, too, or layers in different ways, is as always.
func (b *binder) orders(s *schedule.Schedule) map[int]order {
	out := map[int]order{}
	read := func(v schedule.View, as order) {
		if before, known := out[v.M.ID]; known && before != as {
			as = byColumn
		}
		out[v.M.ID] = as
	}
	for op := range s.Operations() {
		switch op := op.(type) {
		case schedule.Gemm:
			as := byColumn
			if b.layout.lower[op.B.M.ID] {
				as = byLane
			}
			read(op.B, as)
		case schedule.PersistentBackward:
			read(op.R, byColumn)
		case schedule.Persistent:
			as := byColumn
			if b.layout.own[op.R[0].M.ID] {
				as = byLane
			} else if t, err := b.chosen(op); err == nil && b.Knobs["resident"] != 3 {
				as = t.order
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
		b.layout.Factors[id] == nil && b.layout.Kept[id] == gemm.Library && (as == byUnit && op.Trans || as == byColumn && !op.Trans) &&
		(b.At(op.Src)-b.Base)%launch.Alignment == 0
}

// ordered reports whether op's weights are all packed as t takes them.
func (b *binder) ordered(op schedule.Persistent, t grouping) bool {
	for _, r := range op.R {
		if b.order[r.M.ID] != t.order {
			return false
		}
	}
	return true
}

// fragmentBytes is the size of a layer's weights of a gate as fragments, of 16
// units and 64 bytes of columns each.
func fragmentBytes(hidden int, e driver.Element) int64 {
	return 1024 * int64(ints.CeilDiv(hidden, 16)) * int64(ints.CeilDiv(hidden*e.Bytes(), 64))
}

// pack is op, whose result lies in memory in a given order.
func (b *binder) pack(op schedule.Pack, as order) launch.Command {
	switch {
	case as == byLane:
		return b.fragmented(op)
	case op.Trans == (as == byColumn):
		return pointwise.Transpose(b.Target, op.Src, op.Dst)
	}
	return pointwise.Map(b.Target, schedule.Map{Op: cell.Copy, Out: op.Dst, A: op.Src})
}

// fragmented packs weights as the pieces that products multiply, gate by gate.
func (b *binder) fragmented(op schedule.Pack) launch.Command {
	hidden := op.Dst.Rows
	column, unit := op.Src.M.Cols, 1
	if op.Trans {
		column, unit = unit, column
	}
	from, to, exact := b.Element(op.Src), b.Element(op.Dst), ints.FromBool(b.Precision == schedule.FP32)
	s := b.Source(func() codegen.Source {
		head := fmt.Sprintf("typedef %v FROM;\ntypedef %v W;\nenum { SPREAD = 0, ORDERED = 0, BAND = 16, EXACT = %d };\n", from, to, exact)
		return codegen.Source{Name: "arrange", Text: head + file("recurrence").Text + file("fragments").Text + file("arrange").Text}
	}, "arrange ", from, to, exact)
	quads := int(fragmentBytes(hidden, to) / 16)
	return launch.New(s, [3]int{ints.CeilDiv(quads, launch.BlockSize), op.Dst.Cols / hidden, 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(hidden), uint64(b.At(op.Src)), uint64(column), uint64(unit), uint64(b.At(op.Dst)), b.Status())
}
