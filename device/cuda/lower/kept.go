package lower

import (
	"slices"

	"rnnbench/rnn/schedule"
)

// keepProducts finds which products fused with cells must be written to memory: those that
// something else may read before they are formed anew.
func keepProducts(p Lowering) (Lowering, error) {
	p.keep = map[int]bool{}
	var at [][]int
	for i, fused := range p.Fused {
		if !fused {
			continue
		}
		if at == nil {
			at = touched(p.schedule)
		}
		p.keep[i] = !overwritten(p.schedule, at, i)
	}
	return p, nil
}

// overwritten reports whether the next operation that touches the product of node i, after its
// cell, forms it anew.
func overwritten(s *schedule.Schedule, touched [][]int, i int) bool {
	c := s.Nodes[i].Op.(schedule.Gemm).C
	at := touched[c.M.ID]
	next, _ := slices.BinarySearch(at, i+2)
	if next == len(at) {
		return false
	}
	g, ok := s.Nodes[at[next]].Op.(schedule.Gemm)
	return ok && g.C == c && !g.Accumulate && g.A.M != c.M && g.B.M != c.M
}

// touched lists, per matrix, the nodes that read or write it, in order.
func touched(s *schedule.Schedule) [][]int {
	at := make([][]int, len(s.Matrices))
	for i, n := range s.Nodes {
		for v := range schedule.Accesses(n.Op) {
			if all := at[v.M.ID]; len(all) == 0 || all[len(all)-1] != i {
				at[v.M.ID] = append(all, i)
			}
		}
	}
	return at
}
