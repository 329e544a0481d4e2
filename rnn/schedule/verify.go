package schedule

import (
	"fmt"
	"math/bits"
)

// Verify checks every pair of nodes of which one writes what the other touches: streams and waits
// must order them. It shares no code with the derivation of the waits, which it tests. It is
// quadratic.
func Verify(s *Schedule) error {
	words := (len(s.Nodes) + 63) / 64
	before := make([][]uint64, len(s.Nodes)) // per node, the set of nodes known to precede it
	last := map[int]int{}
	reads, writes := make([][]View, len(s.Nodes)), make([][]View, len(s.Nodes))
	for i, n := range s.Nodes {
		reads[i], writes[i] = n.Op.Reads(), n.Op.Writes()
		set := make([]uint64, words)
		add := func(j int) {
			set[j/64] |= 1 << (j % 64)
			for w, b := range before[j] {
				set[w] |= b
			}
		}
		if j, ok := last[n.Stream]; ok {
			add(j)
		}
		for _, j := range n.Wait {
			if j < 0 || j >= i {
				return fmt.Errorf("schedule: node %d (%v) waits for node %d, which does not precede it", i, n.Op, j)
			}
			add(j)
		}
		before[i], last[n.Stream] = set, i
		for w, b := range set {
			for free := ^b; free != 0; free &= free - 1 {
				j := w*64 + bits.TrailingZeros64(free)
				if j >= i {
					break
				}
				if meet(writes[j], reads[i]) || meet(reads[j], writes[i]) || meet(writes[j], writes[i]) {
					return fmt.Errorf("schedule: node %d (%v) does not wait for node %d (%v)", i, n.Op, j, s.Nodes[j].Op)
				}
			}
		}
	}
	return nil
}

func meet(vs, ws []View) bool {
	for _, v := range vs {
		for _, w := range ws {
			if v.M != w.M {
				continue
			}
			apart := v.Row+v.Rows <= w.Row || w.Row+w.Rows <= v.Row || v.Col+v.Cols <= w.Col || w.Col+w.Cols <= v.Col
			if !apart {
				return true
			}
		}
	}
	return false
}
