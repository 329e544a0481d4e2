package cpu

import (
	"rnnbench/device/allreduce"
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A planner decides how workers share the operations of a schedule, and how much memory that takes.
// It depends only on the number of workers and on their kernels.
type planner struct {
	workers int
	kernels *simd.Kernels
	gemm    *gemm.Engine
	group   *allreduce.Group // replicas that train together; nil: there is one

	crew
}

// forkFLOPs is the least work, in operations, that is worth handing to a helper: a hand-over and
// back takes about a quarter of a microsecond.
const forkFLOPs = 20_000

// Large operations are cut into more pieces than there are workers. Each worker begins with its own
// pieces, whose data its caches hold, and then helps those that are behind, since processors are
// rarely equally fast. Products that pack their operands as they go are cut once per worker, since
// more pieces would mean more packing.
const (
	stealFLOPs  = 40 * forkFLOPs
	stealPieces = 8              // pieces per worker of a cell
	pieceFLOPs  = 80 * forkFLOPs // least work of a product's piece
)

// pieces returns how many pieces of op each worker of a team gets, with packed weights in format f;
// 0: op is not shared.
func (pl *planner) pieces(op schedule.Op, f simd.Format) int {
	c := cost(op)
	switch op := op.(type) {
	case schedule.Gemm:
		if c >= stealFLOPs && op.B.M.Packed && !op.TransA {
			p := pl.product(op, f)
			return max(1, min(ceil(pl.gemm.Pieces(&p, pl.workers), pl.workers), int(c/pieceFLOPs)/pl.workers))
		}
	case schedule.Cell, schedule.CellBackward:
		if c >= stealFLOPs {
			return max(1, min(stealPieces, int(c/forkFLOPs)/pl.workers))
		}
	case schedule.AllReduce: // it waits for other processes
		return 0
	case schedule.Persistent, schedule.PersistentBackward: // its workers meet at each step
		c = costPerStep(op)
	}
	if c >= forkFLOPs {
		return 1
	}
	return 0
}

func ceil(a, b int) int { return (a + b - 1) / b }

// cost estimates the work of op, in operations of a product. Point-wise operations are bound by
// memory and count for more.
func cost(op schedule.Op) int64 {
	if g, ok := op.(schedule.Gemm); ok {
		return g.FLOPs() + 4*schedule.Bytes(op)
	}
	return 4*op.FLOPs() + 2*schedule.Bytes(op)
}

// costPerStep returns the cost of a step of a persistent operation or its gradient.
func costPerStep(op schedule.Op) int64 {
	switch s := op.(type) {
	case schedule.Persistent:
		return cost(op) / int64(s.Steps)
	case schedule.PersistentBackward:
		return cost(op) / int64(s.Steps)
	}
	return 0
}

// teams returns the number of teams. Each stream has workers of its own if operations are so small
// that splitting them costs more than it saves. The same holds if the weights of a persistent
// operation fit a worker's cache, since bands would only add meetings.
func (pl *planner) teams(s *schedule.Schedule, f simd.Format, k knob.Params) int {
	if n := k["teams"]; n > 0 {
		return n
	}
	most := min(computing(s), pl.workers/max(1, k["bands"]))
	if most <= 1 {
		return 1
	}
	if n := pl.persistentWeights(s, f); n > 0 {
		if l2 := gemm.DetectL2(); n <= l2/2 {
			return most
		}
		return 1
	}
	var sum int64
	for _, n := range s.Nodes {
		sum += cost(n.Op)
	}
	if n := int64(len(s.Nodes)); n > 0 && sum/n < teamFLOPs {
		return most
	}
	return 1
}

// teamFLOPs is the mean work of operations below which streams are served side
// by side.
const teamFLOPs = 10 * forkFLOPs

// first returns the first worker of a team, if there are so many teams.
func (pl *planner) first(team, teams int) int { return team * pl.workers / teams }
