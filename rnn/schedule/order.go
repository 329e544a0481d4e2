package schedule

import "slices"

// access is one past use of a matrix.
type access struct {
	node  int
	view  View
	write bool
}

// derive fills in the waits: each node waits for the latest node of every other
// stream that it conflicts with, unless that order already follows.
//
// The history of a matrix is kept by row bands, as tall as its views allow, and
// stays short because each access stands for what it makes redundant: a write
// for all it covers, a read for the earlier reads of its own stream. So the
// time is linear in the number of views, times the accesses alive in a band.
func derive(s *Schedule) {
	if s.Streams == 1 {
		return
	}
	band := bands(s)
	history := make([][][]access, len(s.Matrices)) // per matrix and band
	for i, m := range s.Matrices {
		history[i] = make([][]access, m.Rows/band[i])
	}
	clocks := make([]int, len(s.Nodes)*s.Streams) // per node, the last node known done on each stream
	clock := func(i int) []int { return clocks[i*s.Streams : (i+1)*s.Streams] }
	last := none(s.Streams) // per stream, its last node
	need := none(s.Streams) // per stream, the latest conflicting node
	for i := range s.Nodes {
		n := &s.Nodes[i]
		now := clock(i)
		if p := last[n.Stream]; p >= 0 {
			copy(now, clock(p))
		} else {
			copy(now, none(s.Streams))
		}
		for v, write := range accesses(n.Op) {
			size := band[v.M.ID]
			for b := v.Row / size; b*size < v.Row+v.Rows; b++ {
				past := history[v.M.ID][b]
				kept := past[:0]
				for _, a := range past {
					t := s.Nodes[a.node].Stream
					if a.node != i && (a.write || write) && a.view.Overlaps(v) {
						need[t] = max(need[t], a.node)
					}
					if redundant := v.covers(a.view) && (write || !a.write && t == n.Stream); !redundant {
						kept = append(kept, a)
					}
				}
				history[v.M.ID][b] = append(kept, access{i, View{v.M, b * size, v.Col, size, v.Cols}, write})
			}
		}
		for { // latest first: it may imply the others
			j := slices.Max(need)
			if j < 0 {
				break
			}
			t := s.Nodes[j].Stream
			need[t] = -1
			if t == n.Stream || j <= now[t] {
				continue
			}
			n.Wait = append(n.Wait, j)
			for u, k := range clock(j) {
				now[u] = max(now[u], k)
			}
		}
		now[n.Stream] = i
		last[n.Stream] = i
	}
}

// bands returns, per matrix, the tallest band that no view cuts.
func bands(s *Schedule) []int {
	size := make([]int, len(s.Matrices))
	for i, m := range s.Matrices {
		size[i] = m.Rows
	}
	for _, n := range s.Nodes {
		for v := range accesses(n.Op) {
			size[v.M.ID] = gcd(gcd(size[v.M.ID], v.Row), v.Rows)
		}
	}
	return size
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func none(n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = -1
	}
	return v
}
