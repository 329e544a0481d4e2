package cpu

import "rnnbench/rnn/schedule"

// sumsWithin is how many nodes after a product a sum of its rows may be.
const sumsWithin = 8

// sums pairs sums of rows with products that multiply with the transpose of the same rows. The
// product sums the rows as it packs them, which saves reading them from memory again. The result
// maps the product's node to the sum's.
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

// conflicts reports whether moved, which comes after op, may not run before it or at the same time.
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

// absorbed is the work of an operation that runs as part of another one.
type absorbed struct{}

func (absorbed) share(int, int, *scratch) {}
