package lower

import (
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
func Carry(p *Plan, c *driver.Copy, clock []byte) launch.Command {
	host := func(m []byte) driver.Pointer { return driver.Pointer(uintptr(unsafe.Pointer(&m[0]))) }
	from, to := host(c.Host), c.GPU
	if c.Out {
		from, to = to, from
	}
	return pointwise.Carry(p.target(0), len(c.Host)/4, from, to, host(clock), c.Out)
}

// Calls returns the calls of a run, given the commands of each node, with the events by which
// streams wait for each other. Events are numbered from 0; events is their count. Other streams
// start after all earlier work of stream 0, and stream 0 ends after them.
func (p *Plan) Calls(nodes [][]launch.Command) (list []driver.Call, events int) {
	s, all := p.schedule, Streams(p.schedule)
	signals := signals(s)
	events = len(signals)
	next := func() driver.Event {
		events++
		return driver.Event(events - 1)
	}
	count := 4*all + events
	for i, n := range nodes {
		count += len(n) + len(s.Nodes[i].Wait)
	}
	list = make([]driver.Call, 0, count)
	if all > 1 {
		fork := next()
		list = append(list, driver.Call{Event: fork})
		for stream := 1; stream < all; stream++ {
			list = append(list, driver.Call{Stream: stream, Event: fork, Wait: true})
		}
	}
	early := earliness{}
	waits := 0 // of this node, or of a product and its fused cell
	for i, n := range s.Nodes {
		stream := n.Stream % launch.MaxStreams
		for _, j := range n.Wait {
			if s.Nodes[j].Stream%launch.MaxStreams != stream {
				list = append(list, driver.Call{Stream: stream, Event: signals[j], Wait: true})
				waits++
			}
		}
		early.node(stream, nodes[i], waits)
		list = appendCalls(list, stream, nodes[i])
		if p.Fused[i] {
			continue
		}
		waits = 0
		for j := i; j == i || j >= 0 && p.Fused[j]; j-- {
			if e, ok := signals[j]; ok {
				list = append(list, driver.Call{Stream: stream, Event: e})
			}
		}
	}
	for stream := 1; stream < all; stream++ {
		join := next()
		list = append(list, driver.Call{Stream: stream, Event: join}, driver.Call{Event: join, Wait: true})
	}
	return list, events
}

// signals numbers the events of nodes that other streams wait for.
func signals(s *schedule.Schedule) map[int]driver.Event {
	at := map[int]driver.Event{}
	for _, n := range s.Nodes {
		for _, j := range n.Wait {
			if _, ok := at[j]; !ok && (s.Nodes[j].Stream-n.Stream)%launch.MaxStreams != 0 {
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
