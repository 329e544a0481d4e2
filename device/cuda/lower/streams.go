package lower

import (
	"slices"
	"unsafe"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/schedule"
)

// appendCalls appends the calls that run commands on a stream.
func appendCalls(calls []driver.Call, stream int, commands []launch.Command) []driver.Call {
	for _, c := range commands {
		calls = append(calls, driver.Call{Stream: stream, Launch: c.Launch, Product: c.Product, Network: c.Network, Sum: c.Sum})
	}
	return calls
}

// PrepareCalls returns the calls of the preparation.
func PrepareCalls(commands []launch.Command) []driver.Call { return appendCalls(nil, 0, commands) }

// Carry returns a kernel that copies whole words and notes the GPU's time at clock: see
// pointwise.Carry.
func Carry(p *Lowering, c *driver.Copy, clock []byte) launch.Command {
	host := func(m []byte) driver.Pointer { return driver.Pointer(uintptr(unsafe.Pointer(&m[0]))) }
	from, to := host(c.Host), c.GPU
	if c.Out {
		from, to = to, from
	}
	return pointwise.Carry(p.target(0), len(c.Host)/4, from, to, host(clock), c.Out)
}

// Moves returns a kernel that moves rows between matrices in memory at base and memory of a host
// program: see pointwise.Moves.
func Moves(p *Lowering, base driver.Pointer, rows []pointwise.Rows, out bool, report driver.Pointer) launch.Command {
	return pointwise.Moves(p.target(base), rows, out, report)
}

// A Run is calls with the events by which streams wait for each other, numbered from 0.
type Run struct {
	Calls  []driver.Call
	Events int
}

// Calls returns the calls of a run, given the commands of each node. Other streams start after all
// earlier work of stream 0, and stream 0 ends after them.
func (p *Lowering) Calls(nodes [][]launch.Command) Run {
	used := make([]bool, Streams(p.schedule))
	for i := range used {
		used[i] = true
	}
	return callsOf(p, nodes, 0, len(nodes), used)
}

// Parts returns the calls of each part of the schedule, which schedule.Pause divides. Each begins
// and ends as a run does, on the streams that it uses.
func Parts(p *Lowering, nodes [][]launch.Command) (parts []Run) {
	from := 0
	part := func(to int) {
		used := make([]bool, Streams(p.schedule))
		for _, n := range p.schedule.Nodes[from:to] {
			used[n.Stream%launch.MaxStreams] = true
		}
		parts = append(parts, callsOf(p, nodes, from, to, used))
		from = to
	}
	for i, n := range p.schedule.Nodes {
		if _, ok := n.Op.(schedule.Pause); ok {
			part(i)
		}
	}
	part(len(nodes))
	return parts
}

// callsOf returns the calls of nodes from … to-1 on the streams that they use. What they depend on
// before them has ended.
func callsOf(p *Lowering, nodes [][]launch.Command, from, to int, used []bool) (r Run) {
	s := p.schedule
	signals := signals(s, from, to)
	r.Events = len(signals)
	next := func() driver.Event {
		r.Events++
		return driver.Event(r.Events - 1)
	}
	count := 4*len(used) + r.Events
	for i, n := range nodes[from:to] {
		count += len(n) + len(s.Nodes[from+i].Wait)
	}
	list := make([]driver.Call, 0, count)
	if slices.Contains(used[1:], true) {
		fork := next()
		list = append(list, driver.Call{Event: fork})
		for stream := 1; stream < len(used); stream++ {
			if used[stream] {
				list = append(list, driver.Call{Stream: stream, Event: fork, Wait: true})
			}
		}
	}
	early := earliness{}
	waits := 0 // of this node, or of a product and its fused cell
	for i := from; i < to; i++ {
		stream := s.Nodes[i].Stream % launch.MaxStreams
		for _, j := range s.Nodes[i].Wait {
			if s.Nodes[j].Stream%launch.MaxStreams != stream {
				waits++ // even if it has ended: commands are as early in a part as in the run
				if j >= from {
					list = append(list, driver.Call{Stream: stream, Event: signals[j], Wait: true})
				}
			}
		}
		early.node(stream, nodes[i], waits)
		list = appendCalls(list, stream, nodes[i])
		if p.Fused[i] {
			continue
		}
		waits = 0
		for j := i; j == i || j >= from && p.Fused[j]; j-- {
			if e, ok := signals[j]; ok {
				list = append(list, driver.Call{Stream: stream, Event: e})
			}
		}
	}
	for stream := 1; stream < len(used); stream++ {
		if used[stream] {
			join := next()
			list = append(list, driver.Call{Stream: stream, Event: join}, driver.Call{Event: join, Wait: true})
		}
	}
	r.Calls = list
	return r
}

// signals numbers the events of nodes from … to-1 that other streams wait for there.
func signals(s *schedule.Schedule, from, to int) map[int]driver.Event {
	at := map[int]driver.Event{}
	for _, n := range s.Nodes[from:to] {
		for _, j := range n.Wait {
			if _, ok := at[j]; !ok && j >= from && (s.Nodes[j].Stream-n.Stream)%launch.MaxStreams != 0 {
				at[j] = driver.Event(len(at))
			}
		}
	}
	return at
}

// An earliness tells, per stream, whether its last command lets the next begin early. After any
// other command, a launch waits for the end. So a chain of early launches never overlaps work
// before the chain.
type earliness map[int]bool

// node decides which launches of a node may begin before the previous launch has ended. waits is
// how many events the node waits for.
func (e earliness) node(stream int, commands []launch.Command, waits int) {
	if len(commands) == 0 {
		if waits > 0 {
			e[stream] = false
		}
		return
	}
	if first := &commands[0]; first.Early {
		first.Launch.Early = waits == 0 && e[stream]
	}
	for k := 1; k < len(commands); k++ {
		if commands[k].Early {
			commands[k].Launch.Early = commands[k-1].Early
		}
	}
	e[stream] = commands[len(commands)-1].Early
}
