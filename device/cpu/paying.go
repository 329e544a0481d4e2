package cpu

import "rnnbench/rnn/schedule"

// The cost of sharing an operation among many workers. The unit is the time that two workers take
// to hand it over and to meet again, which was measured on two cores. The factor for more workers
// is a model: see barrier.

// farMoves is the time of moving a line between clusters, relative to one within a cluster. On
// processors with several clusters or sockets, it is two to four.
const farMoves = 2

// moves returns the time that n workers take to meet, relative to two. Each arrival moves a line to
// the next worker of a group, and each group moves one to the next group.
func moves(clusters []int, n int) float64 {
	if n < 2 {
		return 0
	}
	b := newBarrier(clusters)
	groups, largest := int(b.group[n-1])+1, 0
	for i := range groups {
		largest = max(largest, min(b.starts[i+1], n)-b.starts[i])
	}
	if groups == 1 {
		return float64(largest) / 2
	}
	far := 1.0
	if n > clusters[0] {
		far = farMoves
	}
	return (float64(largest) + far*float64(groups)) / 2
}

// A crew is a cost model of sharing operations among workers.
type crew struct {
	meetings  []float64 // time of a meeting by number of workers, relative to two; empty: unknown
	handovers []float64 // time of a hand-over by number of workers, in operations of a product
}

// newCrew returns the model for so many workers. sizes returns the sizes of the clusters of n
// workers.
func newCrew(workers int, sizes func(n int) []int) crew {
	c := crew{meetings: make([]float64, workers+1), handovers: make([]float64, workers+1)}
	for n := range c.handovers {
		c.meetings[n] = moves(sizes(n), n)
		c.handovers[n] = forkFLOPs * c.meetings[n]
	}
	return c
}

// times returns the time that so many workers take to meet, relative to two.
func (c *crew) times(workers int) float64 {
	if workers < len(c.meetings) {
		return c.meetings[workers]
	}
	return moves([]int{workers}, workers)
}

// paying returns how many of so many workers should share an operation of that cost. With more
// workers each has less to do, but handing over takes longer. If there are few, all take part.
func (c *crew) paying(cost int64, members int) int {
	return c.least(members, func(n int) float64 { return float64(cost) / float64(n) })
}

// payingBands returns how many of so many workers should share the bands of a persistent operation
// with that cost a step. Of all numbers with the same largest band, it takes the least.
func (c *crew) payingBands(cost int64, hidden, members int) int {
	strips := ceil(hidden, line)
	most := min(members, strips)
	n := c.least(most, func(n int) float64 { return float64(cost) * float64(ceil(strips, n)) / float64(strips) })
	if n <= watched && most <= watched {
		return n
	}
	return ceil(strips, ceil(strips, n))
}

// least returns the number of workers that minimises the time of the busiest one plus the
// hand-over. It returns all of them, unless fewer save a tenth.
func (c *crew) least(members int, busiest func(n int) float64) int {
	if members <= watched || members >= len(c.handovers) {
		return members
	}
	best, least := 1, busiest(1)
	for n := 2; n <= members; n++ {
		if took := busiest(n) + c.handovers[n]; took < least {
			best, least = n, took
		}
	}
	if busiest(members)+c.handovers[members] < 1.1*least {
		return members
	}
	return best
}

// takers returns how many workers of a team take part in op, if each takes so many pieces.
// Persistent operations and scans choose by themselves, and several pieces go to whoever is free.
func (pl *planner) takers(op schedule.Op, pieces, members int) int {
	switch op.(type) {
	case schedule.Persistent, schedule.PersistentBackward, schedule.Scan, schedule.ScanBackward:
		return members
	}
	if pieces != 1 {
		return members
	}
	return pl.paying(cost(op), members)
}
