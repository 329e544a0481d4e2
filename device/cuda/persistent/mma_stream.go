package persistent

import (
	"fmt"
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/knob"
)

// streamVariant multiplies on tensor cores: weights beyond the chip come from the L2 cache at each step.
var streamVariant = &Variant{
	Kernel:     kernels.Kernel{Name: "mma-stream", Headers: []string{"mma_stream"}, Files: []string{"fragments", "ring", "mma_stream"}, Entry: "mma_stream_layer"},
	Strategies: []int{byStreaming}, needs: "engine for bulk copies", tensor: true,
	Exchange: "each warp polls the words that it needs in the L2 cache",
	aside:    "other kernels keep all weights on chip",
	words: map[string]string{
		"NEAR":    "halves of pieces in registers: %d",
		"PASSING": "halves of pieces read from the L2 at each step: %d",
		"STAGE":   "halves of pieces per copy: %d",
		"RING":    "places for a warp's copies: %d",
		"LOOK":    "pieces of states that are polled: %d",
		"AHEAD":   "portions of states in flight: %d",
	},
	fit: Fit{0.81, 0.1}, // of 10 layers beyond the chip
	considered: func(c *Chooser, l Layer) (turn, bool) {
		if c.Knobs["resident"] == byStreaming {
			return first.provided(c.onTensorCores(l) && c.hasClusters()), true
		}
		return ifNone.provided(c.onTensorCores(l) && c.allows(byStreaming) && c.hasClusters()), false
	},
	configs: inGroups(streams),
}

// A streaming says how mma_stream.cu divides a layer. A warp's weights are counted in halves of
// 64-byte pieces of its columns.
type streaming struct {
	Layer
	states   int // values of the cell that a unit keeps
	cluster  int // blocks that share the units
	units    int // per block, an even number
	samples  int // sequences per group
	parts    int // parts of the sequences, which take turns
	split    int // warps per block
	chunks   int // pieces of a warp's columns
	near     int // halves in registers
	far      int // halves in shared memory
	streamed int // halves that come from memory at each step
	stage    int // halves per copy
	ring     int // places for a warp's copies
	kept     int // copies that the L2 cache is asked to keep; 0: chosen
	look     int // pieces of states that a warp polls
	ahead    int // portions of look pieces that are read at the same time
}

func (s streaming) threads() int { return 32 * s.split }

// eights returns the number of 8-sequence tiles of a part.
func (s streaming) eights() int { return ints.CeilDiv(ints.CeilDiv(s.samples, s.parts), 8) }

// tiles returns the number of 16-row tiles of a block.
func (s streaming) tiles() int { return ints.CeilDiv(s.Gates*s.units, 16) }

// half returns the bytes of a half for all warps. Of the last tile, only existing rows count.
func (s streaming) half() int { return 32 * s.Gates * s.units * s.split }

// rounds returns the number of a thread's units.
func (s streaming) rounds() int { return ints.CeilDiv(8*s.units, s.threads()) }

// bounded says how states are bounded, so that a word tells whether it is new. The halves of fp32
// states are bounded as the states are.
func (s streaming) bounded() int { return s.Within }

// shared returns the bytes of shared memory of a block: barriers, rings, which also hold sums, and
// weights.
func (s streaming) shared() int {
	return ints.RoundUp(8*s.split*s.ring+16, 128) + s.half()*(s.ring*s.stage+s.far)
}

// memory returns the bytes of memory of a group's blocks: streamed weights, and the first states as
// words.
func (s streaming) memory() int64 {
	states := 64 * s.chunks * s.split * s.samples
	if s.bounded() != 1 {
		states *= 2
	}
	return int64(s.cluster)*int64(s.half()*s.streamed+states) + launch.Alignment
}

// overhead estimates the registers of a thread besides its weights.
func (s streaming) overhead() int {
	sums := 4 * s.tiles() * s.eights()
	if s.Exact { // high and low sums
		sums = 2*sums + 12
	}
	values := s.parts * s.eights() * s.rounds()
	words := 4 * s.look * s.ahead * s.eights() // for states that are being read
	if s.bounded() != 1 {
		words += 16
	}
	return 39 + sums + max(words, 8*s.eights()) + 2*s.tiles() + values*(s.Gates+s.states) + s.rounds()*(s.Gates+2) + 16*(s.rounds()-1)
}

// shaped fills in how s, of so many blocks at most, divides the units, or says why it does not fit.
func (s streaming) shaped(blocks, near, far int, p driver.Properties) (streaming, string) {
	s.units = ints.RoundUp(ints.CeilDiv(s.Hidden, blocks), 2)
	s.cluster = ints.CeilDiv(s.Hidden, s.units)
	s.chunks = ints.CeilDiv(s.Hidden*s.Weights.Bytes(), 64*s.split)
	room := MaxRegisters - s.overhead()
	if room < 0 {
		return s, fmt.Sprintf("sums of %d rows and %d sequences take more registers than there are", s.Gates*s.units, s.samples)
	}
	if s.near = room / (4 * s.tiles()); near > 0 {
		s.near = near
	}
	s.near = min(s.near, 2*s.chunks-s.stage)
	s.far = 0
	left := p.Shared - s.shared()
	space := left / s.half()
	if left < 0 {
		return s, fmt.Sprintf("a ring of %d copies takes %d KiB of shared memory, and there are %d", s.ring, s.shared()>>10, p.Shared>>10)
	}
	if far > 0 {
		space = min(space, far)
	}
	s.far = min(space, 2*s.chunks-s.stage-s.near)
	s.far -= (2*s.chunks - s.near - s.far) % s.stage // whole copies
	if s.far < 0 {
		s.far += s.stage
		if s.near -= s.stage; s.near < 0 || s.far > space {
			return s, "there are fewer columns than one copy has"
		}
	}
	s.streamed = 2*s.chunks - s.near - s.far
	return s, ""
}

// config returns s as a Config.
func (s streaming) config(p driver.Properties) Config {
	return Config{
		spread: true, Order: ByLane, few: true, blocks: s.cluster, samples: s.samples, threads: s.threads(), shared: s.shared(), together: 1, cycles: s.cycles(p),
		memory: s.memory(), sizes: codegen.Constants(
			"SPREAD", 1, "CLUSTER", s.cluster, "UNITS", s.units, "BAND", s.units, "SEQUENCES", s.samples, "SAMPLES", 8*s.eights(), "PARTS", s.parts,
			"SPLIT", s.split, "CHUNKS", s.chunks, "NEAR", s.near, "PASSING", s.streamed, "STAGE", s.stage, "RING", s.ring, "KEPT", keptInL2(s.streamed/s.stage, int64(s.cluster)*int64(s.half()*s.stage), s.kept, p), "LOOK", s.look, "AHEAD", s.ahead,
			"EXACT", ints.FromBool(s.Exact), "BOUNDED", s.bounded(),
		),
		Knobs: knob.Params{"resident": byStreaming, "samples": s.samples, "lanes": 4 * s.split, "tensor": 1},
	}
}

// streams adds the configurations of one group of so many blocks that streams some weights from
// memory.
func streams(c *Chooser, l Layer, spread bool, blocks int, add func(Config, string)) {
	if c.Knobs["tile"] != 0 || c.Knobs["cluster"] != 0 || !spread || blocks != c.Properties.SMs { // it has no such knobs
		return
	}
	for _, samples := range c.samples(l.Batch, 8, 16, 24, 32) {
		for _, lanes := range c.choose("lanes", 32) {
			for _, stage := range c.choose("stage", 1, 2) {
				for _, ring := range c.choose("ring", 1, 2, 3, 4, 6, 8, 12) {
					for _, parts := range c.choose("parts", 1) {
						s := streaming{Layer: l, states: statesOf(l), samples: min(samples, l.Batch), parts: parts, split: max(1, lanes/4), stage: stage, ring: ring, kept: c.Knobs["kept"]}
						if 8*(parts-1) >= s.samples { // some parts would have no sequences
							continue
						}
						for _, look := range c.looks(s.eights()) {
							s.look, s.ahead = look.pieces, look.ahead
							add(s.chosen(c, blocks))
						}
					}
				}
			}
		}
	}
}

// chosen returns the configuration of s, of so many blocks at most, or says why it does not fit.
func (s streaming) chosen(c *Chooser, blocks int) (Config, string) {
	s, no := s.shaped(blocks, c.Knobs["near"], c.Knobs["far"], c.Properties)
	if no == "" && s.ring == 1 && s.streamed > s.stage && c.Knobs["ring"] == 0 {
		no = "with one place for copies, each copy waits for the one before"
	}
	if no != "" {
		return Config{}, no
	}
	t := s.config(c.Properties)
	t.Knobs["samples"] = c.choose("samples", t.samples)[0]
	for _, name := range []string{"ring", "stage", "near", "far", "parts", "kept", "look", "ahead"} {
		if v := c.Knobs[name]; v != 0 {
			t.Knobs[name] = v
		}
	}
	return t, ""
}

// keptInL2 returns how many of a warp's copies, of so many bytes over all blocks, the L2 cache is
// asked to keep: all if they fit, else so many that others can pass through. asked overrides that.
func keptInL2(copies int, bytes int64, asked int, p driver.Properties) int {
	size := float64(p.L2) / streamL2
	switch {
	case asked > 0:
		return min(asked, copies)
	case float64(int64(copies)*bytes) <= streamFits*size:
		return copies
	}
	return min(copies-1, int(streamKept*size/float64(bytes)))
}

// A look says how a warp reads states.
type look struct {
	pieces int // pieces that it polls
	ahead  int // portions of as many pieces that it then reads at the same time, at least 2
}

// looks lists how a warp may read the states of so many 8-sequence tiles. For one tile it polls
// many pieces at a time, or fewer, which leaves more of the L2 cache's rate to weights.
func (c *Chooser) looks(eights int) (all []look) {
	usual := []look{{1, 2}}
	if eights == 1 {
		usual = []look{{manyPieces, 2}, {2, 3}}
	}
	for _, l := range usual {
		l = look{c.choose("look", l.pieces)[0], max(2, c.choose("ahead", l.ahead)[0])}
		if !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	return all
}

// manyPieces is the most pieces that a warp with few sequences polls at a time.
const manyPieces = 4

// mma-stream: exchange and products as fitted for mma-poll. Rates of the L2 cache come from trials
// of streams, and the rest from a few measurements of this kernel.
const (
	streamRate    = 39.7 // bytes per cycle and multiprocessor from the L2 cache: 8.9 TB/s for 132 of them
	streamFits    = 50e6 // most bytes that an H200's L2 cache keeps from step to step
	streamL2      = 60 << 20
	streamKept    = 44e6 // bytes that it is asked to keep if there are more
	streamMemory  = 20.5 // bytes per cycle and multiprocessor from memory: 4.6 TB/s
	streamLatency = 1650 // cycles from the request of a copy to its arrival under load: lstm 3072 at batch 8 with rings of two and three copies
	streamLooked  = 0.8  // share of the rate if warps poll many pieces of states: lstm 3072 at batch 8
	streamByte    = 0.01 // each byte that comes while states are exchanged: rings of two and four copies
	streamSeen    = 200  // cycles by which warps that poll fewer pieces see states later
	streamOverlap = 0.5  // unhidden share of the shorter of products and late copies, by clocks in the kernel
	streamCaution = 1.25 // factor if what is streamed fits the rings: 15 layers of 544 to 2,720 units
	streamCell    = 180  // each further eight sequences: sums, their barriers and the cell
)

// rateOfStream returns the bytes per cycle that each multiprocessor receives if all of them
// together read so many bytes at every step. The L2 cache keeps as many as it can, and the others
// come from memory.
func rateOfStream(bytes float64, p driver.Properties) float64 {
	if size := float64(p.L2) / streamL2; bytes > streamFits*size {
		return min(streamRate, streamMemory*bytes/(bytes-streamKept*size))
	}
	return streamRate
}

// cycles predicts a step of all sequences. The ring fills again while states are exchanged. Further
// weights come at the rate of the L2 cache, or at what the copies in flight allow, and hide
// products in part. Polling more pieces of states takes a share of that rate, but sees states
// sooner.
func (s streaming) cycles(p driver.Properties) float64 {
	blocks, warps, tiles, eights := float64(s.cluster), float64(s.split), float64(s.tiles()), float64(s.eights())
	halves, far, parts := float64(2*s.chunks), float64(s.far+s.streamed), float64(s.parts)
	products := halves * tiles * eights * warps / 4
	if s.Exact {
		products *= mmaExact
	}
	products = pollProduct*products + pollFar*warps*far*tiles*4
	states := float64(min(s.Batch, s.samples) * s.Hidden * s.Weights.Bytes())
	if s.bounded() == 0 {
		states *= 2
	}
	streamed, ring := float64(s.half()*s.streamed), float64(s.half()*s.ring*s.stage)
	rate := rateOfStream(blocks*streamed, p)
	exchange := pollStep + states/parts/streamRate + streamByte*min(streamed, ring)
	sums := pollPart + pollSum*warps*tiles*eights + streamCell*(eights-1)
	if s.look >= manyPieces {
		rate *= streamLooked
	} else if eights == 1 {
		exchange += streamSeen
	}
	late := max(0, streamed-ring) / min(rate, ring/streamLatency)
	turn := max(products, late) + streamOverlap*min(products, late) + sums
	step := max(exchange+turn, parts*turn, (parts*streamed+states)/rate) // a part's states are in flight during the other parts' turns
	caution := pollCaution
	if streamed <= ring {
		caution *= streamCaution
	}
	return caution * float64(ints.CeilDiv(s.Batch, s.samples)) * step
}
