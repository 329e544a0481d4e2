package persistent

import (
	"fmt"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/knob"
)

// backwardWideVariant multiplies on tensor cores: warpgroups multiply up to 256 sequences at once; weights beyond the chip come from the L2 cache.
var backwardWideVariant = &Variant{
	Kernel:   kernels.Kernel{Name: "backward-wide", Headers: []string{"backward_wide"}, Files: []string{"ring", "backward_wide"}, Entry: "back_layer", Ahead: true},
	Backward: true, Strategies: []int{inWideProducts}, needs: "clusters of blocks", tensor: true,
	Exchange: "the copy engine copies gradients in portions, as clusters finish them; sums are pushed within a cluster",
	aside:    "it is not predicted to be the fastest; wideback=1 asks for it",
	words: map[string]string{
		"WARPGROUPS": "warpgroups that multiply: %d",
		"ROUND":      "places for streamed weights, in products: %d",
	},
	fit:    Fit{1.78, 0.14}, // of 9 layers beyond the chip, on an H100
	onChip: Fit{0.77, 0.3},  // the factor of backward-bulk; 32 layers on an H100 rank against that as predicted
	considered: func(c *Chooser, l Layer) (turn, bool) {
		switch {
		case c.Knobs[widebackKnob] == 1:
			return alone, true
		case l.Gates == 1: // one gate with all weights on chip was not timed
			return ifNone.provided(c.allows(inWideProducts)), false
		}
		return additional.provided(c.allows(inWideProducts)), false
	},
	configs: backwardWides,
}

// A backwardWide says how backward_wide.cu divides a layer. A cluster has all columns of tiles of
// 64 units. Each of its blocks has a part of the columns.
type backwardWide struct {
	Layer
	clusters   int // per group
	cluster    int // blocks per cluster
	warpgroups int // per block, that multiply
	height     int // tiles per warpgroup
	units      int // per block
	samples    int // sequences per turn
	groups     int // at most; 0: as many as fit
	passes     int // turns per step
	products   int // products per tile and turn
	held       int // products whose weights are in registers
	streamed   int // products whose weights come from memory in each turn
	round      int // places for streamed weights, in products
	portion    int // products per copy of gradients
	depth      int // places for such copies
	near, most int // most products whose weights are in registers, and in shared memory; 0: as many as fit
	l2         int // products whose weights the L2 cache is asked to keep; 0: chosen
}

const (
	backwardWideOverhead = 72 // registers of a multiplying thread besides weights and sums, or results and inputs
	backwardWideInputs   = 8
	backwardWideMost     = 128 // most sequences per turn, unless a knob asks for more: twice as many take compilers minutes
	backwardWideRing     = 48 << 10
	backwardWideFew      = 6 << 10 // bytes per copy of gradients if weights are copied, too
)

// backwardWideRegisters gives the registers per thread, by the number of multiplying warpgroups. A
// launch gives all threads the same number, and another warpgroup hands some of its registers on.
var backwardWideRegisters = map[int]struct{ more, fewer int }{1: {0, 0}, 2: {wideMore, wideFewer}, 3: {152, 56}}

func (g backwardWide) tiles() int   { return g.warpgroups * g.height }
func (g backwardWide) line() int    { return 64 * g.tiles() } // units of a cluster
func (g backwardWide) threads() int { return 128 * (g.warpgroups + 1) }
func (g backwardWide) blocks() int  { return g.clusters * g.cluster }

// tile returns the bytes of 16 columns of gradients; weightsOf returns those of a product's
// weights.
func (g backwardWide) tile() int      { return 32 * g.samples }
func (g backwardWide) weightsOf() int { return 2048 * g.tiles() }

// per returns the products by a cluster's columns in the part of one rank.
func (g backwardWide) per() int { return ints.CeilDiv(g.Gates*g.units, 16) }

// each returns how many pairs of sequences of a unit a thread has.
func (g backwardWide) each() int { return ints.CeilDiv(g.units*g.samples/2, 128*g.warpgroups) }

// far returns the products whose weights are in shared memory.
func (g backwardWide) far() int { return g.products - g.held - g.streamed }

// shared returns the bytes of shared memory of a block: barriers, rings, weights that do not fit
// registers, incoming sums, and carried values.
func (g backwardWide) shared(carried int) int {
	return ints.RoundUp((2*g.depth+2*g.round+3)*8, 128) + g.depth*g.portion*g.tile() + (g.round+g.far())*g.weightsOf() +
		4*g.line()*g.samples + 4*g.passes*g.each()*2*carried*128*g.warpgroups
}

// weightBytes returns the bytes of streamed weights in memory.
func (g backwardWide) weightBytes() int64 { return int64(g.blocks()) * int64(g.streamed*g.weightsOf()) }

// memory returns the bytes through which groups exchange gradients: counters of all clusters, and
// two images for each rank of a cluster.
func (g backwardWide) memory() int64 {
	all := int64(ints.CeilDiv(g.Batch, g.samples) * g.cluster)
	return launch.Alignment + all*(128*int64(g.clusters)+2*int64(g.products*g.tile()))
}

// together returns how many groups run at the same time.
func (g backwardWide) together(p driver.Properties) int {
	n := p.Together(g.cluster) / g.clusters
	if g.groups > 0 {
		n = min(n, g.groups)
	}
	return n
}

// shaped fills in how g divides the units, or says why it does not fit.
func (g backwardWide) shaped(carried int, p driver.Properties) (backwardWide, string) {
	switch {
	case g.Weights.Bytes() != 2:
		return g, "warpgroups multiply values of 16 bits: set bf16 or fp16"
	case g.samples%16 != 0 || g.samples > wideSamples:
		return g, fmt.Sprintf("%d sequences are not a multiple of 16 up to %d", g.samples, wideSamples)
	}
	g.units = g.line() / g.cluster
	if g.units%8 != 0 {
		return g, fmt.Sprintf("%d blocks cannot share %d units in multiples of 8", g.cluster, g.line())
	}
	g.clusters = ints.CeilDiv(g.Hidden, g.line())
	if n := g.together(p); n < 1 || g.clusters > 32 {
		return g, fmt.Sprintf("%d units take %d clusters of %d blocks, and %d run at the same time", g.Hidden, g.clusters, g.cluster, p.Together(g.cluster))
	}
	g.passes = ints.CeilDiv(ints.CeilDiv(g.Batch, g.samples), g.together(p))
	g.products = g.clusters * g.per()
	registers := backwardWideRegisters[g.warpgroups].more
	if registers == 0 {
		registers = MaxRegisters - 7
	}
	room := registers - backwardWideOverhead - max(g.height*g.samples/2, 2*g.each()*(g.Gates+1)+backwardWideInputs)
	if room < 0 {
		return g, fmt.Sprintf("%d sequences take more registers than there are", g.samples)
	}
	g.held = min(g.products, room/(4*g.height))
	if g.near > 0 {
		g.held = min(g.held, g.near)
	}
	g.portion = g.portions(wideCopy)
	if g.depth = min(wideRing, ints.CeilDiv(g.products, g.portion)+1); g.shared(carried) > p.Shared || g.most > 0 {
		if g.portion*g.tile() > backwardWideFew {
			g.portion = g.portions(backwardWideFew)
		}
		g.depth = min(wideRing/2, ints.CeilDiv(g.products, g.portion)+1)
		g = g.tiered(carried, p)
	}
	switch {
	case g.shared(carried) > p.Shared:
		return g, fmt.Sprintf("%d sequences and a ring of weights take %d KiB of shared memory, and there are %d", g.samples, g.shared(carried)>>10, p.Shared>>10)
	case g.memory() > BackwardExchangeBytes(g.Hidden, g.Batch, p):
		return g, "gradients take more memory than there is"
	}
	return g, ""
}

// portions returns how many products one copy of at most so many bytes serves: a divisor of the
// products of a cluster's columns, or a multiple of them.
func (g backwardWide) portions(bytes int) int {
	best, per := 1, g.per()
	for n := 1; n <= g.products && n*g.tile() <= bytes; n++ {
		if per%n == 0 || n%per == 0 {
			best = n
		}
	}
	return best
}

// tiered keeps as many weights in shared memory as fit. The others, if any, come from memory
// through a ring.
func (g backwardWide) tiered(carried int, p driver.Properties) backwardWide {
	g.streamed = g.products - g.held
	rest := max(0, p.Shared-g.shared(carried)) / g.weightsOf()
	if rest >= g.streamed && (g.most == 0 || g.streamed <= g.most) {
		g.streamed = 0
		return g
	}
	g.round = max(2*g.portion, backwardWideRing/g.weightsOf())
	rest = max(0, rest-g.round-1) // one less, for the barriers
	if g.most > 0 {
		rest = min(rest, g.most)
	}
	g.streamed -= min(rest, g.streamed-1)
	return g
}

// kept returns how many products' weights of a block the L2 cache is asked to keep.
func (g backwardWide) kept(p driver.Properties) int {
	if g.streamed == 0 {
		return 0
	}
	return keptInL2(g.streamed, int64(g.blocks()*g.weightsOf()), g.l2, p)
}

// config returns g as a Config.
func (g backwardWide) config(carried int, p driver.Properties) Config {
	registers := backwardWideRegisters[g.warpgroups]
	return Config{
		spread: true, few: true, memory: g.weightBytes(), cluster: g.cluster, blocks: g.blocks(), samples: g.samples, threads: g.threads(), shared: g.shared(carried), together: g.together(p), cycles: g.cycles(p),
		sizes: codegen.Constants(
			"SPREAD", 1, "CLUSTERS", g.clusters, "CLUSTER", g.cluster, "UNITS", g.units, "SAMPLES", g.samples, "WARPGROUPS", g.warpgroups, "HEIGHT", g.height,
			"PRODUCTS", g.products, "HELD", g.held, "PASSING", g.streamed, "ROUND", g.round, "KEPT", g.kept(p), "PORTION", g.portion, "DEPTH", g.depth,
			"MORE", registers.more, "FEWER", registers.fewer,
		),
		Knobs: knob.Params{"resident": inWideProducts, "cluster": g.cluster, "samples": g.samples, "tensor": 1, widebackKnob: 1},
	}
}

// widebackKnob asks for backward-wide also if weights fit on chip.
const widebackKnob = "wideback"

// backwardWides lists the configurations of backward-wide, whose warpgroups multiply many sequences
// at once, that knobs allow, or says why there are none.
func backwardWides(c *Chooser, l Layer) ([]Config, string) {
	var all []Config
	switch {
	case c.Knobs["tensor"] == 2:
		return nil, "warpgroups multiply on tensor cores, and tensor=2 rules these out"
	case !c.Properties.Hopper:
		return nil, "only Hopper GPUs multiply by warpgroups"
	}
	why, carried := noGroups(c), len(kernels.Carried(l.Cell))
	seen := map[string]bool{}
	for _, cluster := range c.choose("cluster", 2, 4, 8) {
		for warpgroups := 1; warpgroups <= 3; warpgroups++ {
			for height := 1; height <= 2; height++ {
				g := backwardWide{Layer: l, cluster: cluster, warpgroups: warpgroups, height: height, groups: c.Knobs["groups"], near: c.Knobs["near"], most: c.Knobs["far"], l2: c.Knobs["kept"]}
				clusters := ints.CeilDiv(l.Hidden, g.line())
				for _, samples := range c.choose("samples", backwardTurns(l.Batch, max(1, c.Properties.Together(cluster)/clusters))...) {
					if cluster < 2 {
						continue
					}
					g.samples = samples
					shaped, no := g.shaped(carried, c.Properties)
					if no != "" {
						why = no
						continue
					}
					if t := shaped.config(carried, c.Properties); !seen[t.sizes] {
						seen[t.sizes] = true
						t.Knobs["groups"] = c.choose("groups", max(1, min(shaped.together(c.Properties), ints.CeilDiv(l.Batch, samples))))[0]
						for _, name := range []string{"near", "far", "kept"} {
							if v := c.Knobs[name]; v != 0 {
								t.Knobs[name] = v
							}
						}
						all = append(all, t)
					}
				}
			}
		}
	}
	return all, why
}

// backwardTurns lists the numbers of sequences per turn to try, for so many groups.
func backwardTurns(batch, groups int) (all []int) {
	each := ints.CeilDiv(batch, groups)
	for turns := 1; turns <= 8; turns++ {
		if n := ints.RoundUp(ints.CeilDiv(each, turns), 16); n <= backwardWideMost && (len(all) == 0 || all[len(all)-1] != n) {
			all = append(all, n)
		}
	}
	return all
}

// backward-wide: rates of products and copies as for mma-wide, which has the same loops; the rest
// is estimated. Nine layers on an H100 rank against backward-stream as predicted.
const (
	backwardWideBoth  = 0.2  // unhidden share of the shorter of products and copies
	backwardWidePush  = 700  // until sums arrive,
	backwardWideSent  = 24   // at so many bytes per cycle
	backwardWideCell  = 1300 // cells and the count of their results,
	backwardWideGate  = 160  // per gate,
	backwardWideEach  = 45   // and per gate of each cell of a thread
	backwardWideStore = 25   // a result of a cell of a thread, which other turns hide
)

// cycles predicts a step of all sequences: products, which wait for copies, then sums of the
// cluster, cells and results. A single turn per step waits for its own exchange, while the ring of
// weights fills again.
func (g backwardWide) cycles(p driver.Properties) float64 {
	gates, cells := float64(g.Gates), float64(2*g.each())
	products := float64(g.tiles()*g.products) * max(wideLeast, wideProduct*float64(g.samples))
	rate := float64(wideRate)
	streamed, room := float64(g.streamed*g.weightsOf()), float64(g.round*g.weightsOf())
	if g.streamed > 0 {
		rate = rateOfStream(float64(g.weightBytes()), p)
	}
	copies := (float64(g.products*g.tile()) + max(0, streamed-room)) / rate
	turn := max(products, copies) + backwardWideBoth*min(products, copies)
	turn += backwardWidePush + float64(4*g.line()*g.samples)/backwardWideSent
	turn += backwardWideCell + gates*(backwardWideGate+backwardWideEach*cells)
	rest := backwardWideStore * gates * cells
	if g.passes == 1 {
		rest = max(rest, wideAlone+wideBlock*float64(g.clusters)+min(streamed, room)*streamByte)
	}
	return float64(g.passes) * (turn + rest)
}
