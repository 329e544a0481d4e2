package persistent

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
)

// mma-stream: what is exchanged and multiplied as fitted for mma-poll; the rates of the
// L2 cache from the trials of streams; the rest from a few measurements of this kernel.
const (
	streamRate    = 39.7 // bytes a cycle of a multiprocessor from the L2 cache: 8.9 TB/s over 132 of them
	streamFits    = 50e6 // bytes that the L2 cache of an H200 gives again and again,
	streamL2      = 60 << 20
	streamKept    = 44e6 // bytes of more that it is asked to keep
	streamMemory  = 20.5 // and the rate beyond: 4.6 TB/s
	streamLatency = 1650 // cycles from asking for a copy to its arrival under load: lstm 3072 at batch 8 with rings of two copies and of three
	streamLooked  = 0.8  // of the rate where warps look at many pieces of states: lstm 3072 at batch 8
	streamByte    = 0.01 // of a byte that comes while states are exchanged: rings of two copies and of four
	streamSeen    = 200  // cycles later that states are seen where they look at fewer
	streamOverlap = 0.5  // of the shorter of products and late copies, which the other does not hide, by clocks in the kernel
	streamCell    = 180  // of each further eight sequences: sums, their barriers and the cell
)

// rateOfStream is the bytes a cycle that a multiprocessor takes of so many bytes, which
// all of them read again and again. Of more than the L2 cache holds it keeps some, and the
// rest comes from memory beside them.
func rateOfStream(bytes float64, p driver.Properties) float64 {
	if size := float64(p.L2) / streamL2; bytes > streamFits*size {
		return min(streamRate, streamMemory*bytes/(bytes-streamKept*size))
	}
	return streamRate
}

// cycles is about what a step of all sequences takes. The ring fills up again while
// states are exchanged. What is beyond it comes at the rate of the L2 cache, or at what
// the copies under way let through, and products hide behind that in part. To look at more
// states again and again takes of that rate, and sees them sooner.
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
	step := max(exchange+turn, parts*turn, (parts*streamed+states)/rate) // a part's states are on their way in the turns of others
	return pollCaution * float64(ints.CeilDiv(s.batch, s.samples)) * step
}
