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

// backwardBulkVariant multiplies on tensor cores: each cluster gathers the gradients of all gates.
var backwardBulkVariant = &Variant{
	Kernel:   kernels.Kernel{Name: "backward-bulk", Headers: []string{"backward_bulk"}, Files: []string{"fragments", "ring", "backward_bulk"}, Entry: "back_layer"},
	Backward: true, Strategies: []int{inBulk}, needs: "clusters of blocks", tensor: true,
	Exchange: "the copy engine copies gradients; sums are pushed within a cluster",
	words:    backwardBulkWords,
	fit:      Fit{0.77, 0},
	considered: func(c *Chooser, _ Layer) (turn, bool) {
		allowed := c.allows(inBulk) || c.allows(inWideProducts)
		return first.provided(c.Knobs["tensor"] != 2 && allowed && c.hasClusters()), true
	},
	configs: backwardBulks,
}

var backwardBulkWords = map[string]string{
	"BAND":   "units whose gradients lie side by side: %d",
	"SLOTS":  "places for a turn's gradients: %d",
	"WORDED": "gradients travel as words",
}

// A backwardBulk says how backward_bulk.cu divides a layer.
type backwardBulk struct {
	Layer
	clusters int  // per group
	cluster  int  // blocks per cluster
	units    int  // per block, a multiple of band
	band     int  // units whose gradients lie side by side
	samples  int  // sequences per turn
	height   int  // tiles of 16 units per warp
	split    int  // warps that share a tile's columns
	chunks   int  // 64-byte pieces of a warp's columns
	resident int  // pieces in registers
	streamed int  // pieces that come from memory in each turn
	portion  int  // pieces per copy
	depth    int  // places for a warp's copies; 0: no weights are streamed
	near     int  // most pieces in registers if weights are streamed; 0: as many as fit
	far      int  // and in shared memory
	l2       int  // copies that the L2 cache is asked to keep; 0: chosen
	passes   int  // turns per step
	slots    int  // images of gradients held at the same time
	each     int  // values per thread
	words    bool // gradients travel as words
}

func (g backwardBulk) warps() int   { return g.cluster * g.units / 16 / g.height * g.split }
func (g backwardBulk) threads() int { return 32 * g.warps() }
func (g backwardBulk) blocks() int  { return g.clusters * g.cluster }

// piece returns the bytes of a band's gradients of one sequence.
func (g backwardBulk) piece() int {
	n := g.Gates * g.band * g.Weights.Bytes()
	if g.Exact {
		return ints.RoundUp(n, 64)
	}
	return n
}

// image returns the bytes of the gradients that a block gathers in a turn.
func (g backwardBulk) image() int {
	row := 64 * g.split * g.chunks
	if row%128 == 0 {
		row += 64
	}
	n := g.samples * row
	if g.Exact {
		n += 4 * g.samples * g.split * (g.chunks * 64 / g.piece())
	}
	return n
}

// record returns how many words a block gathers for one sequence.
func (g backwardBulk) record() int {
	bytes := g.Gates * g.band * g.Weights.Bytes()
	return g.clusters * g.units / g.band * (bytes/4 + ints.FromBool(g.Exact))
}

// ring is the number of buffers for sums.
const ring = 4

// shared returns the bytes of shared memory of a block: barriers, images, incoming sums, weights
// that do not fit registers, and carried values.
func (g backwardBulk) shared(carried int) int {
	return 128 + max(g.chunk(), g.slots*g.image()+g.sums()+g.chunk()*(g.chunks-g.resident-g.streamed+g.depth*g.portion)+
		ints.CeilDiv(g.warps()*g.depth, 2)*16+4*g.threads()*g.passes*g.each*carried)
}

// chunk returns the bytes of one piece of all warps; sums returns those of the incoming sums.
func (g backwardBulk) chunk() int { return 4 * g.threads() * 8 * g.height }
func (g backwardBulk) sums() int  { return ring * 4 * g.cluster * g.split * g.units * g.samples }

// weightBytes returns the bytes of streamed weights in memory.
func (g backwardBulk) weightBytes() int64 { return int64(g.blocks()) * int64(g.streamed*g.chunk()) }

// kept returns how many of a warp's copies the L2 cache is asked to keep.
func (g backwardBulk) kept(p driver.Properties) int {
	if g.depth == 0 {
		return 0
	}
	return keptInL2(g.streamed/g.portion, int64(g.blocks())*int64(g.portion*g.chunk()), g.l2, p)
}

// memory returns the bytes through which groups exchange gradients: counters, and two images for
// each rank of a cluster.
func (g backwardBulk) memory() int64 {
	all := int64(ints.CeilDiv(g.Batch, g.samples) * g.cluster)
	if g.words {
		return launch.Alignment + all*16*int64(g.record()*g.samples)
	}
	return launch.Alignment + all*(128+2*int64(g.image()))
}

// together returns how many groups run at the same time.
func (g backwardBulk) together(p driver.Properties) int { return p.Together(g.cluster) / g.clusters }

// shaped fills in how g, of so many clusters at most, divides the units, or says why it does not
// fit. A thread needs registers for each of its values, besides carried ones in shared memory.
func (g backwardBulk) shaped(registers, carried int, p driver.Properties) (backwardBulk, string) {
	g.units = ints.RoundUp(ints.CeilDiv(g.Hidden, g.clusters*g.cluster), 8)
	if g.band = 16; g.units%16 != 0 {
		g.band = 8
	}
	g.clusters = ints.CeilDiv(g.Hidden, g.units*g.cluster)
	tiles := ints.CeilDiv(g.cluster*g.units, 16)
	switch {
	case g.cluster*g.units%(16*g.height) != 0:
		return g, fmt.Sprintf("%d units of a cluster are no multiple of %d", g.cluster*g.units, 16*g.height)
	case g.threads() > 512:
		return g, fmt.Sprintf("%d tiles of units, each shared by %d warps, are %d threads", tiles, g.split, g.threads())
	case g.clusters < 2:
		return g, "it needs at least two clusters"
	case g.together(p) < 1:
		return g, fmt.Sprintf("no %d clusters of %d blocks run at the same time", g.clusters, g.cluster)
	}
	if g.passes = ints.CeilDiv(ints.CeilDiv(g.Batch, g.samples), g.together(p)); g.words && g.passes > 1 {
		return g, "groups that take turns cannot exchange words"
	}
	runs := g.clusters * g.units / g.band
	if g.Exact {
		g.chunks = ints.CeilDiv(runs, g.split) * g.piece() / 64
	} else {
		g.chunks = ints.CeilDiv(runs*g.piece(), 64*g.split)
	}
	g.each = ints.CeilDiv(g.units*g.samples, g.threads())
	sums := 4 * g.height * g.samples / 8
	overhead := 80 + g.each*registers + 2*sums + g.samples/2
	if g.Exact {
		overhead += 2*sums + 8
	}
	if g.depth > 0 { // for the ring
		overhead += 2*g.samples - 4
	}
	room := min(MaxRegisters, RegistersOfSM/ints.RoundUp(g.threads(), 128)/8*8) - overhead
	if g.depth > 0 && room < 0 {
		return g, fmt.Sprintf("%d sequences take more registers than there are", g.samples)
	}
	g.resident = min(g.chunks, max(0, room)/(8*g.height))
	if g.slots = min(2, g.passes+ints.FromBool(g.words)); g.depth > 0 || g.shared(carried) > p.Shared && !g.words {
		g.slots = 1
	}
	if g.depth > 0 {
		if g.chunks < g.portion {
			return g, "there are fewer columns than one copy has"
		}
		g = g.tiered(carried, p)
	}
	if g.shared(carried) > p.Shared {
		return g, fmt.Sprintf("%d weights of a block's %d units take %d KiB of shared memory beyond registers, and there are %d",
			g.Gates*g.Hidden*g.units, g.units, g.shared(carried)>>10, p.Shared>>10)
	}
	if g.memory() > BackwardExchangeBytes(g.Hidden, g.Batch, p) {
		return g, "gradients take more memory than there is"
	}
	return g, ""
}

// tiered keeps as many pieces in shared memory as fit. The others come from memory, in whole
// copies.
func (g backwardBulk) tiered(carried int, p driver.Properties) backwardBulk {
	if g.slots*g.image()+g.sums() < g.chunk() { // registers are filled through this memory
		g.resident = 0
	}
	if g.near > 0 {
		g.resident = min(g.resident, g.near)
	}
	g.resident = min(g.resident, g.chunks-g.portion)
	g.streamed = g.chunks - g.resident
	room := max(0, p.Shared-g.shared(carried)) / g.chunk()
	if g.far > 0 {
		room = min(room, g.far)
	}
	g.streamed -= min(room, g.streamed-g.portion)
	g.streamed = ints.RoundUp(g.streamed, g.portion)
	g.resident = min(g.resident, g.chunks-g.streamed)
	return g
}

// config returns g as a Config.
func (g backwardBulk) config(carried int, p driver.Properties) Config {
	strategy := inBulk
	if g.depth > 0 {
		strategy = byStreaming
	}
	return Config{
		spread: true, few: true, memory: g.weightBytes(), cluster: g.cluster, blocks: g.blocks(), samples: g.samples, threads: g.threads(), shared: g.shared(carried), together: g.together(p), cycles: g.cycles(p),
		sizes: codegen.Constants(
			"SPREAD", 1, "CLUSTERS", g.clusters, "CLUSTER", g.cluster, "UNITS", g.units, "SAMPLES", g.samples,
			"WARPS", g.warps(), "BAND", g.band, "HEIGHT", g.height, "SPLIT", g.split, "CHUNKS", g.chunks,
			"RESIDENT", g.resident, "PASSING", g.streamed, "PORTION", max(1, g.portion), "DEPTH", g.depth, "KEPT", g.kept(p), "SLOTS", g.slots, "EXACT", ints.FromBool(g.Exact), "WORDED", ints.FromBool(g.words),
			"ORDERED", 0,
		),
		Knobs: knob.Params{"resident": strategy, "samples": g.samples, "tensor": 1},
	}
}

// backwardBulks lists the configurations of backward-bulk that knobs allow, or says why there are
// none.
func backwardBulks(c *Chooser, l Layer) ([]Config, string) {
	var all []Config
	why, registers, carried := noGroups(c), unitRegisters(l.Cell), len(kernels.Carried(l.Cell))
	seen := map[string]bool{}
	for _, samples := range c.samples(l.Batch, 8, 16, 32) {
		if samples%8 != 0 {
			continue
		}
		for _, cluster := range c.choose("cluster", 2, 4, 8) {
			for _, groups := range c.choose("groups", 1, 2, 3, 4, 8, maxGroups) {
				for _, height := range []int{1, 2} {
					for split := 1; split <= 8; split *= 2 {
						for _, words := range []bool{false, true} {
							if cluster < 2 || groups > ints.CeilDiv(l.Batch, samples) && c.Knobs["groups"] == 0 {
								continue
							}
							g := backwardBulk{Layer: l, cluster: cluster, clusters: c.Properties.Together(cluster) / groups, samples: samples, height: height, split: split, words: words}
							if g.clusters < 2 {
								continue
							}
							g, no := g.shaped(registers, carried, c.Properties)
							if no != "" {
								why = no
								continue
							}
							if t := g.config(carried, c.Properties); !seen[t.sizes] {
								seen[t.sizes] = true
								t.Knobs["cluster"], t.Knobs["groups"] = cluster, groups
								all = append(all, t)
							}
						}
					}
				}
			}
		}
	}
	return all, why
}

// The gradient by backward-bulk: fitted to 176 measurements, to 9 %.
const (
	gatherProduct      = 14.5 // a product of a warp
	gatherLatency      = 40   // a product that a single warp waits for
	gatherLatencyExact = 60
	gatherFar          = 53   // weights from shared memory that a single warp waits for
	gatherSum          = 16   // a sum of a thread
	gatherLatencyRing  = 4100 // cycles from the request of a copy of weights to its arrival under load, from two settings of a trial
	gatherCopyRate     = 6400 // bytes per cycle from memory to all blocks
	gatherHidden       = 780  // cycles of that which products hide
	gatherOne          = 4020 // wait of a single turn per step,
	gatherTwo          = 2490 // of each of two turns,
	gatherMore         = 2020 // and of each of more
	gatherWords        = 4000 // wait for words; not measured
	gatherWord         = 60   // and each word of a thread
	gatherWordsCaution = 1.6  // factor, since words were not measured
)

// cycles predicts a step of all sequences; see backwardScatter.cycles. A single warp waits for its
// own products and weights, one after the other. With few turns, each waits for the exchange of the
// one before: gradients are written, counted, seen and copied, and sums pushed. That hides a part
// of the copies from memory to all blocks. Words were not measured and are counted with caution.
func (g backwardBulk) cycles(p driver.Properties) float64 {
	products, latency := 2.0, float64(gatherLatency)
	if g.Exact {
		products, latency = 3, gatherLatencyExact
	}
	warps, chunks, height, far := float64(g.warps()), float64(g.chunks), float64(g.height), float64(g.height*(g.chunks-g.resident))
	multiply := max(gatherProduct*products*height*chunks*float64(g.samples/8*ints.CeilDiv(g.warps(), 4)), latency*chunks+gatherFar*far)
	load := warps * (chunks*float64(g.samples)/2 + 8*far)
	turn := max(multiply, load) + min(multiply, load)/5 + gatherSum*float64(g.each*g.cluster*g.split)
	turn += max(0, float64(g.image()*g.blocks()*min(g.together(p), ints.CeilDiv(g.Batch, g.samples)))/gatherCopyRate-gatherHidden)
	if g.depth > 0 {
		streamed, ring := float64(g.streamed*g.chunk()), float64(g.depth*g.portion*g.chunk())
		rate := rateOfStream(float64(g.weightBytes()), p)
		turn = max(turn, max(0, streamed-ring)/min(rate, ring/gatherLatencyRing), streamed/rate-gatherOne)
	}
	switch {
	case g.words:
		return gatherWordsCaution * (turn + gatherWords + gatherWord*float64(g.record()*min(g.Batch, g.samples))/float64(g.threads()))
	case g.passes == 1:
		turn += gatherOne
	case g.passes == 2:
		turn += gatherTwo
	default:
		turn += gatherMore
	}
	return float64(g.passes) * turn
}
