package persistent

import (
	"fmt"
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/knob"
)

// mmaVariant multiplies on tensor cores: warps share the columns of a band of units.
var mmaVariant = &Variant{
	Kernel:     kernels.Kernel{Name: "mma", Headers: []string{"mma_layer", "mma"}, Files: []string{"fragments", "mma_layer", "mma"}, Entry: "mma_layer"},
	Strategies: []int{inClusters, overGrid}, tensor: true,
	Exchange:   pushes,
	words:      map[string]string{"STREAMED": "inputs per unit, read ahead: %d"},
	fit:        Fit{0.79, 0.22},
	considered: func(c *Chooser, l Layer) (turn, bool) { return first.provided(c.onTensorCores(l)), true },
	configs:    inGroups(mmas(overGrid)),
}

// An mma says how mma.cu, mma_poll.cu or mma_bulk.cu divides a layer.
type mma struct {
	Layer
	states   int  // values of the cell that a unit keeps
	spread   bool // groups are spread over the GPU, not clusters
	bulk     bool // the copy engine copies all states: mma_bulk.cu
	poll     bool // each warp polls the states that it multiplies: mma_poll.cu
	passes   int  // turns of a group, each of samples sequences
	slots    int  // bulk: buffers of states, each for one turn
	cluster  int  // blocks that share the units
	units    int  // per block, a multiple of band
	band     int  // units per warp
	samples  int  // sequences per group
	split    int  // warps that share a band's columns
	chunks   int  // 64-byte pieces of a warp's columns
	resident int  // pieces in registers
	parts    int  // poll: parts of the sequences, which take turns
	streamed bool // inputs are read ahead, to shared memory
}

func (f mma) threads() int { return f.units / f.band * f.split * 32 }

// tiles returns the number of 8-sequence tiles that are multiplied together.
func (f mma) tiles() int { return ints.CeilDiv(ints.CeilDiv(f.samples, f.parts), 8) }

// each returns the number of sequences per thread once sums are formed.
func (f mma) each() int { return max(1, 8*f.tiles()*f.band/(32*f.split)) }

// uneven reports whether each leaves out some sequences.
func (f mma) uneven() bool {
	across := 32 / f.band * f.split
	return f.each()*across < 8*f.tiles()
}

// phased reports whether a state's own bits tell whether it is new.
func (f mma) phased() bool { return f.bounded() > 0 }

// bounded is within, for 16-bit values; else 0.
func (f mma) bounded() int {
	if f.Weights == driver.Single {
		return 0
	}
	return f.Within
}

// height returns the number of a warp's tiles of 16 rows.
func (f mma) height() int { return ints.CeilDiv(f.Gates*f.band, 16) }

// per returns the registers of a thread's weights per piece.
func (f mma) per() int { return 8 * f.height() }

// shared returns the bytes of shared memory of a block: barriers, buffers of states, its own
// states, the sums of its warps, and weights that do not fit registers.
func (f mma) shared() int {
	row := 64 * f.chunks * f.split
	sums := f.threads() / 32 * f.height() * 8 * f.tiles() * 20 * 4
	far := 4 * f.threads() * f.per() * (f.chunks - f.resident)
	if f.poll {
		return max(16, 2*sums+far)
	}
	if row%128 == 0 {
		row += 64
	}
	if f.bulk {
		return 128 + f.slots*f.samples*row + sums + far + 4*f.threads()*f.passes*f.each()*f.states
	}
	stream := 0
	if f.streamed {
		stream = 4 * streamDepth * f.threads() * f.Inputs
	}
	buffers := 2
	if f.spread {
		buffers = 1
	}
	return 128 + 8*f.tiles()*(buffers*row+f.Weights.Bytes()*f.units) + sums + far + stream
}

// streamDepth is how many steps of inputs there are places for.
const streamDepth = 4

// overhead returns the registers of a thread besides its weights.
func (f mma) overhead() int {
	n, sums := 56, max(4, f.height()*f.tiles())
	if f.Exact { // high and low sums
		sums = max(3, 2*f.height()*f.tiles())
	}
	inputs := 2 * f.Gates
	if f.bulk {
		inputs = f.Gates + 2*f.states
	}
	if f.poll { // two portions of states
		n += 32
		if f.bounded() != 1 {
			n += 32
		}
		n += f.each() * (f.parts - 1) * (f.Gates + f.states + 2)
	}
	n += 4*sums + 4*f.tiles() + f.each()*(inputs+6)
	if f.chunks*f.per() > MaxRegisters-n { // some weights are read from shared memory ahead of their use
		n += 16
	}
	return n
}

// polledSamples is how many sequences mma_poll.cu multiplies at a time.
const polledSamples = 16

// shaped fills in how f, of so many blocks at most, divides the units, or says why it does not fit.
func (f mma) shaped(blocks int, p driver.Properties) (mma, string) {
	if f.parts = 1; f.poll {
		f.parts = ints.CeilDiv(f.samples, polledSamples)
	}
	f.units = ints.RoundUp(ints.CeilDiv(f.Hidden, blocks), max(f.band, granule(f.Layer, f.spread)))
	f.cluster = ints.CeilDiv(f.Hidden, f.units)
	f.passes = ints.CeilDiv(ints.CeilDiv(f.Batch, f.samples), f.together(p))
	f.chunks = ints.CeilDiv(f.Hidden*f.Weights.Bytes(), 64*f.split)
	switch threads := f.threads(); {
	case f.band != 4 && f.band != 8 && f.band != 16:
		return f, fmt.Sprintf("a warp has 4, 8 or 16 units, not %d", f.band)
	case f.spread && !f.poll && f.samples%8 != 0:
		return f, fmt.Sprintf("%d sequences are not a multiple of 8", f.samples)
	case f.uneven():
		return f, fmt.Sprintf("the %d sequences cannot be shared evenly by the %d warps of a band", 8*f.tiles(), f.split)
	case threads > 1024:
		return f, fmt.Sprintf("a block of %d units has %d threads, of at most 1024", f.units, threads)
	default:
		room := min(MaxRegisters, RegistersOfSM/ints.RoundUp(threads, 128)/8*8) - f.overhead()
		f.resident = min(f.chunks, max(0, room)/f.per())
	}
	if f.slots = min(2, f.passes); f.bulk && f.shared() > p.Shared {
		f.slots = 1
	}
	f.streamed = f.Inputs > 0 && !f.spread && f.cluster > 1 && f.each() == 1
	if f.shared() > p.Shared {
		f.streamed = false
	}
	if f.shared() > p.Shared {
		return f, fmt.Sprintf("%d weights of a block's %d units take %d KiB of shared memory beyond registers, and there are %d",
			f.Gates*f.Hidden*f.units, f.units, f.shared()>>10, p.Shared>>10)
	}
	return f, ""
}

// together returns how many groups run at the same time.
func (f mma) together(p driver.Properties) int {
	if f.spread {
		return p.SMs / f.cluster
	}
	return max(1, p.Together(f.cluster))
}

// beside returns how many blocks a multiprocessor must have room for. Where several layers share the
// GPU, two of 256 threads fit if compilers take at most 128 registers a thread. For gru of 256 units
// they took 126 without resets, and 156 with them unless they were told.
func (f mma) beside(p driver.Properties) int {
	const above = 16 // what overhead may be too high by; there it is 10
	if f.Resets && p.Part && f.overhead()+f.resident*f.per()-above <= RegistersOfSM/2/f.threads() && 2*f.shared() <= p.Shared {
		return 2
	}
	return 1
}

// config returns f as a Config.
func (f mma) config(p driver.Properties) Config {
	together := f.together(p)
	g := Config{
		beside: f.beside(p), spread: f.spread, Order: ByLane, few: f.spread || p.Part, blocks: f.cluster, samples: f.samples, threads: f.threads(), shared: f.shared(), together: together, cycles: f.cycles(together),
		sizes: codegen.Constants(
			"SPREAD", ints.FromBool(f.spread), "CLUSTER", f.cluster, "UNITS", f.units, "SEQUENCES", f.samples,
			"SAMPLES", 8*f.tiles(), "BAND", f.band, "SPLIT", f.split, "CHUNKS", f.chunks, "RESIDENT", f.resident,
			"EXACT", ints.FromBool(f.Exact),
		),
		Knobs: knob.Params{"samples": f.samples, "tile": f.band, "lanes": 4 * f.split, "tensor": 1},
	}
	switch {
	case f.poll:
		g.sizes += ", " + codegen.Constants("PARTS", f.parts, "BOUNDED", f.bounded())
		g.Knobs["resident"] = byPolling
	case f.bulk:
		g.sizes += ", " + codegen.Constants("SLOTS", f.slots)
		g.Knobs["resident"] = inBulk
	default:
		g.sizes += ", " + codegen.Constants("STREAMED", ints.FromBool(f.streamed)*f.Inputs)
	}
	return g
}

// granule returns the number of which a block's units are a multiple. The blocks of a cluster send
// 16 bytes of states at once, and those of spread groups send words.
func granule(l Layer, spread bool) int {
	if spread {
		return 2
	}
	return 16 / l.Weights.Bytes()
}

// heights lists how many units a warp may have. With one gate of eight units, half a tile of 16
// rows would be empty. Four units are slower, except in large layers that take turns: there they
// use more multiprocessors.
func (c *Chooser) heights(l Layer, resident, samples, blocks int) []int {
	switch units := ints.CeilDiv(l.Hidden, blocks); {
	case c.Knobs["tile"] != 0:
		return []int{c.Knobs["tile"]}
	case l.Gates == 1:
		return []int{16}
	case resident == inBulk && l.Weights != driver.Single && samples < l.Batch && units > 8 && ints.CeilDiv(units, 4)%2 == 1:
		return []int{16, 8, 4}
	}
	return []int{16, 8}
}

// sequences lists how many sequences a group may run at a time: multiples of eight, as they are
// multiplied, or so many that all groups that fit have some. Polling needs no more places than
// there are sequences.
func (c *Chooser) sequences(batch int, spread bool, blocks int) []int {
	all := c.samples(batch, 8, 16, 32)
	if c.Knobs["samples"] != 0 {
		return all
	}
	together := c.Properties.Together(blocks)
	if spread {
		together = c.Properties.SMs / blocks
	}
	if n := ints.CeilDiv(batch, max(1, together)); n <= 32 && !slices.Contains(all, n) {
		all = append(all, n)
	}
	return all
}

// mmas returns what adds the configurations on tensor cores whose states are pushed (overGrid, also
// within clusters), polled or copied in bulk.
func mmas(resident int) divider {
	return func(c *Chooser, l Layer, spread bool, blocks int, add func(Config, string)) {
		if !spread && resident != overGrid || spread && !c.allows(resident) {
			return
		}
		for _, samples := range c.sequences(l.Batch, spread, blocks) {
			if resident == byPolling {
				samples = min(samples, l.Batch)
			}
			for _, band := range c.heights(l, resident, samples, blocks) {
				for _, lanes := range c.choose("lanes", 4, 8, 16, 32) {
					f := mma{Layer: l, states: statesOf(l), spread: spread, bulk: resident == inBulk, poll: resident == byPolling, samples: samples, band: band, split: lanes / 4}
					f, no := f.shaped(blocks, c.Properties)
					if no != "" {
						add(Config{}, no)
						continue
					}
					t := f.config(c.Properties)
					t.Knobs["samples"] = c.choose("samples", t.samples)[0]
					add(t, "")
				}
			}
		}
	}
}

// mma: fitted with simt, to 8 %. "As recorded" marks later corrections, from single layers.
const (
	mmaStep       = 650  // a constant
	mmaRate       = 10.3 // a product of a warp
	mmaExact      = 1.5  // factor in single precision: three products, partly hidden
	mmaFar        = 0.7  // a warp's weights from shared memory
	mmaEach       = 110  // each further value of a thread,
	mmaEachGate   = 100  // and each of its gates
	mmaWarp       = 35   // each further warp per quarter
	mmaSums       = 0.32 // a sum that goes through shared memory
	mmaPush       = 470  // exchange within a cluster
	mmaGrid       = 1780 // exchange through the L2 cache
	mmaGridRate   = 5000 // bytes per cycle
	mmaGridThread = 23   // each byte of a thread
	mmaUneven     = 1.05 // factor if sequences are not a multiple of 8
	mmaStreamed   = 0.75 // factor if inputs are read ahead; as recorded for 512 units
)

// cycles predicts a step of all sequences; see simt.cycles.
func (f mma) cycles(together int) float64 {
	groups := ints.CeilDiv(f.Batch, f.samples)
	live := float64(min(f.Batch, f.samples))
	threads, tiles := float64(f.threads()), float64(f.tiles())
	warps := float64(ints.CeilDiv(f.threads(), 128)) // per quarter of a multiprocessor
	products := float64(2 * f.chunks * f.height())
	rate := mmaRate
	if f.bulk && f.Weights != driver.Single { // many sums at the same time keep tensor cores busy
		rate = min(rate, bulkRate+bulkRateFew/(float64(f.height())*tiles))
	}
	multiply := rate * warps * products * tiles
	if f.Exact {
		multiply *= mmaExact
	}
	load := threads * tiles / 5 * float64(f.chunks)
	multiply = max(multiply, load) + min(multiply, load)/4
	far := mmaFar * threads / 32 * float64((f.chunks-f.resident)*f.per())
	sums := float64((mmaEach+mmaEachGate*f.Gates)*(f.each()-1)) + mmaWarp*(warps-1) + mmaSums*threads*float64(f.height())*tiles
	bytes := live * float64(f.Hidden*f.Weights.Bytes())
	if f.bulk {
		return f.bulkCycles(bulkTurn+multiply+far+sums, bytes)
	}
	passes := float64(ints.CeilDiv(groups, together))
	if f.poll {
		return f.pollCycles(passes, products*warps*tiles, bytes)
	}
	exchange := float64(exchangeAlone)
	if f.spread {
		exchange = mmaGrid + bytes*float64(f.cluster*min(groups, together))/mmaGridRate + mmaGridThread*bytes/threads
	} else if f.cluster > 1 {
		exchange = mmaPush + float64(f.units*f.Weights.Bytes()/16*f.cluster)*live
	}
	cycles := passes * (mmaStep + multiply + far + sums + exchange)
	if f.samples%8 != 0 {
		cycles *= mmaUneven
	}
	if f.streamed && !f.Exact && f.cluster == 16 && threads == 256 && f.Hidden > 480 && f.Batch > 1 { // as recorded for 512 units
		cycles *= mmaStreamed
	}
	return cycles
}
