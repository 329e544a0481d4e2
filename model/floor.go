package model

import "slices"

// A Run is the least that one run of a technique asks of a machine.
type Run struct {
	FLOPs    float64 // of all products
	Bytes    float64 // of one value in a product
	Tensor   bool    // products may run on tensor cores
	Peak     float64 // measured FLOP/s of products, where they exceed the machine's; else 0
	Moved    float64 // bytes of inputs, weights and outputs, each as often as it must be moved
	Cold     bool    // caches are empty when the run starts
	Chains   []Chain
	Launches int // of kernels
	Graph    bool
}

// A Chain is a series of steps, each of which needs the states of the step before.
type Chain struct {
	Steps float64
	Work  Work  // of a step
	Group Group // of a GPU's blocks; zero: the workers of a processor
}

// The bounds of a run.
const (
	BoundExchange = "exchange"
	BoundProducts = "multiply-adds"
	BoundMemory   = "memory"
	BoundLaunch   = "launch"
)

// A Part is the least time of one thing that a run does, as if it did nothing else.
type Part struct {
	Bound   string  // one of the words above
	Memory  string  // memory that supplies the bytes; "" for other parts
	Count   float64 // exchanges, operations, bytes or launches
	Each    float64 // seconds of one; 0: see Rate
	Rate    float64 // how many of them a second
	Seconds float64
}

// A Floor is the least time of a run: the largest of its parts and its chains, since all of them
// may overlap. The steps of a chain follow each other. A step takes at least its exchange, the
// products of one sequence by one group, or its weights.
type Floor struct {
	Seconds float64
	Bound   string
	Chain   float64 // seconds of all chains
	Parts   []Part  // those that take time
	Error   float64 // relative, of the machine's model where it was fitted; 0: not recorded
}

// Floor is the least time that r takes on m.
func (m *Machine) Floor(r Run) (Floor, error) {
	f := Floor{}
	peak := max(r.Peak, m.rate(r.Bytes, r.Tensor))
	bytes := map[string]float64{} // by memory
	var sum link
	count := 0.0
	for _, c := range r.Chains {
		x, err := m.link(c, peak)
		if err != nil {
			return f, err
		}
		count += c.Steps
		sum.exchange += c.Steps * x.exchange
		sum.product += c.Steps * x.product
		sum.weights += c.Steps * x.weights
		f.Chain += c.Steps * max(x.exchange, x.product, x.weights)
		if x.bytes > 0 {
			bytes[x.home] += c.Steps * x.bytes
		}
	}
	f.add(Part{Bound: BoundExchange, Count: count, Each: sum.exchange / max(1, count), Seconds: sum.exchange})
	f.add(Part{Bound: BoundProducts, Count: r.FLOPs, Rate: peak, Seconds: r.FLOPs / peak})
	bytes[m.nearestHolding(r.Moved, r.Cold)] += r.Moved
	for _, l := range m.Levels {
		if b, rate := bytes[l.Name], m.totalRate(l.Name); b > 0 && rate > 0 {
			f.add(Part{Bound: BoundMemory, Memory: l.Name, Count: b, Rate: rate, Seconds: b / rate})
		}
	}
	if m.GPU != nil {
		each := m.GPU.Launch
		if r.Graph {
			each = m.GPU.Graph
		}
		f.add(Part{Bound: BoundLaunch, Count: float64(r.Launches), Each: each, Seconds: float64(r.Launches) * each})
		f.Error = m.GPU.Error
	}
	for _, p := range f.Parts {
		if p.Seconds > f.Seconds {
			f.Seconds, f.Bound = p.Seconds, p.Bound
		}
	}
	if f.Chain > f.Seconds {
		f.Seconds, f.Bound = f.Chain, sum.bound()
	}
	return f, nil
}

// add adds a part that takes time.
func (f *Floor) add(p Part) {
	if p.Seconds > 0 {
		f.Parts = append(f.Parts, p)
	}
}

// Bytes sums the bytes that each memory supplies.
func (f Floor) Bytes() map[string]int64 {
	all := map[string]int64{}
	for _, p := range f.Parts {
		if p.Memory != "" {
			all[p.Memory] += int64(p.Count)
		}
	}
	return all
}

// A link is one step of a chain: the seconds of its exchange, of the products of one sequence, and
// of reading weights again, which are so many bytes from home.
type link struct {
	exchange, product, weights, bytes float64
	home                              string
}

// bound is the part of x that takes the most time.
func (x link) bound() string {
	switch {
	case x.weights > max(x.exchange, x.product):
		return BoundMemory
	case x.product > x.exchange:
		return BoundProducts
	}
	return BoundExchange
}

// link returns the parts of a step of c. peak is the FLOP/s of a processor's workers.
func (m *Machine) link(c Chain, peak float64) (link, error) {
	one := c.Work
	one.Batch = 1
	if c.Group == (Group{}) {
		return m.linkOfWorkers(c.Work, one.FLOPs()/peak)
	}
	if err := c.Group.check(); err != nil {
		return link{}, err
	}
	g := c.Group
	cores := float64(m.cores())
	turns := float64(g.turns(c.Work.Batch))
	x := link{exchange: m.Exchange(g), product: one.FLOPs() / m.rate(one.Bytes, g.Tensor) * max(1, cores/float64(g.Blocks))}
	near, beyond, home := m.beyondRegisters(c.Work.Weights() / float64(g.Blocks))
	copies := float64(g.Blocks * g.Groups)
	switch private := m.Levels[:m.shared()]; {
	case beyond > 0:
		x.home, x.bytes = home, turns*beyond*copies
		x.weights = x.bytes / m.totalRate(home)
	case near > 0:
		last := private[len(private)-1]
		x.home, x.bytes = last.Name, turns*near*copies
		x.weights = turns * near / last.B
	}
	return x, nil
}

// linkOfWorkers is link for a step of w by the workers of a processor. Each holds a band of units,
// and all meet once a step. If all weights fit a worker's caches, workers may have sequences of
// their own and need not meet.
func (m *Machine) linkOfWorkers(w Work, product float64) (link, error) {
	s, err := m.Bands(w)
	if err != nil {
		return link{}, err
	}
	x := link{exchange: m.Barrier(), product: product, home: s.Home, bytes: w.Weights()}
	apart := slices.ContainsFunc(m.Levels[:m.Private()], func(l Level) bool { return w.Weights() <= l.M })
	if w.Batch > 1 && apart {
		x.exchange, x.product = 0, product*float64(m.cores())
	}
	if rate := m.totalRate(s.Home); rate > 0 {
		x.weights = x.bytes / rate
	}
	return x, nil
}

// modules is the number of modules of a level.
func (m *Machine) modules(level int) float64 {
	n := 1
	for _, l := range m.Levels[level+1:] {
		n *= l.P
	}
	return float64(n)
}

// totalRate is the bytes a second of all modules of a level together; 0: no limit.
func (m *Machine) totalRate(level string) float64 {
	i := slices.IndexFunc(m.Levels, func(l Level) bool { return l.Name == level })
	if m.GPU != nil && m.GPU.Stream > 0 && i == m.shared() {
		return m.GPU.Stream
	}
	return m.Levels[i].B * m.modules(i)
}

// nearestHolding is the nearest memory that can still hold so many bytes from the run before. On a
// GPU a block's own memories cannot.
func (m *Machine) nearestHolding(bytes float64, cold bool) string {
	first, last := 0, len(m.Levels)-1
	if m.GPU != nil {
		first = m.shared()
	}
	for i := first; i < last && !cold; i++ {
		if bytes <= m.Levels[i].M*m.modules(i) {
			return m.Levels[i].Name
		}
	}
	return m.Levels[last].Name
}

// String names p, with the memory that gives its bytes.
func (p Part) String() string {
	if p.Memory != "" {
		return p.Bound + " " + p.Memory
	}
	return p.Bound
}
