package cpu

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

// packPairs finds pairs of adjacent products that multiply with the transpose of the same rows, such
// as those for the gradients of W and R. As a pair they pack the rows once. It maps the node of the
// first to that of the second. If one team runs all nodes in program order, the two may be on
// different streams.
func (pl *planner) packPairs(s *schedule.Schedule, ordered bool) map[int]int {
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

// packsOnce reports whether a and b pack the same rows, so that packing once serves both.
func (pl *planner) packsOnce(a, b schedule.Gemm) bool {
	if !a.TransA || !b.TransA || a.A != b.A || a.Accumulate != b.Accumulate || a.B.M.Packed || b.B.M.Packed {
		return false
	}
	p, q := pl.product(a, simd.F32), pl.product(b, simd.F32)
	return pl.gemm.Packs(&p, pl.workers) && p.N%simd.StripWidth == 0 && pl.gemm.Packs(&q, pl.workers)
}
