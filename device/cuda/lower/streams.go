package lower

import (
	"unsafe"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/schedule"
)

// appendCalls has a stream do what commands say.
func appendCalls(calls []driver.Call, stream int, commands []launch.Command) []driver.Call {
	for _, c := range commands {
		calls = append(calls, driver.Call{Stream: stream, Launch: c.Launch, Product: c.Product, Network: c.Network, Sum: c.Sum})
	}
	return calls
}

// PrepareCalls lists what the preparation calls.
func PrepareCalls(commands []launch.Command) []driver.Call { return appendCalls(nil, 0, commands) }

// Carry is the copy of whole words by a kernel, which notes the GPU's time at clock: see pointwise.Carry.
func Carry(p *Plan, c *driver.Copy, clock []byte) launch.Command {
	host := func(m []byte) driver.Pointer { return driver.Pointer(uintptr(unsafe.Pointer(&m[0]))) }
	from, to := host(c.Host), c.GPU
	if c.Out {
		from, to = to, from
	}
	return pointwise.Carry(p.target(0), len(c.Host)/4, from, to, host(clock), c.Out)
}

// Calls lists what a run calls for the commands of each node, with the events by
// which streams wait for each other; those are numbered from 0 on, so many. The other
// streams start after stream 0's past, and stream 0 ends after them.
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
	waits := 0 // of this node, or of the product and cell that are one
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

// signals are the events of the nodes that others on other streams wait for.
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

// An earliness tells of each stream whether its last command lets the next begin.
// Behind any other command a launch waits, so that a chain of early ones has all
// before it done.
type earliness map[int]bool

// node settles which launches of a node, which waits for so many others, may begin
// ahead of the end of the one before.
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
