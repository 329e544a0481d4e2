// Package topology reads the topology of a host's processors: cores and their hardware threads, the
// caches that cores share, NUMA nodes, sockets, and which of them this process may use.
//
// Read takes a file system, so that tests run on trees of any machine. The package knows neither
// workers nor schedules. It says which processors to use, and which of them are near each other.
package topology

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Processor is a hardware thread that this process may use. Cores, clusters, nodes and sockets are
// named by the lowest number of a processor in them, whether or not this process may use that one.
type Processor struct {
	ID      int // as the system numbers it
	Core    int
	Thread  int // its number, from 0, among the threads of its core that this process may use
	Cluster int // cores that share the last cache
	Node    int // memory node (NUMA)
	Socket  int
	Speed   int // relative speed of its core in a hybrid, in the system's own unit; 0: unknown
}

// A Topology is the part of a host that this process may use.
type Topology struct {
	// Processors are in the order in which workers should use them: first one thread of each fast
	// core, then of slow cores, then the further threads of cores. Cores of a cluster are adjacent,
	// and so are those of a node and of a socket; the fullest come first.
	Processors []Processor

	Quota  float64 // processor time that a control group allows, in processors; 0: no limit
	Cache  int     // bytes of the last cache of a cluster; 0: unknown
	Level  int     // level of that cache
	Silent bool    // the system gives no information: each processor counts as a core, and all as one cluster
}

// Default returns how many workers to start: one per processor, but no more than a quota allows.
// Workers that spin beyond a quota are stopped for milliseconds.
func (t *Topology) Default() int {
	n := len(t.Processors)
	if t.Quota > 0 {
		n = min(n, int(t.Quota))
	}
	return max(1, n)
}

// Seats returns the processors of n workers, as indices in Processors. It takes those to use first,
// ordered so that neighbours share as much as possible. It returns nil if there are more workers
// than processors.
func (t *Topology) Seats(n int) []int {
	if n > len(t.Processors) {
		return nil
	}
	seats := make([]int, n)
	for i := range seats {
		seats[i] = i
	}
	place := make(map[int]int, n) // core to index of its first thread
	for i, p := range t.Processors {
		if p.Thread == 0 {
			place[p.Core] = i
		}
	}
	slices.SortStableFunc(seats, func(a, b int) int {
		return cmp.Compare(place[t.Processors[a].Core], place[t.Processors[b].Core])
	})
	return seats
}

// Clusters returns the sizes of the groups of n workers that share a cache, in the order of their
// seats. Without seats all workers are one group.
func (t *Topology) Clusters(n int) []int {
	var sizes []int
	last := -1
	for _, i := range t.Seats(n) {
		if c := t.Processors[i].Cluster; c != last || len(sizes) == 0 {
			sizes, last = append(sizes, 0), c
		}
		sizes[len(sizes)-1]++
	}
	if sizes == nil && n > 0 {
		sizes = []int{n}
	}
	return sizes
}

// Part returns one replica's part of t: whole cores, near each other, if there are enough. The
// quota is divided evenly.
func (t *Topology) Part(rank, replicas int) *Topology {
	seats := t.Seats(len(t.Processors))
	seats = seats[len(seats)*rank/replicas : len(seats)*(rank+1)/replicas]
	part := *t
	part.Processors = make([]Processor, len(seats))
	for i, seat := range seats {
		part.Processors[i] = t.Processors[seat]
	}
	part.Quota /= float64(replicas)
	part.sort()
	return &part
}

// of returns the number of distinct values of f.
func (t *Topology) of(f func(Processor) int) int {
	seen := map[int]bool{}
	for _, p := range t.Processors {
		seen[f(p)] = true
	}
	return len(seen)
}

// Cores returns the number of cores.
func (t *Topology) Cores() int { return t.of(func(p Processor) int { return p.Core }) }

// String returns a line such as "2 sockets, 2 NUMA nodes, 64 cores with 2 threads each, 8 clusters
// of 8 cores that share 32 MiB of L3".
func (t *Topology) String() string {
	cores := t.Cores()
	if cores == 0 {
		return "unknown"
	}
	var parts []string
	several := func(n int, what string) {
		if n > 1 {
			parts = append(parts, fmt.Sprintf("%d %ss", n, what))
		}
	}
	several(t.of(func(p Processor) int { return p.Socket }), "socket")
	several(t.of(func(p Processor) int { return p.Node }), "NUMA node")
	parts = append(parts, t.cores(cores))
	if fast := t.fast(); fast > 0 {
		parts[len(parts)-1] += fmt.Sprintf(", %d of them fast", fast)
	}
	if text := t.clusters(); text != "" {
		parts = append(parts, text)
	}
	if t.Quota > 0 {
		parts = append(parts, fmt.Sprintf("a quota of %.4g processors", t.Quota))
	}
	if t.Silent {
		parts = append(parts, "no more is known")
	}
	return strings.Join(parts, ", ")
}

// cores describes n cores and their threads.
func (t *Topology) cores(n int) string {
	text := fmt.Sprintf("%d cores", n)
	if n == 1 {
		text = "1 core"
	}
	switch threads := len(t.Processors); {
	case threads == n:
		return text
	case threads%n == 0 && !slices.ContainsFunc(t.Processors, func(p Processor) bool { return p.Thread >= threads/n }):
		return fmt.Sprintf("%s with %d threads each", text, threads/n)
	default:
		return fmt.Sprintf("%s with %d threads in all", text, threads)
	}
}

// fast returns how many cores are within a tenth of the fastest, if others are slower; 0: all are
// alike.
func (t *Topology) fast() int {
	most, least := 0, math.MaxInt
	for _, p := range t.Processors {
		most, least = max(most, p.Speed), min(least, p.Speed)
	}
	if 10*most < 11*least || most == 0 {
		return 0
	}
	n := 0
	for _, p := range t.Processors {
		if p.Thread == 0 && 10*p.Speed >= 9*most {
			n++
		}
	}
	return n
}

// clusters describes which cores share a cache, or returns "".
func (t *Topology) clusters() string {
	cores := map[int]map[int]bool{} // of each cluster
	for _, p := range t.Processors {
		if cores[p.Cluster] == nil {
			cores[p.Cluster] = map[int]bool{}
		}
		cores[p.Cluster][p.Core] = true
	}
	least, most := math.MaxInt, 0
	for _, c := range cores {
		least, most = min(least, len(c)), max(most, len(c))
	}
	cache := ""
	if t.Cache > 0 {
		cache = fmt.Sprintf(" that share %s of L%d", size(t.Cache), t.Level)
	}
	switch {
	case t.Silent || len(cores) == 1 && (most == 1 || cache == ""):
		return ""
	case len(cores) == 1:
		return fmt.Sprintf("one cluster%s", strings.Replace(cache, "share", "shares", 1))
	case most == 1:
		return ""
	case least == most:
		return fmt.Sprintf("%d clusters of %d cores%s", len(cores), most, cache)
	default:
		return fmt.Sprintf("%d clusters of %d to %d cores%s", len(cores), least, most, cache)
	}
}

// size formats a number of bytes.
func size(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
