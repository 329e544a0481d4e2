package persistent

import (
	"math"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
)

// How long a step of time takes, in cycles of an H200, by which a Chooser picks a
// Config. Only ratios matter. Every constant was fitted to measurements on one
// H200 (132 multiprocessors, 1.7 GHz or so); what is known of the error stands with
// each group. Other GPUs were not measured.

// A group of blocks that is one block exchanges nothing but a barrier of its own.
const exchangeAlone = 50

// simt: fitted with mma and mma-bulk to 270 forward configurations, to 8 %.
const (
	simtMultiply     = 0.63 // of a multiply-add of a warp, and quarter of a multiprocessor
	simtLeastGates   = 1.3  // the least of a warp alone, which waits for its own sums, with several gates
	simtLeastSamples = 1    // and with three sequences or more
	simtStates       = 0.73 // of 128 bytes of states from shared memory, which products hide a little
	simtFar          = 0.93 // of 128 bytes of weights from shared memory
	simtChain        = 180  // exchange and functions of one gate
	simtChainGates   = 450  // and of several
	simtWarp         = 40   // of each further warp of a quarter
	simtEach         = 0.6  // of the chain, for each further value of a thread
	simtStage        = 48   // of a stage of the sum over lanes
	simtShuffle      = 3.6  // of a shuffle of a warp
	simtPush         = 250  // to the blocks of a cluster
	simtPushShared   = 410  // where several blocks share a multiprocessor, and weights are not settled
	simtGrid         = 560  // through the L2 cache
	simtGridRate     = 2000 // words a cycle that it takes and gives
	simtGridThread   = 60   // of a word of a thread
	simtWords        = 710  // the same with words of twice the size
	simtWordsRate    = 1000
	simtWordsThread  = 77
)

// mma: fitted with simt, to 8 %. What is "as recorded" came later, from single layers.
const (
	mmaStep       = 650  // whatever the size
	mmaRate       = 10.3 // of a product of a warp
	mmaExact      = 1.5  // single precision takes three products, of which not all count
	mmaFar        = 0.7  // of a warp's weights from shared memory
	mmaEach       = 110  // of each further value of a thread,
	mmaEachGate   = 100  // and of each of its gates
	mmaWarp       = 35   // of each further warp of a quarter
	mmaSums       = 0.32 // of a value of sums through shared memory
	mmaPush       = 470  // to the blocks of a cluster
	mmaGrid       = 1780 // through the L2 cache
	mmaGridRate   = 5000 // bytes a cycle
	mmaGridThread = 23   // of a byte of a thread
	mmaUneven     = 1.05 // where sequences are not a multiple of 8
	mmaStreamed   = 0.75 // where inputs are read ahead; as recorded of 512 units
)

// mma-bulk: fitted with mma, to 11 %.
const (
	bulkRate      = 6.5  // of a product where more sums at the same time keep tensor cores busy,
	bulkRateFew   = 15   // and of fewer
	bulkTurn      = 1430 // of a turn
	bulkAlone     = 2220 // what one turn of a step waits
	bulkAloneRate = 42   // bytes a cycle that are copied then
	bulkFew       = 2030 // what two or three turns of a step wait
	bulkCopyRate  = 84   // bytes a cycle
)

// mma-poll: fitted to 30 measurements, to 7 %.
const (
	pollStep       = 1160
	pollPart       = 725   // of a part of the sequences
	pollProduct    = 8.8   // of a product of a quarter
	pollFar        = 0.44  // of a warp's weights from shared memory
	pollSum        = 5.3   // of a warp's sums
	pollByte       = 0.027 // of a byte that is polled
	pollUnphased   = 3     // bytes where a state's own bits do not tell whether it is new
	pollCaution    = 1.15  // it is taken only where it is clearly faster
	pollUnmeasured = 1.2   // for passes, parts and single precision, of which few were measured
	pollSlow       = 2     // as recorded of rnn-tanh 1760 at batch 16 and gru 1024 at batch 64
)

// wholerow: measured of 192 and 256 units.
const (
	rowStep    = 780
	rowProduct = 6.5  // of a product of a quarter of a multiprocessor
	rowCaution = 1.3  // other models count so much more than their kernels take
	rowSecond  = 0.66 // of the first block's time that another takes, whose waits it fills; in single precision another warp
)

// The gradient by backward-simt and backward-mma: fitted to 168 measurements.
const (
	scatterStep         = 155  // whatever the size
	scatterMultiply     = 1.45 // of a multiply-add of a warp
	scatterPiece        = 95   // of a piece of a thread's weights
	scatterTensor       = 1550 // whatever the size, on tensor cores
	scatterTensorExact  = 1750 // and in single precision
	scatterProduct      = 8    // of a product of a warp
	scatterCell         = 300  // of the cell of each further unit of a thread, by gates
	scatterSide         = 60   // of each further group
	scatterPush         = 220  // to the blocks of a cluster
	scatterPushUnit     = 0.75 // and for each value of it
	scatterGrid         = 995  // through the L2 cache
	scatterGridRate     = 2280 // bytes a cycle, 4 TB/s
	scatterGridThread   = 20   // of a word of a thread
	scatterGridPush     = 300  // to a cluster besides
	scatterSmallCluster = 1.06 // where clusters have fewer than 16 blocks
)

// The gradient by backward-bulk: fitted to 176 measurements, to 9 %.
const (
	gatherProduct      = 14.5 // of a product of a warp
	gatherLatency      = 40   // of a product that a warp alone waits for
	gatherLatencyExact = 60
	gatherFar          = 53   // of weights from shared memory that a warp alone waits for
	gatherSum          = 16   // of a sum of a thread
	gatherLatencyRing  = 4100 // cycles from asking for a copy of weights to its arrival under load, of two settings of a trial
	gatherCopyRate     = 6400 // bytes a cycle from memory to all blocks
	gatherHidden       = 780  // of that, which hides behind products
	gatherOne          = 4020 // what one turn of a step waits,
	gatherTwo          = 2490 // each of two,
	gatherMore         = 2020 // and of more
	gatherWords        = 4000 // what words wait for; these have not been measured
	gatherWord         = 60   // and for each word of a thread
	gatherWordsCaution = 1.6
)

// Stacked layers, in microseconds: fitted to 19 stacks, to 12 %.
const (
	stackStep          = 0.5
	stackProduct       = 0.65 // of a layer of 512 units and 16 sequences,
	stackGate          = 0.12 // and of each gate
	stackFew           = 0.65 // fewer than 16 sequences take so much at least
	stackExact         = 2.1  // of single precision,
	stackExactSequence = 0.26 // and of each sequence
)

// Stacked layers by the kernel for many sequences, in microseconds: fitted to 11
// stacks, to 15 %.
const (
	stackBulkStep     = 1.15
	stackBulkLarge    = 0.75  // of 512 units
	stackBulkSequence = 0.011 // of a sequence
	stackBulkRate     = 0.045 // of a sequence of 512 units, at the rate of products
)

// waiting is how much longer groups over the GPU take beside other work, as
// measured: all of their blocks start together or none, and others leave room for
// them one by one.
const waiting = 1.6

// cycles is about what a step of all sequences takes, fitted to measurements on
// an H200: products, which hide little of what shared memory delivers, 128 bytes
// per cycle, then the chain of exchanges and functions that nothing hides.
func (t simt) cycles(batch int, p driver.Properties) float64 {
	clusters := ints.CeilDiv(batch, t.samples)
	together := t.together(p)
	blocks := 1
	if clusters > together && !t.spread && !p.Part {
		blocks = max(1, min(t.perSM(0, p), ints.CeilDiv(clusters, together)))
	}
	waves := ints.CeilDiv(clusters, together*blocks)
	threads := float64(t.threads() * blocks)
	warps := math.Ceil(threads / 128) // of a quarter of a multiprocessor
	length := float64(t.columns() / t.lanes * t.samples)
	least := 0.0 // of a warp alone, which waits for its own sums
	switch {
	case t.gates > 1:
		least = simtLeastGates
	case t.samples > 2 && !t.spread:
		least = simtLeastSamples
	}
	multiply := max(least, simtMultiply*warps) * float64(t.tile*t.gates) * length
	states := threads * length / 32
	far := simtFar * max(1, 128*float64(t.samples)/threads) * threads * float64((t.chunks-t.resident)*t.per()) / 32
	chain := float64(simtChain)
	if t.gates > 1 {
		chain = simtChainGates
	}
	each := max(1, t.sums()/t.lanes)
	stages := math.Log2(float64(t.lanes))
	shuffles := float64(t.sums()-each) + max(0, stages-math.Log2(float64(t.sums())))
	chain += simtWarp*(warps-1) + simtEach*chain*float64(each-1) + simtStage*stages + simtShuffle*warps*shuffles
	exchange := float64(exchangeAlone)
	if t.spread {
		words := float64(t.hidden * t.samples)
		everywhere, thread := words*float64(t.cluster*min(clusters, together)), words/threads
		if exchange = simtGrid + everywhere/simtGridRate + simtGridThread*thread; t.units*t.samples < 8 { // words of twice the size: see simt.cu
			exchange = simtWords + everywhere/simtWordsRate + simtWordsThread*thread
		}
	} else if t.cluster > 1 {
		if exchange = simtPush; blocks > 1 && t.asked(p) && !t.settled(batch, p) {
			exchange = simtPushShared
		}
	}
	return float64(waves) * (multiply + simtStates*states + far + chain + exchange)
}

// cycles is about what a step of all sequences takes; see tiling.cycles.
func (f mma) cycles(together int) float64 {
	groups := ints.CeilDiv(f.batch, f.samples)
	live := float64(min(f.batch, f.samples))
	threads, tiles := float64(f.threads()), float64(f.tiles())
	warps := float64(ints.CeilDiv(f.threads(), 128)) // of a quarter of a multiprocessor
	products := float64(2 * f.chunks * f.height())
	rate := mmaRate
	if f.bulk && f.weights != driver.Single { // more sums at the same time keep tensor cores busy
		rate = min(rate, bulkRate+bulkRateFew/(float64(f.height())*tiles))
	}
	multiply := rate * warps * products * tiles
	if f.exact {
		multiply *= mmaExact
	}
	load := threads * tiles / 5 * float64(f.chunks)
	multiply = max(multiply, load) + min(multiply, load)/4
	far := mmaFar * threads / 32 * float64((f.chunks-f.resident)*f.per())
	sums := float64((mmaEach+mmaEachGate*f.gates)*(f.each()-1)) + mmaWarp*(warps-1) + mmaSums*threads*float64(f.height())*tiles
	bytes := live * float64(f.hidden*f.weights.Bytes())
	if f.bulk {
		turn := bulkTurn + multiply + far + sums
		switch {
		case f.passes == 1:
			return turn + bulkAlone + bytes/bulkAloneRate
		case f.passes < 4:
			return float64(f.passes)*(turn+bytes/bulkCopyRate) + bulkFew
		}
		return float64(f.passes) * (turn + bytes/bulkCopyRate)
	}
	passes := float64(ints.CeilDiv(groups, together))
	if f.poll {
		cycles := pollCaution * passes * f.polled(products*warps*tiles, bytes) // only where it is clearly less
		if passes > 1 || f.parts > 1 || f.exact {                              // of which few were measured
			cycles *= pollUnmeasured
		}
		if f.samples > 8 && (f.threads() < 256 || 2*f.resident < f.chunks) { // as recorded of rnn-tanh 1760 at batch 16 and gru 1024 at 64
			cycles *= pollSlow
		}
		return cycles
	}
	exchange := float64(exchangeAlone)
	if f.spread {
		exchange = mmaGrid + bytes*float64(f.cluster*min(groups, together))/mmaGridRate + mmaGridThread*bytes/threads
	} else if f.cluster > 1 {
		exchange = mmaPush + float64(f.units*f.weights.Bytes()/16*f.cluster)*live
	}
	cycles := passes * (mmaStep + multiply + far + sums + exchange)
	if f.samples%8 != 0 {
		cycles *= mmaUneven
	}
	if f.streamed && !f.exact && f.cluster == 16 && threads == 256 && f.hidden > 480 && f.batch > 1 { // as recorded of 512 units
		cycles *= mmaStreamed
	}
	return cycles
}

// polled is what a step of mma_poll.cu takes, of a group's states of so many
// bytes and, of a part of the sequences, so many products in each quarter of a
// multiprocessor; fitted to 30 measurements, to 7 %.
func (f mma) polled(products, bytes float64) float64 {
	if f.exact {
		products *= mmaExact
	}
	warps := float64(f.threads() / 32)
	far := warps * float64((f.chunks-f.resident)*f.per())
	sums := warps * float64(f.height()*f.tiles())
	bytes *= float64(f.units / f.band) // warps of other units read them again
	if !f.phased() {
		bytes *= pollUnphased
	}
	if f.samples == 1 { // all look at the same few words
		bytes += 1 << 15
	}
	return pollStep + float64(f.parts)*(pollPart+pollProduct*products+pollFar*far+pollSum*sums) + pollByte*bytes
}

// cycles is about what a step of all sequences takes, as measured of 192 and 256
// units: products at the rate of tensor cores or of what shared memory delivers for
// them, what a block sends, 32 bytes a cycle, and the chain of the rest.
func (r wholeRow) cycles(p driver.Properties) float64 {
	clusters, together := ints.CeilDiv(r.batch, r.samples), r.together(p)
	blocks := min(r.perSM(p), ints.CeilDiv(clusters, together))
	warps := r.threads() / 32
	quarter := float64(ints.CeilDiv(warps, 4)) // of a multiprocessor
	if r.exact {
		quarter = 1 + rowSecond*(quarter-1)
	}
	products := rowProduct * float64(r.parts()*r.tiles()) * quarter
	delivered := float64(2 * warps * r.tiles())
	sent := float64(r.cluster*warps*r.four()) / 32
	one := max(products, delivered) + sent
	return float64(ints.CeilDiv(clusters, together*blocks)) * rowCaution * (rowStep + one*(1+rowSecond*float64(blocks-1)))
}

// cycles is about what a step of all sequences takes, fitted to 168 measurements on
// an H200: products, for which shared memory delivers 128 bytes per cycle; sums and
// the cell; and the exchange of parts. Pushes of all groups share what connects
// multiprocessors, and words the 4 TB/s that memory takes and gives.
func (s backwardScatter) cycles(p driver.Properties) float64 {
	groups, together := ints.CeilDiv(s.batch, s.samples), s.together(p)
	side := float64(min(groups, together))
	warps, pieces, far := float64(s.warps), float64(s.pieces()), float64(s.pieces()-s.resident)
	units, live := float64(s.blocks()*s.units), float64(min(s.batch, s.samples))
	chunks := float64(s.chunks())
	var step, message float64
	if s.tensor {
		tiles, products := float64(s.samples/8), 2.0
		step, message = scatterTensor, 4
		if s.exact {
			products, step = 3, scatterTensorExact
		}
		rounds := math.Ceil(pieces / chunks * tiles / 4)
		step += scatterProduct*products*pieces*tiles*warps/4 + 4*warps*(chunks*rounds*min(tiles, 4)+far*float64(s.per())/4)
		live = float64(ints.RoundUp(int(live), 2))
	} else {
		multiply, load := scatterMultiply*pieces*float64(s.per()*s.samples)*warps/4, warps*(pieces*float64(s.step()*s.samples)+far*float64(s.per()))
		step = scatterStep + max(multiply, load) + min(multiply, load)/6 + scatterPiece*pieces/chunks
		message = float64(min(4, s.out/s.lanes*s.samples))
	}
	step += scatterCell * float64((ints.CeilDiv(s.units*s.samples*s.same(), min(s.threads(), 256))-1)*s.gates) // sixteen warps take turns
	if s.cluster > 1 {
		step += scatterPush + scatterPushUnit*units*live/message
	}
	if s.spread() {
		words := units * live / float64(s.cluster)
		step += scatterGrid + 16*words*float64(s.blocks())*side/scatterGridRate + scatterGridThread*words/float64(s.threads())
		if s.cluster > 1 {
			step += scatterGridPush
		}
		if s.cluster > 1 && s.cluster < 16 {
			step *= scatterSmallCluster
		}
	} else {
		step += scatterSide * side
	}
	return float64(ints.CeilDiv(groups, together)) * step
}

// cycles is about what a step of all sequences takes, fitted to 176 measurements on
// an H200, to 9 %; see scatter.cycles. A warp alone waits for its own products and
// weights, one after the other. Of few turns each waits for the one before: gradients
// are written, counted, seen and copied, and sums pushed. What memory gives to all
// blocks hides behind that, but for what is more. Words have not been measured and
// count more.
func (g backwardBulk) cycles(p driver.Properties) float64 {
	products, latency := 2.0, float64(gatherLatency)
	if g.exact {
		products, latency = 3, gatherLatencyExact
	}
	warps, chunks, height, far := float64(g.warps()), float64(g.chunks), float64(g.height), float64(g.height*(g.chunks-g.resident))
	multiply := max(gatherProduct*products*height*chunks*float64(g.samples/8*ints.CeilDiv(g.warps(), 4)), latency*chunks+gatherFar*far)
	load := warps * (chunks*float64(g.samples)/2 + 8*far)
	turn := max(multiply, load) + min(multiply, load)/5 + gatherSum*float64(g.each*g.cluster*g.split)
	turn += max(0, float64(g.image()*g.blocks()*min(g.together(p), ints.CeilDiv(g.batch, g.samples)))/gatherCopyRate-gatherHidden)
	if g.depth > 0 {
		streamed, ring := float64(g.streamed*g.chunk()), float64(g.depth*g.portion*g.chunk())
		rate := rateOfStream(float64(g.weightBytes()), p)
		turn = max(turn, max(0, streamed-ring)/min(rate, ring/gatherLatencyRing), streamed/rate-gatherOne)
	}
	switch {
	case g.words:
		return gatherWordsCaution * (turn + gatherWords + gatherWord*float64(g.record()*min(g.batch, g.samples))/float64(g.threads()))
	case g.passes == 1:
		turn += gatherOne
	case g.passes == 2:
		turn += gatherTwo
	default:
		turn += gatherMore
	}
	return float64(g.passes) * turn
}

// microseconds is about what a step takes, fitted to 19 stacks on an H200, to 12 %, and
// to 11 of the kernel for many sequences, to 15 %.
func (st *Stack) microseconds() float64 {
	large, sequences := float64(st.hidden)/512, float64(st.sequences())
	if st.bulk != nil {
		return max(stackBulkStep+stackBulkLarge*large+stackBulkSequence*(1+large)*sequences, stackBulkRate*large*sequences)
	}
	if st.exact {
		return stackStep + large*(stackExact+stackExactSequence*sequences)
	}
	return stackStep + max(1, large)*max(stackFew, sequences/16)*(stackProduct+stackGate*float64(st.gates))
}

// beside is about how many cycles a step of so many layers takes, each by t in
// one of n parts of the GPU. Clusters of a layer start where there is room.
func (t Config) beside(layers, n int) float64 {
	turns := max(1, float64(layers)/float64(n))
	if t.spread && layers > 1 {
		turns = waiting * math.Ceil(turns)
	}
	return t.cycles * turns
}
