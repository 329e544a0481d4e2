package cpu

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

// besides pairs products with the transpose of the same rows that follow each other, as those for the
// gradients of W and R: together they pack the rows once. It returns the node of the second by that of
// the first. Those on different streams are pairs where one team runs all nodes in program order.
func (pl *planner) besides(s *schedule.Schedule, ordered bool) map[int]int {
	pairs := map[int]int{}
	for i := 0; i+1 < len(s.Nodes); i++ {
		n, next := s.Nodes[i], s.Nodes[i+1]
		first, ok := n.Op.(schedule.Gemm)
		second, both := next.Op.(schedule.Gemm)
		if !ok || !both || !ordered && (n.Stream != next.Stream || len(next.Wait) > 0) {
			continue
		}
		if pl.packsOnce(first, second) && !conflicts(first, second) {
			pairs[i] = i + 1
			i++
		}
	}
	return pairs
}

// packsOnce reports whether products pack the same rows, which one would do for both.
func (pl *planner) packsOnce(a, b schedule.Gemm) bool {
	if !a.TransA || !b.TransA || a.A != b.A || a.Accumulate != b.Accumulate || a.B.M.Packed || b.B.M.Packed {
		return false
	}
	p, q := pl.product(a, simd.F32), pl.product(b, simd.F32)
	return pl.gemm.Packs(&p, pl.workers) && p.N%simd.StripWidth == 0 && pl.gemm.Packs(&q, pl.workers)
}
