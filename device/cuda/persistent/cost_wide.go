package persistent

import "rnnbench/device/cuda/driver"

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
	wideAlone    = 2000 // from the count to the first copy, which only another turn hides,
	wideBlock    = 10   // and per block that counts
	wideCaution  = 1.47 // factor: other models overestimate by as much
)

// cycles predicts a step of all sequences: products, which wait for copies, then sums, cells and
// results. A single turn per step waits for its own exchange.
func (w wide) cycles() float64 {
	products, cells, gates := float64(2*w.products), float64(w.samples/4/w.rows()), float64(w.gates)
	turn := products * max(wideLeast, wideProduct*float64(w.samples), float64(w.tile())/wideRate)
	turn += wideSum + wideCell + gates*(wideGate+wideFunction*cells)
	rest := float64(wideRest * (w.samples - wideFewRest))
	if w.gates == 1 {
		rest = float64(wideRestOne + wideRestEach*w.samples)
	}
	if w.passes == 1 {
		rest = max(rest, wideAlone+wideBlock*float64(w.cluster))
	}
	return float64(w.passes) * wideCaution * (turn + rest)
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
	gates, cells := float64(g.gates), float64(2*g.each())
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
