package persistent

import (
	"fmt"
	"math"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// backwardSIMTVariant multiplies by fused multiply-adds: each block forms its part of every unit's gradient.
var backwardSIMTVariant = &Variant{
	Kernel:   kernels.Kernel{Name: "backward-simt", Headers: []string{"backward", "backward_simt"}, Files: []string{"backward_simt", "backward"}, Entry: "back_layer"},
	Backward: true, Strategies: []int{inClusters, overGrid},
	Exchange:   partials,
	words:      map[string]string{"OUT": "units that a thread multiplies for: %d"},
	fit:        Fit{1.16, 0.2},
	considered: func(c *Chooser, _ Layer) (turn, bool) { return first.provided(c.Knobs["tensor"] != 1), false },
	configs:    backwardScatters(scatterForms),
}

// backwardMMAVariant multiplies on tensor cores: each block forms its part of every unit's gradient.
var backwardMMAVariant = &Variant{
	Kernel:   kernels.Kernel{Name: "backward-mma", Headers: []string{"backward", "backward_mma"}, Files: []string{"backward_mma", "backward"}, Entry: "back_layer"},
	Backward: true, Strategies: []int{inClusters, overGrid}, tensor: true,
	Exchange:   partials,
	fit:        Fit{0.73, 0},
	considered: func(c *Chooser, _ Layer) (turn, bool) { return first.provided(c.Knobs["tensor"] != 2), false },
	configs:    backwardScatters(scatterTensorForms),
}

// unitRegisters estimates the registers that a thread needs for the gradient of a unit.
func unitRegisters(c *cell.Cell) int {
	reads, writes := c.Backward.Vectors()
	return 2*len(reads) + 2*len(c.States) + len(writes) - 2
}

// A backwardScatter says how backward.cu divides a layer.
type backwardScatter struct {
	Layer
	clusters int  // per group; if more than one, they are spread over the GPU
	cluster  int  // blocks per cluster
	units    int  // per block
	samples  int  // sequences per group
	warps    int  // per block
	tensor   bool // products on tensor cores
	out      int  // else: units that a thread multiplies for
	lanes    int  // else: threads that share those units
	resident int  // a thread's pieces of weights in registers
}

func (s backwardScatter) spread() bool { return s.clusters > 1 }
func (s backwardScatter) blocks() int  { return s.clusters * s.cluster }
func (s backwardScatter) threads() int { return 32 * s.warps }

// step returns how many adjacent columns a thread has without tensor cores.
func (s backwardScatter) step() int { return max(1, 4/s.samples) }

// chunks returns the number of pieces of a block's columns.
func (s backwardScatter) chunks() int {
	if s.tensor {
		return ints.CeilDiv(s.Gates*s.units*s.Weights.Bytes(), 64)
	}
	return ints.CeilDiv(s.Gates*s.units, s.lanes*s.step())
}

// per returns the number of registers of a thread's piece of weights.
func (s backwardScatter) per() int {
	if s.tensor {
		return 8
	}
	return s.out * s.step()
}

// pieces returns the number of a thread's pieces of weights.
func (s backwardScatter) pieces() int {
	if s.tensor {
		return ints.CeilDiv(ints.CeilDiv(s.blocks()*s.units, 16), s.warps) * s.chunks()
	}
	return ints.CeilDiv(ints.CeilDiv(s.blocks()*s.units, s.out)*s.lanes, s.threads()) * s.chunks()
}

// grads returns the bytes of a block's gradients in shared memory.
func (s backwardScatter) grads() int {
	if !s.tensor {
		return 4 * s.chunks() * s.lanes * s.step() * s.samples
	}
	row := 64 * s.chunks()
	if row%128 == 0 {
		row += 64
	}
	if s.Exact {
		return s.samples * (row + 8)
	}
	return s.samples * row
}

// shared returns the bytes of shared memory of a block: barriers, incoming partial sums, gradients
// of its gates, and weights that do not fit registers.
func (s backwardScatter) shared() int {
	bytes := 128 + s.grads() + 4*s.per()*s.threads()*(s.pieces()-s.resident)
	if !s.spread() && s.cluster > 1 {
		bytes += s.grads()
	}
	if s.cluster > 1 || !s.spread() {
		bytes += 2 * 4 * s.blocks() * s.units * s.samples
	}
	if s.spread() {
		bytes += 4 * ints.RoundUp(s.units*s.samples*(s.clusters|1), 4)
	}
	return bytes
}

// same returns how many lanes share the sum of a unit's parts.
func (s backwardScatter) same() int {
	n := 1
	for s.spread() && n*8 < s.clusters && n*2 <= s.threads()/(s.units*s.samples) && n < 32 {
		n *= 2
	}
	return n
}

// each returns how many values, each of a unit and a sequence, a thread has.
func (s backwardScatter) each() int { return ints.CeilDiv(s.units*s.samples*s.same(), s.threads()) }

// overhead returns the registers of a thread besides its weights, given those carried per unit.
func (s backwardScatter) overhead(carried int) int {
	n := 56 + s.each()*carried
	switch {
	case !s.tensor:
		n += 8 + s.out*s.samples
		if s.pieces()*s.per() > MaxRegisters-n { // some weights are read from shared memory ahead of their use
			n += 12
		}
	case s.Exact:
		n += s.sums() + 28 + s.samples
	default:
		n += s.sums() + 20 + s.samples/2
	}
	if s.tensor && s.spread() { // addresses of words
		n += 8
	}
	return n
}

// sums returns the number of a thread's sums on tensor cores.
func (s backwardScatter) sums() int {
	groups := ints.CeilDiv(ints.CeilDiv(s.blocks()*s.units, 16), s.warps)
	return s.samples * max(1, min(groups, 32/s.samples))
}

// aligned returns the number of which a block's units are a multiple: what is sent at a time.
func (s backwardScatter) aligned() int {
	if s.tensor {
		return 2
	}
	return max(2, s.out/s.lanes)
}

// shaped fills in how s, of so many blocks at most, divides the units, or says why it does not fit.
func (s backwardScatter) shaped(blocks, carried int, p driver.Properties) (backwardScatter, string) {
	s.units = ints.RoundUp(ints.CeilDiv(s.Hidden, blocks), s.aligned())
	if used := ints.CeilDiv(s.Hidden, s.units); s.spread() {
		s.clusters = ints.CeilDiv(used, s.cluster)
	} else {
		s.cluster = used
	}
	room := min(MaxRegisters, RegistersOfSM/ints.RoundUp(s.threads(), 128)/8*8) - s.overhead(carried)
	s.resident = min(s.pieces(), max(0, room)/s.per())
	if s.shared() > p.Shared {
		return s, fmt.Sprintf("%d weights of a block's %d units take %d KiB of shared memory beyond registers, and there are %d",
			s.Gates*s.Hidden*s.units, s.units, s.shared()>>10, p.Shared>>10)
	}
	return s, ""
}

// together returns how many groups run at the same time.
func (s backwardScatter) together(p driver.Properties) int {
	if s.cluster == 1 {
		return p.SMs / s.clusters
	}
	return max(1, p.Together(s.cluster)/s.clusters)
}

// backwardScatters returns what lists how the gradient of a layer can run in groups that knobs
// allow, or says why it cannot, given the ways to multiply.
func backwardScatters(forms func(c *Chooser, l Layer) []backwardScatter) func(c *Chooser, l Layer) ([]Config, string) {
	return func(c *Chooser, l Layer) ([]Config, string) {
		var all []Config
		why, carried := noGroups(c), unitRegisters(l.Cell)
		seen := map[string]bool{}
		for _, form := range forms(c, l) {
			c.scatterShapes(func(clusters, cluster, groups int) {
				if groups > ints.CeilDiv(l.Batch, form.samples) && c.Knobs["groups"] == 0 || clusters > 1 && form.samples > maxSpread {
					return
				}
				s := form
				s.clusters, s.cluster = clusters, cluster
				s, no := s.shaped(clusters*cluster, carried, c.Properties)
				if no != "" {
					why = no
					return
				}
				if s.cluster > 1 && c.Properties.Together(s.cluster) < s.clusters || clusters > 1 && s.clusters == 1 {
					return
				}
				if g := s.config(c.Properties); !seen[g.sizes] {
					seen[g.sizes] = true
					g.Knobs["cluster"] = cluster
					if g.spread {
						g.Knobs["resident"], g.Knobs["groups"] = overGrid, groups
					}
					all = append(all, g)
				}
			})
		}
		return all, why
	}
}

// scatterTensorForms lists the ways to multiply on tensor cores that knobs allow, and scatterForms
// those without them.
func scatterTensorForms(c *Chooser, l Layer) (all []backwardScatter) {
	for _, warps := range []int{4, 8, 16} {
		for _, samples := range c.samples(l.Batch, 8, 16, 32) {
			if samples%8 == 0 && samples <= ints.RoundUp(l.Batch, 8) {
				all = append(all, backwardScatter{Layer: l, samples: samples, warps: warps, tensor: true})
			}
		}
	}
	return all
}

func scatterForms(c *Chooser, l Layer) (all []backwardScatter) {
	for _, warps := range []int{4, 8, 16} {
		for _, samples := range c.samples(l.Batch, 1, 2, 4, 8) {
			if samples != ints.PowerOfTwo(samples) {
				continue
			}
			for _, out := range []int{4, 8} {
				for lanes := out / 2; lanes <= min(out, 8) && samples <= 8 && out*samples <= 64; lanes *= 2 {
					all = append(all, backwardScatter{Layer: l, samples: samples, warps: warps, out: out, lanes: lanes})
				}
			}
		}
	}
	return all
}

// scatterShapes yields the groups that knobs allow: clusters per group, blocks per cluster, and the
// number of groups.
func (c *Chooser) scatterShapes(yield func(clusters, cluster, groups int)) {
	hopper := c.hasClusters()
	if (c.Knobs["resident"] == asExpected || c.Knobs["resident"] == inClusters) && hopper {
		for _, n := range c.choose("cluster", ClusterSizes()...) {
			yield(1, n, 1)
		}
	}
	if c.Knobs["resident"] == inClusters {
		return
	}
	for _, groups := range c.choose("groups", 1, 2, 3, 4, 8, maxGroups) {
		for _, n := range c.choose("cluster", ClusterSizes()...) {
			room := c.Properties.SMs
			if n > 1 {
				room = c.Properties.Together(n)
			}
			if clusters := room / groups; clusters > 1 && (n == 1 || hopper) {
				yield(clusters, n, groups)
			}
		}
	}
}

// config returns s as a Config.
func (s backwardScatter) config(p driver.Properties) Config {
	sizes := codegen.Constants(
		"SPREAD", ints.FromBool(s.spread()), "CLUSTERS", s.clusters, "CLUSTER", s.cluster, "UNITS", s.units,
		"SAMPLES", s.samples, "WARPS", s.warps, "CHUNKS", s.chunks(), "RESIDENT", s.resident, "SAME", s.same(),
	) + ", "
	if s.tensor {
		sizes += codegen.Constants("EXACT", ints.FromBool(s.Exact))
	} else {
		sizes += codegen.Constants("OUT", s.out, "LANES", s.lanes)
	}
	return Config{
		spread: s.spread(), few: s.spread(), cluster: s.cluster, blocks: s.blocks(), samples: s.samples, threads: s.threads(), shared: s.shared(), together: s.together(p), cycles: s.cycles(p), prior: 32/s.warps + ints.FromBool(s.tensor),
		sizes: sizes, Knobs: knob.Params{"resident": inClusters, "samples": s.samples, "tensor": 2 - ints.FromBool(s.tensor)},
	}
}

// maxSpread bounds the sequences of a group that is spread over the GPU, whose blocks exchange
// partial sums in memory.
const maxSpread = 16

// BackwardExchangeBytes bounds the memory of these exchanges: two buffers with a word of each block
// for each unit and sequence, or two images of all gradients.
func BackwardExchangeBytes(hidden, batch int, p driver.Properties) int64 {
	line := hidden + ints.RoundUp(ints.CeilDiv(hidden, max(1, p.SMs/maxGroups)), 16)
	words := 2 * 8 * int64(p.SMs) * int64(line) * int64(min(maxSpread, ints.RoundUp(batch, 8)))
	return max(words, 2*24*int64(hidden+maxPadding)*int64(ints.RoundUp(batch, maxSamples)))
}

// The gradient by backward-simt and backward-mma: fitted to 168 measurements.
const (
	scatterStep         = 155  // a constant
	scatterMultiply     = 1.45 // a multiply-add of a warp
	scatterPiece        = 95   // a piece of a thread's weights
	scatterTensor       = 1550 // a constant, on tensor cores
	scatterTensorExact  = 1750 // and in single precision
	scatterProduct      = 8    // a product of a warp
	scatterCell         = 300  // the cell of each further unit of a thread, per gate
	scatterSide         = 60   // each further group that exchanges within a cluster
	scatterAlone        = 60   // added for one gate in a group of one block: rnn-tanh of 32, 64 and 96 units on an H100
	scatterPush         = 220  // exchange within a cluster
	scatterPushUnit     = 0.75 // and each value
	scatterGrid         = 995  // exchange through the L2 cache
	scatterGridRate     = 2280 // bytes per cycle: 4 TB/s
	scatterGridThread   = 20   // each word of a thread
	scatterGridPush     = 300  // added if groups also exchange within clusters
	scatterSmallCluster = 1.06 // factor if clusters have fewer than 16 blocks
)

// cycles predicts a step of all sequences: products, for which shared memory delivers 128 bytes per
// cycle; sums and the cell; and the exchange of parts. Pushes of all groups share the network
// between multiprocessors, and words share the 4 TB/s that memory delivers.
func (s backwardScatter) cycles(p driver.Properties) float64 {
	groups, together := ints.CeilDiv(s.Batch, s.samples), s.together(p)
	side := float64(min(groups, together))
	warps, pieces, far := float64(s.warps), float64(s.pieces()), float64(s.pieces()-s.resident)
	units, live := float64(s.blocks()*s.units), float64(min(s.Batch, s.samples))
	chunks := float64(s.chunks())
	var step, message float64
	if s.tensor {
		tiles, products := float64(s.samples/8), 2.0
		step, message = scatterTensor, 4
		if s.Exact {
			products, step = 3, scatterTensorExact
		}
		rounds := math.Ceil(pieces / chunks * tiles / 4)
		step += scatterProduct*products*pieces*tiles*warps/4 + 4*warps*(chunks*rounds*min(tiles, 4)+far*float64(s.per())/4)
		live = float64(ints.RoundUp(int(live), 2))
	} else {
		multiply, load := scatterMultiply*pieces*float64(s.per()*s.samples)*warps/4, warps*(pieces*float64(s.step()*s.samples)+far*float64(s.per()))
		step = scatterStep + max(multiply, load) + min(multiply, load)/6 + scatterPiece*pieces/chunks
		message = float64(min(4, s.out/s.lanes*s.samples))
	}
	step += scatterCell * float64((ints.CeilDiv(s.units*s.samples*s.same(), min(s.threads(), 256))-1)*s.Gates) // sixteen warps run in turns
	if s.cluster > 1 {
		step += scatterPush + scatterPushUnit*units*live/message
	}
	if s.spread() {
		words := units * live / float64(s.cluster)
		step += scatterGrid + 16*words*float64(s.blocks())*side/scatterGridRate + scatterGridThread*words/float64(s.threads())
		if s.cluster > 1 {
			step += scatterGridPush
		}
		if s.cluster > 1 && s.cluster < 16 {
			step *= scatterSmallCluster
		}
	} else if s.cluster > 1 { // groups of one block push nothing
		step += scatterSide * side
	} else if s.Gates == 1 {
		step += scatterAlone
	}
	return float64(ints.CeilDiv(groups, together)) * step
}
