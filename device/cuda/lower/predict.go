package lower

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent/barrier"
	"rnnbench/rnn/schedule"
)

// Constants of the predicted time of a run. Persistent kernels and products have cost models of
// their own; the rest is launches and bytes.
const (
	pointwiseCache = 6e12 // bytes a second, for data in the L2 cache
	pointwiseRate  = 3e12 // bytes a second, for data in memory
	skinnyWork     = 0.7  // share of a skinny product's time that delays other streams: the rest is latency
)

// Predict returns the seconds that a run of the nodes' commands takes, as a graph or launched one
// by one by the host. d is the cost of launches. It returns 0 if a command has no model.
//
// Each stream runs its commands in order, and waits for others as the schedule says.
// Streams share the host, the multiprocessors and memory; see lastEnd.
func (p *Lowering) Predict(nodes [][]launch.Command, graph bool, d Dispatch) float64 {
	timed := make([]timedNode, len(nodes))
	costs, host := d.costs(), 0.0
	var rest int64 // bytes of operations without a launch of their own
	for i, n := range p.schedule.Nodes {
		t := &timed[i]
		t.stream = n.Stream % launch.MaxStreams
		for _, j := range n.Wait {
			if p.schedule.Nodes[j].Stream%launch.MaxStreams != t.stream {
				t.wait = append(t.wait, j)
			}
		}
		bytes := bytesOf(n.Op, p.elements)
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
			}
			x := timedCommand{host: host}
			x.seconds, x.work = commandSeconds(c, n.Op, bytes/int64(len(nodes[i])), p.properties, costs)
			t.commands = append(t.commands, x)
		}
	}
	last := lastEnd(timed, costs.crossing)
	if graph {
		return last + costs.graph
	}
	return max(last, host) + costs.start
}

// bytesOf returns the bytes that op reads and writes, in the types that the GPU stores.
func bytesOf(op schedule.Op, elements []driver.Element) (n int64) {
	switch op.(type) {
	case schedule.Gather, schedule.Scatter: // a few rows of a table
		return schedule.Bytes(op)
	}
	for v := range schedule.Accesses(op) {
		n += int64(v.Rows) * int64(v.Cols) * int64(elements[v.M.ID].Bytes())
	}
	return n
}

// commandSeconds returns how long a command of op takes after another one if it moves so many
// bytes. work is the seconds in which it keeps the whole GPU busy.
func commandSeconds(c *launch.Command, op schedule.Op, bytes int64, p driver.Properties, costs launchCosts) (seconds, work float64) {
	switch {
	case c.Product != nil:
		return gemm.LibrarySeconds(c.Product, p.SMs)
	case c.Seconds > 0:
		work := 0.0
		if c.Launch != nil {
			g := c.Launch.Grid
			work = c.Seconds * min(1, float64(g[0]*g[1]*g[2])/float64(p.SMs))
			if c.Early {
				work *= skinnyWork
			}
		}
		return c.Seconds, work
	case c.About.Variant == "barrier" || c.About.Variant == "backward-barrier":
		return barrier.Seconds(op, p.SMs), 0
	}
	start, rate := costs.pointwise, pointwiseRate
	if c.Early {
		start = costs.early
	}
	if bytes < int64(p.L2)/2 {
		rate = pointwiseCache
	}
	work = float64(bytes) / rate
	return start + work, work
}
