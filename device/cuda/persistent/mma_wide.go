package persistent

import (
	"fmt"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/knob"
)

// wideVariant multiplies on tensor cores: two warpgroups share the columns, for up to 256 sequences at once.
var wideVariant = &Variant{
	Kernel:     kernels.Kernel{Name: "mma-wide", Headers: []string{"mma_wide"}, Files: []string{"fragments", "mma_wide"}, Entry: "mma_wide_layer"},
	Strategies: []int{inWideProducts}, needs: "clusters of blocks", tensor: true,
	Exchange: "the copy engine copies states in portions, as blocks finish them",
	words: map[string]string{
		"COPIERS":  "blocks that copy for each other: %d",
		"PARTNERS": "blocks that share columns: %d",
		"PORTION":  "products per copy: %d",
		"DEPTH":    "places for a warpgroup's copies: %d",
	},
	fit: Fit{0.68, 0.1}, // of 10 layers beyond the chip
	considered: func(c *Chooser, l Layer) (turn, bool) {
		return first.provided(c.onTensorCores(l) && c.allows(inWideProducts)), c.Knobs["resident"] == inWideProducts
	},
	configs: inGroups(wides),
}

// A wide says how mma_wide.cu divides a layer. A block has 64 rows of weights. Two warpgroups share
// its columns, in products of 16 columns each. With one gate, two blocks may be partners: they have
// the same rows, and each has half of the columns.
type wide struct {
	Layer
	states   int // values of the cell that a unit keeps
	cluster  int // blocks that share the units
	partners int // blocks that share the columns of the same rows: 1, or 2 that are a cluster
	copiers  int // blocks per cluster, which copy for each other
	samples  int // sequences per turn
	passes   int // turns per step
	products int // products per warpgroup and turn
	held     int // products whose weights are in registers
	portion  int // products per copy
	depth    int // places for a warpgroup's copies
}

const (
	wideSamples  = 256 // most sequences per turn: one product takes no more
	wideThreads  = 384
	wideMore     = 232 // registers of a multiplying thread: the third warpgroup hands on some of the 168 that each thread gets at launch
	wideFewer    = 40  // registers of the other threads
	wideOverhead = 52  // registers of a multiplying thread besides sums and weights
	wideCopy     = 12 << 10
	wideRing     = 8 // most copies in a ring
)

// rows returns the number of a unit's rows: cells with several gates take four.
func (w wide) rows() int {
	if w.Gates == 1 {
		return 1
	}
	return 4
}

func (w wide) units() int { return 64 / w.rows() }

// tile returns the bytes of 16 columns of h.
func (w wide) tile() int { return 32 * w.samples }

func (w wide) portions() int { return ints.CeilDiv(w.products, w.portion) }

// cells returns the cells per thread and turn.
func (w wide) cells() int { return w.samples / 4 / w.rows() / w.partners }

// shared returns the bytes of shared memory of a block: barriers, rings, weights that do not fit
// registers, sums of both warpgroups and of the partner, and states.
func (w wide) shared() int {
	return ints.RoundUp((4*w.depth+2*(w.partners-1))*8, 128) + 2*w.depth*w.portion*w.tile() + 4096*(w.products-w.held) + 256*w.samples*w.partners + 1024*w.passes*w.cells()*w.states
}

// inCluster returns the blocks per cluster. Partners copy for themselves.
func (w wide) inCluster() int { return w.copiers * w.partners }

// together returns how many groups run at the same time.
func (w wide) together(p driver.Properties) int {
	n := p.SMs / w.cluster
	if c := w.inCluster(); c > 1 {
		n = min(n, p.Clusters[c]*c/w.cluster)
	}
	return n
}

// shaped fills in how w, of so many blocks at most, divides the units, or says why it does not fit.
func (w wide) shaped(blocks int, p driver.Properties) (wide, string) {
	switch {
	case w.Weights.Bytes() != 2:
		return w, "warpgroups multiply values of 16 bits: set bf16 or fp16"
	case w.Gates == 2 || w.Gates > 4:
		return w, fmt.Sprintf("warpgroups run cells with one, three or four gates, not %d", w.Gates)
	case w.Resets:
		return w, "units have no room for resets"
	case w.Gates == 1 && w.Inputs > 1:
		return w, fmt.Sprintf("a unit with one gate has room for one input, and its cell has %d", w.Inputs)
	case w.Inputs > 4:
		return w, fmt.Sprintf("a unit has room for four inputs, and its cell has %d", w.Inputs)
	case w.samples%16 != 0:
		return w, fmt.Sprintf("%d sequences are not a multiple of 16", w.samples)
	}
	rows := ints.RoundUp(ints.CeilDiv(w.Hidden, w.units()), w.rows()*w.partners) // each warpgroup has an even number of products
	w.cluster, w.products, w.copiers = rows*w.partners, rows*w.units()/32/w.partners, 1
	switch {
	case w.cluster > blocks:
		return w, fmt.Sprintf("%d units take %d blocks, and there are %d", w.Hidden, w.cluster, blocks)
	case w.together(p) < 1:
		return w, fmt.Sprintf("%d units take %d clusters of two blocks, and %d run at the same time", w.Hidden, rows, p.Clusters[2])
	}
	if w.partners == 1 && w.cluster%2 == 0 && p.Clusters[2] > 0 && p.Clusters[2]*2/w.cluster == p.SMs/w.cluster {
		w.copiers = 2
	}
	groups := min(w.together(p), ints.CeilDiv(w.Batch, w.samples))
	w.passes = ints.CeilDiv(ints.CeilDiv(w.Batch, w.samples), max(1, groups))
	w.held = min(w.products, (wideMore-wideOverhead-w.samples/2)/4) / 2 * 2
	w.portion = max(1, wideCopy/w.tile(), ints.CeilDiv(w.products, 32))
	w.portion = min(w.portion, w.products)
	for w.depth = min(wideRing, w.portions()+1); w.shared() > p.Shared; w.depth-- {
		if w.depth == 2 {
			return w, fmt.Sprintf("%d weights of a block take %d KiB of shared memory beyond registers, and there are %d", 64*w.Hidden, w.shared()>>10, p.Shared>>10)
		}
	}
	return w, ""
}

// config returns w as a Config.
func (w wide) config(p driver.Properties) Config {
	t := Config{
		spread: true, Order: ByLane, few: true, blocks: w.cluster, samples: w.samples, threads: wideThreads, shared: w.shared(), together: w.together(p), cycles: w.cycles(),
		sizes: codegen.Constants(
			"SPREAD", 1, "CLUSTER", w.cluster, "COPIERS", w.copiers, "PARTNERS", w.partners, "UNITS", w.units(), "BAND", w.units()/4, "SAMPLES", w.samples,
			"PRODUCTS", w.products, "HELD", w.held, "PORTION", w.portion, "DEPTH", w.depth, "MORE", wideMore, "FEWER", wideFewer, "EXACT", 0,
		),
		Knobs: knob.Params{"resident": inWideProducts, "samples": w.samples, "tensor": 1},
	}
	if c := w.inCluster(); c > 1 {
		t.cluster = c
	}
	if w.Gates == 1 {
		t.Knobs["cluster"] = w.partners
	}
	return t
}

// wides adds the configurations of groups of so many blocks whose warpgroups multiply many
// sequences at once.
func wides(c *Chooser, l Layer, spread bool, blocks int, add func(Config, string)) {
	partners := c.partners(l)
	if c.Knobs["tile"] != 0 || c.Knobs["lanes"] != 0 || !spread || len(partners) == 0 { // it has no such knobs
		return
	}
	if !c.Properties.Hopper {
		add(Config{}, "only Hopper GPUs multiply by warpgroups")
		return
	}
	samples := c.choose("samples", wideTurns(l.Batch, c.Properties.SMs/blocks)...)
	if len(samples) == 0 {
		add(Config{}, fmt.Sprintf("%d sequences are too few for products of a warpgroup", l.Batch))
	}
	for _, n := range samples {
		for _, m := range partners {
			w, no := wide{Layer: l, states: statesOf(l), samples: n, partners: m}.shaped(blocks, c.Properties)
			if no != "" {
				add(Config{}, no)
				continue
			}
			add(w.config(c.Properties), "")
		}
	}
}

// partners lists the numbers of blocks that may share the columns of a layer in mma_wide.cu. Two
// share those of one gate if the knob "cluster" asks for it and for that kernel: nobody has timed them.
func (c *Chooser) partners(l Layer) []int {
	n := c.Knobs["cluster"]
	switch {
	case n == 0:
		return []int{1}
	case l.Gates == 1 && n <= 2 && c.Knobs["resident"] == inWideProducts:
		return []int{n}
	}
	return nil
}

// wideTurns lists the numbers of sequences per turn to try, for so many groups.
func wideTurns(batch, groups int) (all []int) {
	each := ints.CeilDiv(batch, groups)
	for turns := 1; turns <= 8; turns++ {
		if n := ints.RoundUp(ints.CeilDiv(each, turns), 16); n >= 32 && n <= wideSamples && (len(all) == 0 || all[len(all)-1] != n) {
			all = append(all, n)
		}
	}
	return all
}

// mma-wide: from clocks in the kernel for six layers, with 1 to 7 turns per step, to 7 %; one gate
// takes 25 % more.
const (
	wideProduct  = 0.5 // each sequence in a product of 16 columns
	wideLeast    = 30  // least of such a product
	wideRate     = 44  // bytes per cycle that reach a multiprocessor
	wideSum      = 650 // sums through shared memory
	wideCell     = 950 // cells and the count of their results,
	wideGate     = 160 // per gate,
	wideFunction = 38  // and per gate of each cell of a thread
	wideRest     = 65  // each sequence beyond wideFewRest: results, and inputs that lanes gather
	wideFewRest  = 20
	wideRestOne  = 680  // with one gate,
	wideRestEach = 30   // and each sequence
	wideJoin     = 850  // sums of a partner, through its cluster: estimated,
	wideAlone    = 2000 // from the count to the first copy, which only another turn hides,
	wideBlock    = 10   // and per block that counts
	wideCaution  = 1.47 // factor: other models overestimate by as much
)

// cycles predicts a step of all sequences: products, which wait for copies, then sums, cells and
// results. A single turn per step waits for its own exchange.
func (w wide) cycles() float64 {
	products, cells, gates := float64(2*w.products), float64(w.cells()), float64(w.Gates)
	turn := products * max(wideLeast, wideProduct*float64(w.samples), float64(w.tile())/wideRate)
	turn += wideSum + wideCell + gates*(wideGate+wideFunction*cells)
	rest := float64(wideRest * (w.samples - wideFewRest))
	if w.Gates == 1 {
		rest = float64(wideRestOne + wideRestEach*w.samples/w.partners)
	}
	if w.passes == 1 {
		rest = max(rest, wideAlone+wideBlock*float64(w.cluster))
	}
	if w.partners > 1 {
		turn += wideJoin
	}
	return float64(w.passes) * wideCaution * (turn + rest)
}
