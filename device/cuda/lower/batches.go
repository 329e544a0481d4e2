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

// Small operations of one kind that follow each other on a stream, and of which none waits for
// another, are one launch: before the first product, that is what a short pass mostly consists of.

// longestBatch is how many operations a batch has at most; those of an optimiser have no limit.
const longestBatch = 16

// A kind is one of which several operations can be one launch.
type kind int

const (
	others     kind = iota
	packs           // of right factors, in one piece, for products whose left one is split on the way
	weights         // that become as products or kernels without tensor cores read them
	zeros           // of whole rows
	copies          // of whole rows, word by word
	copiedSums      // of rows, of which the next operation is a copy
	squares         // of gradients
	updates         // of parameters
)

// optimizes reports whether k is what changes parameters. The last operation of such a batch
// launches all of it, so that those before may wait for other streams.
func (k kind) optimizes() bool { return k == squares || k == updates }

// kind is that of an operation.
func (p *Plan) kind(t *launch.Target, op schedule.Op) kind {
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

// lightWeights is how many weights are packed along with others at most: a launch of their own
// reads larger ones faster, in squares.
const lightWeights = 1 << 16

// light reports whether op packs few weights, neither as fragments nor in halves.
func (p *Plan) light(t *launch.Target, op schedule.Pack) bool {
	id := op.Dst.M.ID
	return p.Factors[id] == nil && p.Kept[id] == gemm.Library && !p.alias[id] && p.weights[id] != persistent.ByLane &&
		op.Dst == op.Dst.M.All() && op.Dst.Rows*op.Dst.Cols <= lightWeights && t.Element(op.Src) == driver.Single
}

// contiguous reports whether v is one piece of memory, not a large one.
func contiguous(t *launch.Target, v schedule.View) bool {
	return piece(v) && t.Element(v) == driver.Single
}

// words reports the same of any element, where the piece is whole words of 32 bits.
func words(t *launch.Target, v schedule.View) bool {
	return piece(v) && t.At(v)%4 == 0 && v.Rows*v.Cols*t.Element(v).Bytes()%4 == 0
}

func piece(v schedule.View) bool { return (v.Rows == 1 || v.Cols == v.M.Cols) && v.Bytes() < 1<<24 }

// A batch is operations that are one launch, or the only one of a node; later ones of a batch
// are of none.
type batch struct {
	kind  kind
	first int // node
	ops   []schedule.Op
}

// at is the node that launches the batch.
func (r batch) at() int {
	if r.kind.optimizes() {
		return r.first + len(r.ops) - 1
	}
	return r.first
}

// batchOperations finds which operations share a launch.
func batchOperations(p Plan) (Plan, error) {
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

// joins reports whether node j, which comes next, can be launched along with a batch.
func joins(p *Plan, t *launch.Target, r batch, j int) bool {
	n, first := p.schedule.Nodes[j], p.schedule.Nodes[r.first]
	if p.kind(t, n.Op) != r.kind || n.Stream != first.Stream || r.meets(n.Op) {
		return false
	}
	if r.kind.optimizes() {
		return !p.awaited[j-1] && !r.writes(n.Op) // the one before would be launched later
	}
	return len(r.ops) < longestBatch && (r.kind == copies || alike(t, first.Op, n.Op)) && len(n.Wait) == 0
}

// copiesSum reports whether a sum of rows can write what the next operation copies of it:
// gradients of biases that are the same, above all.
func (p *Plan) copiesSum(t *launch.Target, first, next schedule.Node) bool {
	sum, sums := first.Op.(schedule.SumRows)
	op, maps := next.Op.(schedule.Map)
	return sums && maps && p.kind(t, op) == copies && op.A == sum.Out && contiguous(t, sum.Out) && next.Stream == first.Stream && len(next.Wait) == 0
}

// alike reports whether what two operations write is stored alike.
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

// together are the launches of a batch of two operations or more.
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
		if e.added[e.now] { // along with a product's
			return []launch.Command{pointwise.Map(e.Target, r.ops[1].(schedule.Map))}
		}
		return e.sumRows(r.ops[0].(schedule.SumRows), e.At(r.ops[1].(schedule.Map).Out), stream)
	}
	return []launch.Command{pointwise.Fill(e.Target, r.ops)}
}

// each has all of ops be of one type.
func each[O schedule.Op](ops []schedule.Op) (list []O) {
	for _, op := range ops {
		list = append(list, op.(O))
	}
	return list
}

// sumRows adds up rows, and leaves the sums in copy, too, unless that is 0.
func (e *emitter) sumRows(op schedule.SumRows, copy driver.Pointer, stream int) []launch.Command {
	if e.summed[e.now] {
		return []launch.Command{pointwise.SumOfParts(e.Target, op, e.sums(stream), copy)}
	}
	return pointwise.SumRows(e.Target, op, e.scratch(stream), copy)
}
