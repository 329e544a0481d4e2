package cuda

import (
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Small operations of one kind that follow each other on a stream, and of which none waits for
// another, are one launch: before the first product, that is what a short pass mostly consists of.

// longestRun is how many operations a launch has at most.
const longestRun = 16

// A kind is one of which runs are one launch.
type kind int

const (
	others kind = iota
	packs       // of right factors, in one piece, for products whose left one is split on the way
	zeros       // of whole rows
	copies      // of whole rows
)

// kind is that of an operation.
func (b *binder) kind(op schedule.Op) kind {
	switch op := op.(type) {
	case schedule.Pack:
		if b.layout.Factors[op.Dst.M.ID] == nil && b.layout.Kept[op.Dst.M.ID] == gemm.SplitKernel && op.Src.Cols == op.Src.M.Cols && op.Src.Bytes() < 1<<32 {
			return packs
		}
	case schedule.Map:
		switch {
		case op.Op == cell.Zero && b.piece(op.Out):
			return zeros
		case op.Op == cell.Copy && b.piece(op.Out) && b.piece(op.A) && op.Out.Rows == op.A.Rows && op.Out.Cols == op.A.Cols && op.Out.M != op.A.M:
			return copies
		}
	}
	return others
}

// piece reports whether v is one piece of memory, not a large one.
func (b *binder) piece(v schedule.View) bool {
	return (v.Rows == 1 || v.Cols == v.M.Cols) && b.Element(v) == driver.Single && v.Bytes() < 1<<24
}

// A run is operations that are one launch, or the only one of a node; later ones of a run are
// of none.
type run struct {
	kind kind
	ops  []schedule.Op
}

// runsOf are those of s, by the node that each begins with.
func (b *binder) runsOf(s *schedule.Schedule) map[int]run {
	runs := map[int]run{}
	for i := 0; i < len(s.Nodes); {
		first := s.Nodes[i]
		r := run{kind: b.kind(first.Op), ops: []schedule.Op{first.Op}}
		for j := i + 1; r.kind != others && j < len(s.Nodes) && len(r.ops) < longestRun; j++ {
			n := s.Nodes[j]
			if b.kind(n.Op) != r.kind || n.Stream != first.Stream || len(n.Wait) > 0 || r.meets(n.Op) {
				break
			}
			r.ops = append(r.ops, n.Op)
		}
		runs[i] = r
		i += len(r.ops)
	}
	return runs
}

// meets reports whether op reads what one of a run's operations writes, or the other way round.
func (r run) meets(op schedule.Op) bool {
	return slices.ContainsFunc(r.ops, func(o schedule.Op) bool { return overlap(o.Reads(), op.Writes()) || overlap(o.Writes(), op.Reads()) })
}

// together are the launches of a run of two operations or more.
func (b *binder) together(r run) []launch.Command {
	if r.kind == packs {
		return gemm.PackRights(b.Target, r.ops)
	}
	return []launch.Command{pointwise.Fill(b.Target, r.ops)}
}
