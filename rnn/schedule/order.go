package schedule

import (
	"slices"
	"unsafe"
)

// access is one past use of a band of a matrix: all its rows, and these columns.
type access struct {
	node     int32
	from, to int32 // columns
	write    bool
}

// derive fills in the waits: each node waits for the latest node of every other
// stream that it conflicts with, unless that order already follows.
//
// The history of a matrix is kept by row bands, as tall as its views allow. It stays short because
// each access replaces those that it makes redundant: a write replaces all that it covers, and a
// read the earlier reads of its own stream. So the time is linear in the number of views, times the
// accesses alive in a band.
func derive(s *Schedule) {
	if s.Streams == 1 {
		return
	}
	band := bands(s)
	history := make([][][]access, len(s.Matrices)) // per matrix and band
	for i, m := range s.Matrices {
		history[i] = make([][]access, m.Rows/band[i])
	}
	clocks := make([]int32, len(s.Nodes)*s.Streams) // per node, the last node known done on each stream
	clock := func(i int) []int32 { return clocks[i*s.Streams : (i+1)*s.Streams] }
	nobody := none[int32](s.Streams)
	last := none[int](s.Streams) // per stream, its last node
	need := none[int](s.Streams) // per stream, the latest conflicting node
	for i := range s.Nodes {
		n := &s.Nodes[i]
		now := clock(i)
		if p := last[n.Stream]; p >= 0 {
			copy(now, clock(p))
		} else {
			copy(now, nobody)
		}
		for v, write := range Accesses(n.Op) {
			size, from, to := band[v.M.ID], int32(v.Col), int32(v.Col+v.Cols)
			for b := v.Row / size; b*size < v.Row+v.Rows; b++ {
				past := history[v.M.ID][b]
				kept := past[:0]
				for _, a := range past {
					t := s.Nodes[a.node].Stream
					if int(a.node) != i && (a.write || write) && a.from < to && from < a.to {
						need[t] = max(need[t], int(a.node))
					}
					covered := from <= a.from && a.to <= to
					if redundant := covered && (write || !a.write && t == n.Stream); !redundant {
						kept = append(kept, a)
					}
				}
				history[v.M.ID][b] = append(kept, access{int32(i), from, to, write})
			}
		}
		for { // latest first: it may imply the others
			j := slices.Max(need)
			if j < 0 {
				break
			}
			t := s.Nodes[j].Stream
			need[t] = -1
			if t == n.Stream || j <= int(now[t]) {
				continue
			}
			n.Wait = append(n.Wait, j)
			for u, k := range clock(j) {
				now[u] = max(now[u], k)
			}
		}
		now[n.Stream] = int32(i)
		last[n.Stream] = i
	}
}

// Clocks is the number of bytes that derive holds about nodes while it runs.
func (s *Schedule) Clocks() int64 {
	if s.Streams == 1 {
		return 0
	}
	return int64(unsafe.Sizeof(int32(0))) * int64(s.Streams) * int64(len(s.Nodes))
}

// bands returns, per matrix, the tallest band that no view cuts.
func bands(s *Schedule) []int {
	size := make([]int, len(s.Matrices))
	for i, m := range s.Matrices {
		size[i] = m.Rows
	}
	for _, n := range s.Nodes {
		for v := range Accesses(n.Op) {
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

func none[T int | int32](n int) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = -1
	}
	return v
}
