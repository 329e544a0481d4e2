package lower

import "math"

// A timed node is an operation as the GPU has it: its commands, and what it waits for.
type timedNode struct {
	stream   int
	wait     []int // nodes of other streams
	commands []timedCommand
}

// A timedCommand takes so many seconds alone. For the share work ÷ seconds of them it keeps
// all of the GPU busy.
type timedCommand struct {
	host          float64 // when the host has launched it
	seconds, work float64
}

// A lane is a stream as it runs: the nodes that it has yet to run, and how much of the
// first one's command is left.
type lane struct {
	nodes  []int
	at     int     // the command of the first node
	free   float64 // when the command before ended
	left   float64 // seconds of the command that runs, as if alone; 0: none runs
	demand float64 // its share of the GPU
}

// lastEnd is when the last of all nodes ends. Streams run side by side. Where their commands
// would use more than all of the GPU, each gets in proportion less. Another stream knows of
// a node's end after crossing seconds.
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

// lanesOf deals the nodes to their streams.
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

// begin has the next command run if it can by now. Nodes without commands end at once. It
// returns when the next command can start: infinity where none is left, one runs, or
// another stream's node has not ended.
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

// advance has the running command go on for so many of its seconds, until now.
func (x *lane) advance(nodes []timedNode, ends []float64, now, seconds float64) {
	const least = 1e-12 // seconds: what rounding leaves
	if x.left == 0 {
		return
	}
	if x.left -= seconds; x.left <= least {
		x.left = 0
		x.end(nodes, ends, now)
	}
}

// end passes from a command, or a node without any, to the next.
func (x *lane) end(nodes []timedNode, ends []float64, at float64) {
	i := x.nodes[0]
	x.free, x.at = at, x.at+1
	if x.at >= len(nodes[i].commands) {
		ends[i], x.at, x.nodes = at, 0, x.nodes[1:]
	}
}
