package cpu

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

// besides pairs products with the transpose of the same rows that follow each other, as those for the
// gradients of W and R: together they pack the rows once. It returns the node of the second by that of
// the first. Those on different streams are pairs where one team runs all nodes in program order.
func (d *Device) besides(s *schedule.Schedule, ordered bool) map[int]int {
	pairs := map[int]int{}
	for i := 0; i+1 < len(s.Nodes); i++ {
		n, next := s.Nodes[i], s.Nodes[i+1]
		first, ok := n.Op.(schedule.Gemm)
		second, both := next.Op.(schedule.Gemm)
		if !ok || !both || !ordered && (n.Stream != next.Stream || len(next.Wait) > 0) {
			continue
		}
		if d.packsOnce(first, second) && !conflicts(first, second) {
			pairs[i] = i + 1
			i++
		}
	}
	return pairs
}

// packsOnce reports whether products pack the same rows, which one would do for both.
func (d *Device) packsOnce(a, b schedule.Gemm) bool {
	if !a.TransA || !b.TransA || a.A != b.A || a.Accumulate != b.Accumulate || a.B.M.Packed || b.B.M.Packed {
		return false
	}
	p, q := d.product(a, simd.F32), d.product(b, simd.F32)
	return d.gemm.Packs(&p, d.workers) && p.N%simd.StripWidth == 0 && d.gemm.Packs(&q, d.workers)
}
