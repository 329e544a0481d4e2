package lower

import "math"

// A timedNode is a node's commands with their times, and the nodes that it waits for.
type timedNode struct {
	stream   int
	wait     []int // nodes of other streams
	commands []timedCommand
}

// A timedCommand takes seconds if it runs alone. During work of these it keeps the whole GPU busy,
// so its share of the GPU is work ÷ seconds.
type timedCommand struct {
	host          float64 // when the host has launched it, in seconds
	seconds, work float64
}

// A lane simulates a stream: the nodes still to run, and the rest of the first node's command.
type lane struct {
	nodes  []int
	at     int     // index of the first node's current command
	free   float64 // when the previous command ended
	left   float64 // seconds left of the running command if it ran alone; 0: none runs
	demand float64 // its share of the GPU
}

// lastEnd returns when the last node ends. Streams run side by side. If their commands need more
// than the whole GPU, each slows down in proportion. Another stream sees a node's end crossing
// seconds later.
func lastEnd(nodes []timedNode, crossing float64) float64 {
	ends := make([]float64, len(nodes))
	for i := range ends {
		ends[i] = math.Inf(1)
	}
	lanes := lanesOf(nodes)
	now := 0.0
	for {
		next, demand := math.Inf(1), 0.0
		for l := range lanes {
			x := &lanes[l]
			if start := x.begin(nodes, ends, crossing, now); start > now {
				next = min(next, start)
			}
			if x.left > 0 {
				demand += x.demand
			}
		}
		slower := max(1, demand)
		for l := range lanes {
			if x := &lanes[l]; x.left > 0 {
				next = min(next, now+x.left*slower)
			}
		}
		if math.IsInf(next, 1) {
			return now
		}
		for l := range lanes {
			lanes[l].advance(nodes, ends, next, (next-now)/slower)
		}
		now = next
	}
}

// lanesOf sorts the nodes by stream.
func lanesOf(nodes []timedNode) (lanes []lane) {
	of := map[int]int{}
	for i, n := range nodes {
		l, ok := of[n.stream]
		if !ok {
			l = len(lanes)
			of[n.stream], lanes = l, append(lanes, lane{})
		}
		lanes[l].nodes = append(lanes[l].nodes, i)
	}
	return lanes
}

// begin starts the next command if it can start by now. Nodes without commands end at once. It
// returns when the next command can start. That is infinity if none is left, if one runs, or if it
// waits for a node of another stream that has not ended.
func (x *lane) begin(nodes []timedNode, ends []float64, crossing, now float64) float64 {
	for x.left == 0 && len(x.nodes) > 0 {
		i := x.nodes[0]
		n := &nodes[i]
		start := x.free
		if x.at == 0 {
			for _, j := range n.wait {
				start = max(start, ends[j]+crossing)
			}
		}
		if x.at < len(n.commands) {
			start = max(start, n.commands[x.at].host)
		}
		if start > now {
			return start
		}
		if x.at < len(n.commands) && n.commands[x.at].seconds > 0 {
			c := n.commands[x.at]
			x.left, x.demand = c.seconds, c.work/c.seconds
			break
		}
		x.end(nodes, ends, start)
	}
	return math.Inf(1)
}

// advance runs the current command for so many of its seconds, until now.
func (x *lane) advance(nodes []timedNode, ends []float64, now, seconds float64) {
	const least = 1e-12 // seconds: a remainder due to rounding
	if x.left == 0 {
		return
	}
	if x.left -= seconds; x.left <= least {
		x.left = 0
		x.end(nodes, ends, now)
	}
}

// end moves on from a command, or from a node without commands, to the next.
func (x *lane) end(nodes []timedNode, ends []float64, at float64) {
	i := x.nodes[0]
	x.free, x.at = at, x.at+1
	if x.at >= len(nodes[i].commands) {
		ends[i], x.at, x.nodes = at, 0, x.nodes[1:]
	}
}
