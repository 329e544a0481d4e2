package model

import (
	"maps"
	"math"
	"slices"
)

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
	Streams  int // of a graph, which launches on all of them at once; 0: one
}

// A Chain is a series of steps, each of which needs the states of the step before.
type Chain struct {
	Steps float64
	Work  Work    // of a step
	Group Group   // of a GPU's blocks; zero: the workers of a processor or, on a GPU, products that are launched
	Equal float64 // such chains that run side by side; 0: one
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
	Again   float64 // of the bytes, those of weights that steps read again
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
	Memory  string  // that binds, where the bound is memory
	Chain   float64 // seconds of all chains
	Parts   []Part  // those that take time
	Error   float64 // relative, of the machine's model where it was fitted; 0: not recorded
}

// Floor is the least time that r takes on m.
func (m *Machine) Floor(r Run) (Floor, error) {
	f := Floor{}
	peak := max(r.Peak, m.rate(r.Bytes, r.Tensor))
	bytes := supply{} // of the whole run
	var sum link
	count := 0.0
	for _, c := range r.Chains {
		x, err := m.link(c, peak)
		if err != nil {
			return f, err
		}
		if x.exchange > 0 {
			count += c.Steps
		}
		sum.exchange += c.Steps * x.exchange
		sum.product += c.Steps * x.product
		if w := c.Steps * x.weights; w > 0 {
			sum.weights, sum.slowest = sum.weights+w, x.slowest
		}
		f.Chain += c.Steps * max(x.exchange, x.product, x.weights)
		bytes.add(x.bytes, c.Steps*max(1, c.Equal))
	}
	f.add(Part{Bound: BoundExchange, Count: count, Each: sum.exchange / max(1, count), Seconds: sum.exchange})
	f.add(Part{Bound: BoundProducts, Count: r.FLOPs, Rate: peak, Seconds: r.FLOPs / peak})
	again := maps.Clone(bytes)
	bytes.add(m.supply(r.Moved, m.cores(), r.Cold), 1)
	for _, l := range m.Levels {
		if b, rate := bytes[l.Name], m.totalRate(l.Name); b > 0 && rate > 0 {
			f.add(Part{Bound: BoundMemory, Memory: l.Name, Count: b, Again: again[l.Name], Rate: rate, Seconds: b / rate})
		}
	}
	if m.GPU != nil {
		each, count := m.GPU.Launch, float64(r.Launches)
		if r.Graph {
			each, count = m.GPU.Graph, math.Ceil(count/float64(max(1, r.Streams)))
		}
		f.add(Part{Bound: BoundLaunch, Count: count, Each: each, Seconds: count * each})
		f.Error = m.GPU.Error
	}
	for _, p := range f.Parts {
		if p.Seconds > f.Seconds {
			f.Seconds, f.Bound, f.Memory = p.Seconds, p.Bound, p.Memory
		}
	}
	if f.Chain > f.Seconds {
		f.Seconds = f.Chain
		f.Bound, f.Memory = sum.bound()
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

// A supply is the bytes that each memory gives, by name.
type supply map[string]float64

// add adds times times x.
func (s supply) add(x supply, times float64) {
	for name, b := range x {
		s[name] += times * b
	}
}

// supply says which memories give bytes that are used again and again by so many cores: all pass through the nearest
// one, and the farther ones give what the nearer ones cannot keep. Cold caches keep nothing. On a GPU a block's own
// memories keep nothing either.
func (m *Machine) supply(bytes float64, cores int, cold bool) supply {
	s, first := supply{}, 0
	if m.GPU != nil {
		first = m.shared()
	}
	for i, l := range m.Levels[first:] {
		s[l.Name] = bytes
		if !cold {
			bytes -= l.M * used(m, first+i, cores)
		}
		if bytes <= 0 {
			break
		}
	}
	return s
}

// used is the number of modules of a level of m that so many cores use.
func used(m *Machine, level, cores int) float64 {
	return min(m.modules(level), math.Ceil(float64(cores)*m.modules(level)/float64(m.cores())))
}

// A link is one step of a chain: the seconds of its exchange, of the products of one sequence, and
// of reading weights again, where slowest is the memory that takes the longest.
type link struct {
	exchange, product, weights float64
	slowest                    string
	bytes                      supply // of weights
}

// bound is the part of x that takes the most time, and the memory if it is one.
func (x link) bound() (bound, memory string) {
	switch {
	case x.weights > max(x.exchange, x.product):
		return BoundMemory, x.slowest
	case x.product > x.exchange:
		return BoundProducts, ""
	}
	return BoundExchange, ""
}

// time is the seconds of a step.
func (x link) time() float64 { return max(x.exchange, x.product, x.weights) }

// link returns the parts of a step of c. peak is the FLOP/s of all cores.
func (m *Machine) link(c Chain, peak float64) (link, error) {
	one := c.Work
	one.Batch = 1
	if c.Group == (Group{}) {
		return m.linkOfCores(c.Work.Weights(), one.FLOPs()/peak), nil
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
		x.slowest, x.bytes = home, supply{home: turns * beyond * copies}
		x.weights = x.bytes[home] / m.totalRate(home)
	case near > 0:
		last := private[len(private)-1]
		x.slowest, x.bytes = last.Name, supply{last.Name: turns * near * copies}
		x.weights = turns * near / last.B
	}
	return x, nil
}

// linkOfCores is link for a step that reads so many bytes of weights. product is the time of one
// sequence on all cores. The launched products of a GPU use all of them, and keep no weights in registers. On a
// processor some cores may be faster than all: they meet sooner, and one of them meets nobody.
func (m *Machine) linkOfCores(weights, product float64) link {
	all := m.cores()
	if m.GPU != nil {
		return link{product: product}.reading(m, weights, all)
	}
	best := link{}
	for n := 1; n <= all; n++ {
		x := link{exchange: m.Meets(n), product: product * float64(all) / float64(n)}.reading(m, weights, n)
		if n == 1 || x.time() < best.time() {
			best = x
		}
	}
	return best
}

// reading is x where, besides, so many cores of m read so many bytes of weights again.
func (x link) reading(m *Machine, weights float64, cores int) link {
	x.bytes = m.supply(weights, cores, false)
	for i, l := range m.Levels {
		rate := m.totalRate(l.Name) * used(m, i, cores) / m.modules(i)
		if b := x.bytes[l.Name]; b > 0 && rate > 0 && b/rate > x.weights {
			x.weights, x.slowest = b/rate, l.Name
		}
	}
	return x
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

// String names p, with the memory that gives its bytes.
func (p Part) String() string {
	if p.Memory != "" {
		return p.Bound + " " + p.Memory
	}
	return p.Bound
}
