package lower

import (
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Small independent operations of one kind that follow each other on a stream share one launch. A
// short pass mostly consists of them before its first product.

// longestBatch is how many operations a batch has at most; an optimiser's batches have no limit.
const longestBatch = 16

// Operations of one kind, other than others, may share a launch.
type kind int

const (
	others     kind = iota
	packs           // of contiguous right factors for the split-fp16 kernel
	weights         // packed as products or kernels without tensor cores read them
	zeros           // of whole rows
	copies          // of whole rows, in 32-bit words
	copiedSums      // a sum of rows, whose result the next operation copies
	squares         // of gradients
	updates         // of parameters
)

// optimizes reports whether k is an optimiser's step. The last operation of such a batch launches
// all of it, so that earlier ones may wait for other streams.
func (k kind) optimizes() bool { return k == squares || k == updates }

// kind returns the kind of an operation.
func (p *Lowering) kind(t *launch.Target, op schedule.Op) kind {
	switch op := op.(type) {
	case schedule.Squares:
		return squares
	case schedule.Update:
		return updates
	case schedule.Pack:
		if p.Factors[op.Dst.M.ID] == nil && p.Kept[op.Dst.M.ID] == gemm.SplitKernel && op.Src.Cols == op.Src.M.Cols && op.Src.Bytes() < 1<<32 {
			return packs
		}
		if p.light(t, op) {
			return weights
		}
	case schedule.Map:
		switch {
		case op.Op == cell.Zero && contiguous(t, op.Out):
			return zeros
		case op.Op == cell.Copy && words(t, op.Out) && words(t, op.A) && t.Element(op.Out) == t.Element(op.A) &&
			op.Out.Rows == op.A.Rows && op.Out.Cols == op.A.Cols && !op.Out.Overlaps(op.A):
			return copies
		}
	}
	return others
}

// lightWeights is how many weights a batched pack has at most. A launch of its own packs a larger
// matrix faster, in square tiles.
const lightWeights = 1 << 16

// light reports whether op packs few weights, neither as fragments nor as halves.
func (p *Lowering) light(t *launch.Target, op schedule.Pack) bool {
	id := op.Dst.M.ID
	return p.Factors[id] == nil && p.Kept[id] == gemm.Library && !p.alias[id] && p.weights[id] != persistent.ByLane &&
		op.Dst == op.Dst.M.All() && op.Dst.Rows*op.Dst.Cols <= lightWeights && t.Element(op.Src) == driver.Single
}

// contiguous reports whether v is one stretch of memory, in single precision and not large.
func contiguous(t *launch.Target, v schedule.View) bool {
	return piece(v) && t.Element(v) == driver.Single
}

// words reports whether v, of any element type, is one stretch of whole 32-bit words, not large.
func words(t *launch.Target, v schedule.View) bool {
	return piece(v) && t.At(v)%4 == 0 && v.Rows*v.Cols*t.Element(v).Bytes()%4 == 0
}

func piece(v schedule.View) bool { return (v.Rows == 1 || v.Cols == v.M.Cols) && v.Bytes() < 1<<24 }

// A batch is operations that share one launch; most batches have one operation. Only the node that
// launches a batch refers to it.
type batch struct {
	kind  kind
	first int // node
	ops   []schedule.Op
}

// at returns the node that launches the batch.
func (r batch) at() int {
	if r.kind.optimizes() {
		return r.first + len(r.ops) - 1
	}
	return r.first
}

// batchOperations finds which operations share a launch.
func batchOperations(p Lowering) (Lowering, error) {
	p.batches = map[int]batch{}
	t, nodes := p.target(0), p.schedule.Nodes
	for i := 0; i < len(nodes); {
		first := nodes[i]
		r := batch{kind: p.kind(t, first.Op), first: i, ops: []schedule.Op{first.Op}}
		for j := i + 1; r.kind != others && j < len(nodes) && joins(&p, t, r, j); j++ {
			r.ops = append(r.ops, nodes[j].Op)
		}
		if i+1 < len(nodes) && p.copiesSum(t, first, nodes[i+1]) {
			r = batch{kind: copiedSums, first: i, ops: []schedule.Op{first.Op, nodes[i+1].Op}}
		}
		p.batches[r.at()] = r
		i += len(r.ops)
	}
	return p, nil
}

// joins reports whether node j, which comes next, can join the launch of batch r.
func joins(p *Lowering, t *launch.Target, r batch, j int) bool {
	n, first := p.schedule.Nodes[j], p.schedule.Nodes[r.first]
	if p.kind(t, n.Op) != r.kind || n.Stream != first.Stream || r.meets(n.Op) {
		return false
	}
	if r.kind.optimizes() {
		return !p.awaited[j-1] && !r.writes(n.Op) // else the previous operation would be launched too late
	}
	return len(r.ops) < longestBatch && (r.kind == copies || alike(t, first.Op, n.Op)) && len(n.Wait) == 0
}

// copiesSum reports whether one launch can sum rows and also write the copy that the next operation
// makes: two biases with the same gradient, above all.
func (p *Lowering) copiesSum(t *launch.Target, first, next schedule.Node) bool {
	sum, sums := first.Op.(schedule.SumRows)
	op, maps := next.Op.(schedule.Map)
	return sums && maps && p.kind(t, op) == copies && op.A == sum.Out && contiguous(t, sum.Out) && next.Stream == first.Stream && len(next.Wait) == 0
}

// alike reports whether the results of two operations have the same element type.
func alike(t *launch.Target, a, b schedule.Op) bool {
	return t.Element(a.Writes()[0]) == t.Element(b.Writes()[0])
}

// meets reports whether op reads what one of a batch's operations writes, or the other way round.
func (r batch) meets(op schedule.Op) bool {
	return slices.ContainsFunc(r.ops, func(o schedule.Op) bool { return overlap(o.Reads(), op.Writes()) || overlap(o.Writes(), op.Reads()) })
}

// writes reports whether op writes what one of a batch's operations writes.
func (r batch) writes(op schedule.Op) bool {
	return slices.ContainsFunc(r.ops, func(o schedule.Op) bool { return overlap(o.Writes(), op.Writes()) })
}

// together returns the launches of a batch of two or more operations.
func (e *emitter) together(r batch, stream int) []launch.Command {
	switch r.kind {
	case packs:
		return gemm.PackRights(e.Target, r.ops, largest(e).At)
	case weights:
		return []launch.Command{e.packTogether(r.ops)}
	case squares:
		return pointwise.Squares(e.Target, each[schedule.Squares](r.ops))
	case updates:
		return pointwise.Updates(e.Target, each[schedule.Update](r.ops), largest(e))
	case copiedSums:
		if e.added[e.now] { // the launch of a product has formed the sum
			return []launch.Command{pointwise.Map(e.Target, r.ops[1].(schedule.Map))}
		}
		return e.sumRows(r.ops[0].(schedule.SumRows), e.At(r.ops[1].(schedule.Map).Out), stream)
	}
	return []launch.Command{pointwise.Fill(e.Target, r.ops)}
}

// each converts operations of one type.
func each[O schedule.Op](ops []schedule.Op) (list []O) {
	for _, op := range ops {
		list = append(list, op.(O))
	}
	return list
}

// sumRows adds up rows. Unless copy is 0, it leaves the sums there as well.
func (e *emitter) sumRows(op schedule.SumRows, copy driver.Pointer, stream int) []launch.Command {
	if e.summed[e.now] {
		return []launch.Command{pointwise.SumOfParts(e.Target, op, e.sums(stream), copy)}
	}
	return pointwise.SumRows(e.Target, op, e.scratch(stream), copy)
}
