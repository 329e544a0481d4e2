package persistent

import (
	"math"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
)

// The cost model of a step, in cycles of an H200, by which a Chooser picks a Config. Only ratios
// matter. Every constant was fitted to measurements on one H200 (132 multiprocessors, about 1.7
// GHz), unless it names an H100. Each group of constants states its known error. Other GPUs were not
// measured.

// Exchange within a group of one block, which only has a barrier of its own. The second was fitted
// to eight layers of 32 to 64 units on an H100; layers of one gate were not measured.
const (
	exchangeAlone = 50
	exchangeWarp  = 50 // each warp after the fourth, with several gates
)

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

// mma-bulk: fitted with mma, to 11 %.
const (
	bulkRate      = 6.5  // a product, if many sums at the same time keep tensor cores busy
	bulkRateFew   = 15   // added, divided by the number of sums
	bulkTurn      = 1430 // a turn
	bulkAlone     = 2220 // wait of a single turn per step
	bulkAloneRate = 42   // bytes per cycle copied then
	bulkFew       = 2030 // wait of two or three turns per step
	bulkCopyRate  = 84   // bytes per cycle
)

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
	pollSlow       = 2     // factor, as recorded for rnn-tanh 1760 at batch 16 and gru 1024 at batch 64
)

// wholerow: from measurements of 192 and 256 units.
const (
	rowStep    = 780
	rowProduct = 6.5  // a product of a quarter of a multiprocessor
	rowCaution = 1.3  // factor: other models overestimate by as much
	rowSecond  = 0.66 // time of a second block, which fills the first one's waits, as a share of the first one's; fp32: of a second warp
)

// The gradient by backward-simt and backward-mma: fitted to 168 measurements.
const (
	scatterStep         = 155  // a constant
	scatterMultiply     = 1.45 // a multiply-add of a warp
	scatterPiece        = 95   // a piece of a thread's weights
	scatterTensor       = 1550 // a constant, on tensor cores
	scatterTensorExact  = 1750 // and in single precision
	scatterProduct      = 8    // a product of a warp
	scatterCell         = 300  // the cell of each further unit of a thread, per gate
	scatterSide         = 60   // each further group that exchanges within a cluster
	scatterAlone        = 60   // added for one gate in a group of one block: rnn-tanh of 32, 64 and 96 units on an H100
	scatterPush         = 220  // exchange within a cluster
	scatterPushUnit     = 0.75 // and each value
	scatterGrid         = 995  // exchange through the L2 cache
	scatterGridRate     = 2280 // bytes per cycle: 4 TB/s
	scatterGridThread   = 20   // each word of a thread
	scatterGridPush     = 300  // added if groups also exchange within clusters
	scatterSmallCluster = 1.06 // factor if clusters have fewer than 16 blocks
)

// The gradient by backward-bulk: fitted to 176 measurements, to 9 %.
const (
	gatherProduct      = 14.5 // a product of a warp
	gatherLatency      = 40   // a product that a single warp waits for
	gatherLatencyExact = 60
	gatherFar          = 53   // weights from shared memory that a single warp waits for
	gatherSum          = 16   // a sum of a thread
	gatherLatencyRing  = 4100 // cycles from the request of a copy of weights to its arrival under load, from two settings of a trial
	gatherCopyRate     = 6400 // bytes per cycle from memory to all blocks
	gatherHidden       = 780  // cycles of that which products hide
	gatherOne          = 4020 // wait of a single turn per step,
	gatherTwo          = 2490 // of each of two turns,
	gatherMore         = 2020 // and of each of more
	gatherWords        = 4000 // wait for words; not measured
	gatherWord         = 60   // and each word of a thread
	gatherWordsCaution = 1.6  // factor, since words were not measured
)

// Stacked layers, in microseconds: fitted to 19 stacks, to 12 %.
const (
	stackStep          = 0.5
	stackProduct       = 0.65 // a layer of 512 units and 16 sequences
	stackGate          = 0.12 // and each of its gates
	stackFew           = 0.65 // least share for fewer than 16 sequences
	stackExact         = 2.1  // single precision,
	stackExactSequence = 0.26 // and each sequence
)

// Stacked layers by the kernel for many sequences, in microseconds: fitted to 11 stacks, to 15 %.
const (
	stackBulkStep     = 1.15
	stackBulkLarge    = 0.75  // 512 units
	stackBulkSequence = 0.011 // each sequence
	stackBulkRate     = 0.045 // each sequence of 512 units, if products are the limit
)

// waiting is how much longer groups over the GPU take beside other work, as measured. All of their
// blocks start together or none does, and other kernels free room block by block.
const waiting = 1.6

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
	if t.cluster == 1 && t.gates > 1 {
		exchange += exchangeWarp * max(0, float64(t.threads())/32-4)
	}
	if t.spread {
		words := float64(t.hidden * t.samples)
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

// cycles predicts a step of all sequences; see simt.cycles.
func (f mma) cycles(together int) float64 {
	groups := ints.CeilDiv(f.batch, f.samples)
	live := float64(min(f.batch, f.samples))
	threads, tiles := float64(f.threads()), float64(f.tiles())
	warps := float64(ints.CeilDiv(f.threads(), 128)) // per quarter of a multiprocessor
	products := float64(2 * f.chunks * f.height())
	rate := mmaRate
	if f.bulk && f.weights != driver.Single { // many sums at the same time keep tensor cores busy
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
		cycles := pollCaution * passes * f.polled(products*warps*tiles, bytes) // chosen only if clearly faster
		if passes > 1 || f.parts > 1 || f.exact {                              // few of these were measured
			cycles *= pollUnmeasured
		}
		if f.samples > 8 && (f.threads() < 256 || 2*f.resident < f.chunks) { // as recorded for rnn-tanh 1760 at batch 16 and gru 1024 at 64
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
	if f.streamed && !f.exact && f.cluster == 16 && threads == 256 && f.hidden > 480 && f.batch > 1 { // as recorded for 512 units
		cycles *= mmaStreamed
	}
	return cycles
}

// polled predicts a step of mma_poll.cu. bytes are those of a group's states. products are those of
// one part of the sequences in each quarter of a multiprocessor.
func (f mma) polled(products, bytes float64) float64 {
	if f.exact {
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

// cycles predicts a step of all sequences. Limits of products are the rates of tensor cores and of
// shared memory. A block sends 32 bytes per cycle. The chain of the rest is added.
func (r wholeRow) cycles(p driver.Properties) float64 {
	clusters, together := ints.CeilDiv(r.batch, r.samples), r.together(p)
	blocks := min(r.perSM(p), ints.CeilDiv(clusters, together))
	warps := r.threads() / 32
	quarter := float64(ints.CeilDiv(warps, 4)) // warps per quarter of a multiprocessor
	if r.exact {
		quarter = 1 + rowSecond*(quarter-1)
	}
	products := rowProduct * float64(r.parts()*r.tiles()) * quarter
	delivered := float64(2 * warps * r.tiles())
	sent := float64(r.cluster*warps*r.four()) / 32
	one := max(products, delivered) + sent
	return float64(ints.CeilDiv(clusters, together*blocks)) * rowCaution * (rowStep + one*(1+rowSecond*float64(blocks-1)))
}

// cycles predicts a step of all sequences: products, for which shared memory delivers 128 bytes per
// cycle; sums and the cell; and the exchange of parts. Pushes of all groups share the network
// between multiprocessors, and words share the 4 TB/s that memory delivers.
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
	step += scatterCell * float64((ints.CeilDiv(s.units*s.samples*s.same(), min(s.threads(), 256))-1)*s.gates) // sixteen warps run in turns
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
	} else if s.cluster > 1 { // groups of one block push nothing
		step += scatterSide * side
	} else if s.gates == 1 {
		step += scatterAlone
	}
	return float64(ints.CeilDiv(groups, together)) * step
}

// cycles predicts a step of all sequences; see backwardScatter.cycles. A single warp waits for its
// own products and weights, one after the other. With few turns, each waits for the exchange of the
// one before: gradients are written, counted, seen and copied, and sums pushed. That hides a part
// of the copies from memory to all blocks. Words were not measured and are counted with caution.
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

// microseconds predicts a step of all layers, to 12 %, and of the kernel for many sequences, to 15
// %.
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

// sideBySide predicts the cycles of a step of so many layers that share n parts of the GPU, each in the
// configuration t. Clusters of a layer start one by one as there is room.
func (t Config) sideBySide(layers, n int) float64 {
	turns := max(1, float64(layers)/float64(n))
	if t.spread && layers > 1 {
		turns = waiting * math.Ceil(turns)
	}
	return t.cycles * turns
}
