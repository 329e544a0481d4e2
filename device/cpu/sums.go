package cpu

import "rnnbench/rnn/schedule"

// sumsWithin is how far behind a product a sum of its rows may be.
const sumsWithin = 8

// sums pairs sums of rows with the products that multiply with the transpose of the same rows: while a
// product packs them it can sum them, which saves reading them from memory once more. It returns the node
// of the sum by that of the product.
func sums(s *schedule.Schedule) map[int]int {
	pairs := map[int]int{}
	for j, n := range s.Nodes {
		op, ok := n.Op.(schedule.SumRows)
		if !ok || len(n.Wait) > 0 {
			continue
		}
		for i := j - 1; i >= max(0, j-sumsWithin); i-- {
			before := s.Nodes[i]
			g, ok := before.Op.(schedule.Gemm)
			if _, taken := pairs[i]; ok && !taken && before.Stream == n.Stream && g.TransA && g.A == op.A && g.Accumulate == op.Accumulate {
				pairs[i] = j
				break
			}
			if before.Stream == n.Stream && len(before.Wait) > 0 || conflicts(before.Op, op) {
				break
			}
		}
	}
	return pairs
}

// conflicts reports whether op could tell if moved, which comes after it, ran before it or meanwhile.
func conflicts(op, moved schedule.Op) bool {
	for v, wrote := range schedule.Accesses(op) {
		for w, writes := range schedule.Accesses(moved) {
			if v.M == w.M && (wrote || writes) {
				return true
			}
		}
	}
	return false
}

// done is the work of an operation that another has done.
type done struct{}

func (done) share(int, int, *scratch) {}
