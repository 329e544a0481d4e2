package persistent

import "rnnbench/device/cuda/persistent/kernels"

// pollVariant multiplies on tensor cores: each warp reads the states that it multiplies.
var pollVariant = &Variant{
	Kernel:     kernels.Kernel{Name: "mma-poll", Headers: []string{"mma_layer", "mma_poll"}, Files: []string{"fragments", "mma_layer", "mma_poll"}, Entry: "mma_poll_layer"},
	Strategies: []int{byPolling}, tensor: true,
	Exchange: "each warp polls the words that it needs in the L2 cache",
	fit:      Fit{0.86, 0.14},
	considered: func(c *Chooser, l Layer) (turn, bool) {
		return first.provided(c.onTensorCores(l) && c.allows(byPolling)), true
	},
	configs: inGroups(mmas(byPolling)),
}

// mma-poll: fitted to 30 measurements, to 7 %.
const (
	pollStep       = 1160
	pollPart       = 725   // a part of the sequences
	pollProduct    = 8.8   // a product of a quarter of a multiprocessor
	pollFar        = 0.44  // a warp's weights from shared memory
	pollSum        = 5.3   // a warp's sums
	pollByte       = 0.027 // a polled byte
	pollUnphased   = 3     // factor of bytes if a state's own bits do not tell whether it is new
	pollCaution    = 1.15  // factor: the variant is chosen only if it is clearly faster
	pollUnmeasured = 1.2   // factor for passes, parts and single precision, of which few were measured
	pollPieces     = 6     // more pieces of columns than this, with four warps or fewer that share them,
	pollLate       = 1.35  // delay a step by this factor: eight layers of 800 to 2,720 units
	pollSlow       = 2     // factor, as recorded for rnn-tanh 1760 at batch 16 and gru 1024 at batch 64
)

// pollCycles predicts a step of all sequences. bytes are those of a group's states. products are
// those of one part of the sequences in each quarter of a multiprocessor.
func (f mma) pollCycles(passes, products, bytes float64) float64 {
	cycles := pollCaution * passes * f.polled(products, bytes) // chosen only if clearly faster
	if passes > 1 || f.parts > 1 || f.Exact {                  // few of these were measured
		cycles *= pollUnmeasured
	}
	if f.samples > 8 && (f.threads() < 256 || 2*f.resident < f.chunks) { // as recorded for rnn-tanh 1760 at batch 16 and gru 1024 at 64
		cycles *= pollSlow
	}
	if f.chunks > pollPieces && f.split <= 4 {
		cycles *= pollLate
	}
	return cycles
}

// polled predicts one pass; see pollCycles.
func (f mma) polled(products, bytes float64) float64 {
	if f.Exact {
		products *= mmaExact
	}
	warps := float64(f.threads() / 32)
	far := warps * float64((f.chunks-f.resident)*f.per())
	sums := warps * float64(f.height()*f.tiles())
	bytes *= float64(f.units / f.band) // warps with other units read the same states
	if !f.phased() {
		bytes *= pollUnphased
	}
	if f.samples == 1 { // all warps poll the same few words
		bytes += 1 << 15
	}
	return pollStep + float64(f.parts)*(pollPart+pollProduct*products+pollFar*far+pollSum*sums) + pollByte*bytes
}
