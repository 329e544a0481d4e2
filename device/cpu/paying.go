package cpu

import "rnnbench/rnn/schedule"

// What it costs that many workers share an operation. The unit is what two workers take to hand it over and to meet
// again; it was measured on two cores. How much longer more workers take is a model: see barrier.

// farMoves is how many times as long a line takes from one cluster to another than within one. On processors of several
// clusters, or sockets, it is two to four times.
const farMoves = 2

// moves is how long n workers take to meet, times what two do: each arrival moves a line to the next of a group,
// and each group moves one to the next group.
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

// A crew knows what it costs workers to share an operation.
type crew struct {
	meetings  []float64 // of so many workers, times what two take; none: unknown
	handovers []float64 // to so many workers, in operations of a product
}

// newCrew is one of so many workers. sizes are those of the clusters of any number of them.
func newCrew(workers int, sizes func(n int) []int) crew {
	c := crew{meetings: make([]float64, workers+1), handovers: make([]float64, workers+1)}
	for n := range c.handovers {
		c.meetings[n] = moves(sizes(n), n)
		c.handovers[n] = forkFLOPs * c.meetings[n]
	}
	return c
}

// times is how much longer so many workers take to meet than two.
func (c *crew) times(workers int) float64 {
	if workers < len(c.meetings) {
		return c.meetings[workers]
	}
	return moves([]int{workers}, workers)
}

// paying is how many of so many workers pay for an operation of that cost: with more of them the part of each is smaller,
// but handing it over takes longer. A few all take part.
func (c *crew) paying(cost int64, members int) int {
	return c.least(members, func(n int) float64 { return float64(cost) / float64(n) })
}

// payingBands is how many workers pay for the bands of units of a persistent operation of that cost a step, among so
// many. As few take part as make the largest band no larger.
func (c *crew) payingBands(cost int64, hidden, members int) int {
	strips := ceil(hidden, line)
	most := min(members, strips)
	n := c.least(most, func(n int) float64 { return float64(cost) * float64(ceil(strips, n)) / float64(strips) })
	if n <= watched && most <= watched {
		return n
	}
	return ceil(strips, ceil(strips, n))
}

// least is the number of workers, of so many, by which the time of the busiest and the hand-over are least: all, unless
// fewer save a tenth.
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

// takers is how many workers of a team take part in op, of which each takes so many pieces. Those of a persistent operation and of
// a scan settle it by themselves, and pieces are taken by whoever is free.
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
