package persistent

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
