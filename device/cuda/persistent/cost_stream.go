package persistent

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
)

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
	if s.exact {
		products *= mmaExact
	}
	products = pollProduct*products + pollFar*warps*far*tiles*4
	states := float64(min(s.batch, s.samples) * s.hidden * s.weights.Bytes())
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
	return pollCaution * float64(ints.CeilDiv(s.batch, s.samples)) * step
}
