package lower

import (
	"slices"

	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Weights that only persistent layers read are packed in the order of their kernels. At the start,
// a block then reads its own weights in few, long loads.

// weightLayouts returns how weights that layers read are packed, by matrix number. Weights that
// products also read, or that layers read in different ways, are packed by column.
func (p *Lowering) weightLayouts() map[int]persistent.WeightLayout {
	out := map[int]persistent.WeightLayout{}
	read := func(v schedule.View, as persistent.WeightLayout) {
		if before, known := out[v.M.ID]; known && before != as {
			as = persistent.ByColumn
		}
		out[v.M.ID] = as
	}
	i := -1
	for op := range p.schedule.Operations() {
		i++
		switch op := op.(type) {
		case schedule.Gemm:
			as := persistent.ByColumn
			if p.Lower[op.B.M.ID] {
				as = persistent.ByLane
			}
			read(op.B, as)
		case schedule.PersistentBackward:
			read(op.R, persistent.ByColumn)
		case schedule.Persistent:
			as := persistent.ByColumn
			if p.Own[op.R[0].M.ID] {
				as = persistent.ByLane
			} else if l := p.layers[i]; l.err == nil && l.config.Grouped() {
				as = l.config.Order
			}
			for _, r := range op.R {
				read(r, as)
			}
		}
	}
	return out
}

// layWeights decides how packed weights lie in memory, and where. If packing would only copy a
// matrix that nothing in the schedule writes, the packed weights share its memory.
func layWeights(p Lowering) (Lowering, error) {
	p.weights, p.alias, p.Offsets = p.weightLayouts(), map[int]bool{}, slices.Clone(p.Offsets)
	written := map[int]int{} // how often, by the matrix's number
	for op := range p.schedule.Operations() {
		for v, write := range schedule.Accesses(op) {
			if write {
				written[v.M.ID]++
			}
		}
	}
	t := p.target(0)
	for op := range p.schedule.Operations() {
		if op, ok := op.(schedule.Pack); ok && written[op.Src.M.ID] == 0 && written[op.Dst.M.ID] == 1 && p.copies(t, op) {
			p.alias[op.Dst.M.ID] = true
			p.Offsets[op.Dst.M.ID] = int64(t.At(op.Src))
		}
	}
	return p, nil
}

// copies reports whether packing by op would copy op's source without change of type or order.
func (p *Lowering) copies(t *launch.Target, op schedule.Pack) bool {
	id := op.Dst.M.ID
	as := p.weights[id]
	return t.Element(op.Src) == t.Element(op.Dst) && op.Src.Cols == op.Src.M.Cols && op.Dst == op.Dst.M.All() &&
		p.Factors[id] == nil && p.Kept[id] == gemm.Library && (as == persistent.ByUnit && op.Trans || as == persistent.ByColumn && !op.Trans) &&
		t.At(op.Src)%launch.Alignment == 0
}

// pack returns the launch that packs op's weights in a layout.
func (e *emitter) pack(op schedule.Pack, as persistent.WeightLayout) launch.Command {
	switch {
	case as == persistent.ByLane:
		return kernels.PackFragments(e.Target, op)
	case op.Trans == (as == persistent.ByColumn):
		return pointwise.Transpose(e.Target, op.Src, op.Dst)
	}
	return pointwise.Map(e.Target, schedule.Map{Op: cell.Copy, Out: op.Dst, A: op.Src})
}

// packTogether returns one launch of several packs of few weights.
func (e *emitter) packTogether(ops []schedule.Op) launch.Command {
	var all []pointwise.Arrangement
	for _, op := range ops {
		op := op.(schedule.Pack)
		turned := op.Trans == (e.lowering.weights[op.Dst.M.ID] == persistent.ByColumn)
		all = append(all, pointwise.Arrangement{From: op.Src, To: op.Dst, Turned: turned})
	}
	return pointwise.Arrange(e.Target, all)
}
