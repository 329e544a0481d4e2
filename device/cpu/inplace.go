package cpu

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

// asRun returns s as so many teams run it: with inPlace if there is one team and no 16-bit weights.
func asRun(s *schedule.Schedule, f simd.Format, teams int) *schedule.Schedule {
	if teams == 1 && f == simd.F32 {
		return inPlace(s)
	}
	return s
}

// inPlace returns s without the packing of weights that a run does for one product alone, as in
// training, whose runs change the weights. That product then reads the weights as they are stored.
// It packs them block by block as it goes, and the blocks stay in a cache. It is for schedules that
// run in program order.
func inPlace(s *schedule.Schedule) *schedule.Schedule {
	drop := map[int]int{} // node of a packing to node of its product
	for i, n := range s.Nodes {
		if pack, ok := n.Op.(schedule.Pack); ok {
			if j := onlyProduct(s, pack, i); j >= 0 {
				drop[i] = j
			}
		}
	}
	if len(drop) == 0 {
		return s
	}
	out := *s
	out.Nodes = make([]schedule.Node, 0, len(s.Nodes)-len(drop))
	place := make([]int, len(s.Nodes)) // of each node in out
	products := map[int]schedule.Pack{}
	for i, j := range drop {
		products[j] = s.Nodes[i].Op.(schedule.Pack)
	}
	for i, n := range s.Nodes {
		place[i] = len(out.Nodes)
		if _, ok := drop[i]; ok {
			continue
		}
		if pack, ok := products[i]; ok {
			g := n.Op.(schedule.Gemm)
			g.B, g.TransB = pack.Src, pack.Trans
			n.Op = g
		}
		var wait []int
		for _, w := range n.Wait {
			if _, dropped := drop[w]; !dropped {
				wait = append(wait, place[w])
			}
		}
		n.Wait = wait
		out.Nodes = append(out.Nodes, n)
	}
	return &out
}

// onlyProduct returns the node of the only product that reads what node i packs, if it could as
// well read the weights themselves; otherwise -1.
func onlyProduct(s *schedule.Schedule, pack schedule.Pack, i int) int {
	at := -1
	for j, n := range s.Nodes {
		for v, wrote := range schedule.Accesses(n.Op) {
			if j == i || v.M != pack.Dst.M && !(wrote && v.M == pack.Src.M) {
				continue
			}
			g, ok := n.Op.(schedule.Gemm)
			switch {
			case v.M == pack.Src.M: // the weights may change only after the product
				if at < 0 {
					return -1
				}
			case !ok || at >= 0 || j < i || v != g.B || v != pack.Dst:
				return -1
			default:
				at = j
			}
		}
	}
	return at
}
