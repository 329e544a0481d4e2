package lower

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/schedule"
)

// What a run is expected to take, in seconds, before any kernel is compiled. Persistent
// kernels and products bring times of their own. The rest is launches and bytes.
const (
	pointwiseCache = 6e12 // bytes a second that stay in the L2 cache
	pointwiseRate  = 3e12 // and of memory
	skinnyWork     = 0.7  // of a skinny product's time, in which others wait: the rest is latency
)

// Predict is how many seconds a run of the commands of each node takes, as a graph or
// launched by the host. d is what launches cost. The answer is 0 where no model knows a command.
//
// Each stream runs its commands in order, and waits for others as the schedule says.
// Streams share the host, the multiprocessors and memory: a run takes at least as long as its
// products and persistent layers keep all of the GPU busy.
func (p *Plan) Predict(nodes [][]launch.Command, graph bool, d Dispatch) float64 {
	const streams = launch.MaxStreams
	var ready [streams]float64
	ends := make([]float64, len(nodes))
	costs, host, busy := d.costs(), 0.0, 0.0
	var rest int64 // bytes of operations that share a launch with an earlier one, or a later one
	for i, n := range p.schedule.Nodes {
		stream := n.Stream % streams
		now := ready[stream]
		for _, j := range n.Wait {
			if p.schedule.Nodes[j].Stream%streams != stream {
				now = max(now, ends[j]+costs.crossing)
			}
		}
		bytes := schedule.Bytes(n.Op)
		if len(nodes[i]) == 0 {
			rest += bytes
		} else {
			bytes, rest = bytes+rest, 0
		}
		for k := range nodes[i] {
			c := &nodes[i][k]
			if c.Network != nil {
				return 0
			}
			if !graph {
				if c.Product != nil {
					host += costs.product
				} else {
					host += costs.launch
				}
				now = max(now, host)
			}
			now += commandSeconds(c, n.Op, bytes/int64(len(nodes[i])), p.properties, costs)
			busy += work(c, p.properties.SMs)
		}
		ready[stream], ends[i] = now, now
	}
	last := busy
	for _, t := range ready {
		last = max(last, t)
	}
	if graph {
		return last + costs.graph
	}
	return max(last, host) + costs.start
}

// commandSeconds is what a command of op takes behind another one, if it moves so many bytes.
func commandSeconds(c *launch.Command, op schedule.Op, bytes int64, p driver.Properties, costs launchCosts) float64 {
	switch {
	case c.Product != nil:
		return gemm.LibrarySeconds(c.Product, p.SMs)
	case c.Seconds > 0:
		return c.Seconds
	case c.About.Variant == "barrier" || c.About.Variant == "backward-barrier":
		return persistent.BarrierSeconds(op, p.SMs)
	}
	start, rate := costs.pointwise, pointwiseRate
	if c.Early {
		start = costs.early
	}
	if bytes < int64(p.L2)/2 {
		rate = pointwiseCache
	}
	return start + float64(bytes)/rate
}

// work is for how long c keeps all of the GPU busy, so that other streams have to wait.
func work(c *launch.Command, sms int) float64 {
	switch {
	case c.Product != nil:
		return gemm.LibraryWork(c.Product, sms)
	case c.Launch != nil && c.Seconds > 0:
		g := c.Launch.Grid
		all := c.Seconds * min(1, float64(g[0]*g[1]*g[2])/float64(sms))
		if c.Early {
			return skinnyWork * all
		}
		return all
	}
	return 0
}
