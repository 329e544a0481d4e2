package persistent

import "rnnbench/device/cuda/driver"

// mma-wide: by clocks in the kernel of six layers, with 1 to 7 turns a step, to 7 %; of one gate 25 % more.
const (
	wideProduct  = 0.5 // of a sequence in a product of 16 columns
	wideLeast    = 30  // of such a product, however few the sequences
	wideRate     = 44  // bytes a cycle that reach a multiprocessor, whoever copies them
	wideSum      = 650 // sums through shared memory
	wideCell     = 950 // cells and the count of what they wrote,
	wideGate     = 160 // for each gate,
	wideFunction = 38  // and for each gate of each cell of a thread
	wideRest     = 65  // of a sequence beyond so many: results, and inputs that lanes gather,
	wideFewRest  = 20
	wideRestOne  = 680  // of one gate,
	wideRestEach = 30   // and of each sequence
	wideAlone    = 2000 // from the count to the first copy, which only another turn hides,
	wideBlock    = 10   // and for each block that counts
	wideCaution  = 1.47 // other models count so much more than their kernels take
)

// cycles is about what a step of all sequences takes: products, which wait for what is
// copied, then sums, cells and results. One turn of a step waits for its own exchange.
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

// backward-wide: rates of products and copies as of mma-wide, whose loops it has; the rest
// is estimated. Against backward-stream it ranks as nine layers did on an H100.
const (
	backwardWideBoth  = 0.2  // of the shorter of products and copies, which the other does not hide
	backwardWidePush  = 700  // until sums have come,
	backwardWideSent  = 24   // at so many bytes a cycle
	backwardWideCell  = 1300 // cells and the count of what they wrote,
	backwardWideGate  = 160  // for each gate,
	backwardWideEach  = 45   // and for each gate of each cell of a thread
	backwardWideStore = 25   // of a result of a cell of a thread, which other turns hide
)

// cycles is about what a step of all sequences takes: products, which wait for what is
// copied, then sums of the cluster, cells and results. One turn of a step waits for its
// own exchange, while the ring of weights fills up again.
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
