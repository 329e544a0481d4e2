package persistent

import (
	"fmt"
	"math"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/knob"
)

// simtVariant multiplies by fused multiply-adds: threads share the columns of a unit.
var simtVariant = &Variant{
	Kernel:     kernels.Kernel{Name: "simt", Headers: []string{"simt"}, Files: []string{"simt"}, Entry: "simt_layer"},
	Strategies: []int{inClusters, overGrid},
	Exchange:   pushes,
	words: map[string]string{
		"TILE":    "units per thread: %d",
		"SETTLED": "weights stay in registers over all steps",
	},
	fit: Fit{0.75, 0.16},
	considered: func(c *Chooser, _ Layer) (turn, bool) {
		if c.Knobs["tensor"] == 1 {
			return lastResort, false
		}
		return additional, true
	},
	configs: inGroups(simts),
}

// A simt says how simt.cu divides a layer.
type simt struct {
	Layer
	spread   bool // groups are spread over the GPU, not clusters
	cluster  int  // blocks that share the units
	units    int  // per block
	samples  int  // sequences per group
	tile     int  // units per thread
	lanes    int  // threads that share a unit's columns
	chunks   int  // pieces of a thread's columns
	resident int  // pieces in registers
}

func (t simt) threads() int { return t.units / t.tile * t.lanes }

// step returns how many adjacent columns a thread has.
func (t simt) step() int { return max(1, 4/t.samples) }

// per returns the number of a thread's weights per piece.
func (t simt) per() int { return t.tile * t.Gates * t.step() }

func (t simt) columns() int { return t.chunks * t.lanes * t.step() }

// shared returns the bytes of shared memory of a block: barriers, two buffers of states, and
// weights that do not fit registers.
func (t simt) shared() int {
	return 128 + 2*4*t.columns()*t.samples + 4*t.threads()*t.per()*(t.chunks-t.resident)
}

// sums returns the number of values that a thread adds up.
func (t simt) sums() int { return ints.PowerOfTwo(t.tile) * ints.PowerOfTwo(t.Gates) * t.samples }

// overhead returns the registers of a thread besides its weights.
func (t simt) overhead() int {
	each := max(1, t.sums()/t.lanes)
	chains := 1
	if t.samples == 1 {
		chains = 2
	}
	return 48 + max(chains*t.sums()+4, 14*each) + 10*(each-1)
}

// registers returns the registers of a thread in all, at most 255.
func (t simt) registers() int { return t.overhead() + t.resident*t.per() }

// limit returns the most registers that a thread can have.
func (t simt) limit() int {
	return min(MaxRegisters, RegistersOfSM/ints.RoundUp(t.threads(), 128)/8*8)
}

// settled reports whether the kernel waits for all weights before the steps. Three conditions:
// enough registers are free that none spill; it was not measured to be slower; and as many of the
// batch's clusters still run side by side.
func (t simt) settled(batch int, p driver.Properties) bool {
	if t.spread && t.Gates > 1 || t.limit()-t.registers() <= 5 {
		return false
	}
	more := 11 // registers that this takes for gru 256 with one sequence at a time; gru 192 takes twice as many
	if t.asked(p) {
		more *= 2
	}
	return t.spread || p.Part || t.samples > 1 || max(1, t.perSM(more, p)) >= min(t.perSM(0, p), ints.CeilDiv(batch, t.together(p)))
}

// shaped fills in how t, of so many blocks at most, divides the units, or says why it does not fit.
func (t simt) shaped(blocks int, p driver.Properties) (simt, string) {
	t.units = ints.RoundUp(ints.CeilDiv(t.Hidden, blocks), 32/t.lanes*t.tile)
	t.cluster = ints.CeilDiv(t.Hidden, t.units)
	t.chunks = ints.CeilDiv(t.Hidden, t.lanes*t.step())
	switch threads := t.threads(); {
	case t.samples != ints.PowerOfTwo(t.samples):
		return t, fmt.Sprintf("%d sequences are not a power of two", t.samples)
	case ints.PowerOfTwo(t.tile)*ints.PowerOfTwo(t.Gates) > t.lanes:
		return t, "a thread has more rows than lanes to sum them over"
	case threads > 1024:
		return t, fmt.Sprintf("a block of %d units has %d threads, of at most 1024", t.units, threads)
	default:
		t.resident = min(t.chunks, max(0, t.limit()-t.overhead())/t.per())
	}
	if t.resident < t.chunks && t.per()%4 != 0 {
		return t, "weights in shared memory come in fours"
	}
	if t.shared() > p.Shared {
		return t, fmt.Sprintf("%d weights of a block's %d units take %d KiB of shared memory beyond registers, and there are %d",
			t.Gates*t.Hidden*t.units, t.units, t.shared()>>10, p.Shared>>10)
	}
	return t, ""
}

// perSM returns how many blocks fit on a multiprocessor if threads have more registers than they
// need, by more. With two or four sequences at a time, compilers take up to 36 and 52 more than
// registers counts. Each quarter of a multiprocessor has registers of its own, for whole warps. For
// sizes of clusters that the GPU was not asked about, more clusters fit than are known, which makes
// up for both.
func (t simt) perSM(more int, p driver.Properties) int {
	need, others := t.registers()+more, min(p.Shared/t.shared(), 2048/t.threads())
	if !t.asked(p) {
		return min(RegistersOfSM/(t.threads()*ints.RoundUp(need, 8)), others)
	}
	if t.samples == 2 || t.samples == 4 {
		need = max(need, min(MaxRegisters, need+20+8*t.samples))
	}
	warps := 4 * (RegistersOfSM / 4 / 32 / ints.RoundUp(need, 8))
	return min(warps/(t.threads()/32), others)
}

// asked reports whether the GPU was asked how many clusters of t's size fit.
func (t simt) asked(p driver.Properties) bool { return p.Clusters[t.cluster] > 0 }

// together returns how many groups run at the same time, with one block on each multiprocessor.
func (t simt) together(p driver.Properties) int {
	if t.spread {
		return p.SMs / t.cluster
	}
	return max(1, p.Together(t.cluster))
}

// config returns t as a Config for so many sequences.
func (t simt) config(batch int, p driver.Properties) Config {
	return Config{
		spread: t.spread, Order: ByUnit, few: t.spread || p.Part, blocks: t.cluster, samples: t.samples, threads: t.threads(), shared: t.shared(), together: t.together(p), cycles: t.cycles(batch, p),
		sizes: codegen.Constants(
			"SPREAD", ints.FromBool(t.spread), "CLUSTER", t.cluster, "UNITS", t.units, "SAMPLES", t.samples,
			"TILE", t.tile, "LANES", t.lanes, "CHUNKS", t.chunks, "RESIDENT", t.resident,
			"SETTLED", ints.FromBool(t.settled(batch, p)),
		),
		Knobs: knob.Params{"samples": t.samples, "tile": t.tile, "lanes": t.lanes, "tensor": 2},
	}
}

// simts adds the configurations of groups of so many blocks.
func simts(c *Chooser, l Layer, spread bool, blocks int, add func(Config, string)) {
	for _, samples := range c.samples(l.Batch, 1, 2, 4, 8) {
		for _, tile := range c.choose("tile", tiles(l.Gates, spread, samples)...) {
			for _, lanes := range c.choose("lanes", 4, 8, 16, 32) {
				t := simt{Layer: l, spread: spread, samples: samples, tile: tile, lanes: lanes}
				t, no := t.shaped(blocks, c.Properties)
				if no != "" {
					add(Config{}, no)
					continue
				}
				add(t.config(l.Batch, c.Properties), "")
			}
		}
	}
}

// tiles lists how many units a thread may have. The more units, the fewer warps a block of a spread
// group has, each of which reads all of h. Numbers that are no powers of two take longer to sum,
// which pays with few values.
func tiles(gates int, spread bool, samples int) []int {
	if gates == 1 && spread && samples <= 2 {
		return []int{1, 2, 3, 4, 5, 6, 7, 8}
	}
	return []int{1, 2, 4}
}

// simt: fitted with mma and mma-bulk to 270 forward configurations, to 8 %.
const (
	simtMultiply     = 0.63 // a multiply-add of a warp, per quarter of a multiprocessor
	simtLeastGates   = 1.3  // least for a single warp, which waits for its own sums, with several gates
	simtLeastSamples = 1    // and with three or more sequences
	simtStates       = 0.73 // 128 bytes of states from shared memory, which products hide a little
	simtFar          = 0.93 // 128 bytes of weights from shared memory
	simtChain        = 180  // exchange and functions of one gate
	simtChainGates   = 450  // and of several gates
	simtWarp         = 40   // each further warp per quarter
	simtEach         = 0.6  // share of the chain for each further value of a thread
	simtStage        = 48   // a stage of the sum over lanes
	simtShuffle      = 3.6  // a shuffle of a warp
	simtPush         = 250  // exchange within a cluster
	simtPushShared   = 410  // the same if blocks share a multiprocessor and weights are not settled
	simtGrid         = 560  // exchange through the L2 cache
	simtGridRate     = 2000 // words per cycle through the L2 cache
	simtGridThread   = 60   // each word of a thread
	simtWords        = 710  // the same with words of twice the size
	simtWordsRate    = 1000
	simtWordsThread  = 77
)

// cycles predicts a step of all sequences. Products hide little of the reads of shared memory,
// which delivers 128 bytes per cycle. Nothing hides the chain of exchanges and functions that
// follows.
func (t simt) cycles(batch int, p driver.Properties) float64 {
	clusters := ints.CeilDiv(batch, t.samples)
	together := t.together(p)
	blocks := 1
	if clusters > together && !t.spread && !p.Part {
		blocks = max(1, min(t.perSM(0, p), ints.CeilDiv(clusters, together)))
	}
	waves := ints.CeilDiv(clusters, together*blocks)
	threads := float64(t.threads() * blocks)
	warps := math.Ceil(threads / 128) // per quarter of a multiprocessor
	length := float64(t.columns() / t.lanes * t.samples)
	least := 0.0 // for a single warp, which waits for its own sums
	switch {
	case t.Gates > 1:
		least = simtLeastGates
	case t.samples > 2 && !t.spread:
		least = simtLeastSamples
	}
	multiply := max(least, simtMultiply*warps) * float64(t.tile*t.Gates) * length
	states := threads * length / 32
	far := simtFar * max(1, 128*float64(t.samples)/threads) * threads * float64((t.chunks-t.resident)*t.per()) / 32
	chain := float64(simtChain)
	if t.Gates > 1 {
		chain = simtChainGates
	}
	each := max(1, t.sums()/t.lanes)
	stages := math.Log2(float64(t.lanes))
	shuffles := float64(t.sums()-each) + max(0, stages-math.Log2(float64(t.sums())))
	chain += simtWarp*(warps-1) + simtEach*chain*float64(each-1) + simtStage*stages + simtShuffle*warps*shuffles
	exchange := float64(exchangeAlone)
	if t.cluster == 1 && t.Gates > 1 {
		exchange += exchangeWarp * max(0, float64(t.threads())/32-4)
	}
	if t.spread {
		words := float64(t.Hidden * t.samples)
		everywhere, thread := words*float64(t.cluster*min(clusters, together)), words/threads
		if exchange = simtGrid + everywhere/simtGridRate + simtGridThread*thread; t.units*t.samples < 8 { // few values are sent as words of twice the size: see simt.cu
			exchange = simtWords + everywhere/simtWordsRate + simtWordsThread*thread
		}
	} else if t.cluster > 1 {
		if exchange = simtPush; blocks > 1 && t.asked(p) && !t.settled(batch, p) {
			exchange = simtPushShared
		}
	}
	return float64(waves) * (multiply + simtStates*states + far + chain + exchange)
}
