package gemm

import (
	"math"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/schedule"
)

// Cost models of products. Plans use them to choose how each product is formed, so only ratios
// matter. The constants were fitted to measurements on one H200, and other GPUs were not measured.
// TestSkinnyIsChosenWhereFastest and TestSplitFP16IsChosenWhereFastest hold the choices to measured
// times.

// Skinny products by our kernel, in nanoseconds and bytes per nanosecond.
const (
	skinnyStart     = 1700 // a launch
	skinnyAsk       = 1.2  // a cache line that a warp requests
	skinnyAskExact  = 1.25 // factor of skinnyAsk in single precision
	skinnyRead      = 8000 // L2 cache rate of the whole GPU
	skinnyProduct   = 0.55 // a tensor-core product
	skinnyProducts  = 3    // tensor-core products per single-precision one
	skinnyCached    = 0.8  // share of the L2 cache: larger weights come from memory
	skinnyMemory    = 4500 // memory rate
	skinnyRest      = 0.1  // share of the other time that memory does not hide
	skinnyAhead     = 900  // saved if a launch begins early; this and the next two were fitted to per-step products of 95 layers
	skinnyInSteps   = 1.4  // factor in a run of steps,
	skinnyUneven    = 1.45 // and if rows are not aligned to 16 bytes
	cellNanoseconds = 2000 // a cell that is launched alone
)

// The same products by the vendor's library, in nanoseconds, operations and bytes per nanosecond.
const (
	libraryRow        = 3500   // one row in single precision, which reads at memory's rate
	libraryExact      = 5000   // single precision
	libraryExactRate  = 37000  //
	libraryRead       = 2000   // single precision that waits for weights,
	libraryReadRate   = 1500   // at a third of memory's rate
	librarySingle     = 6500   // single precision rounded to TF32
	librarySingleRate = 180000 //
	libraryFew        = 2500   // 16 bits, short sums; the next is per term of a sum
	libraryFewTerm    = 0.5    //
	libraryFewRate    = 6500   //
	libraryMany       = 2700   // 16 bits, longer sums
	libraryManyTerm   = 0.8    //
	libraryRate       = 600000 //
)

// Rates of larger products: operations and bytes per second, and seconds per launch.
const (
	rateSingle    = 50e12
	rateSplit     = 240e12 // of the product that the three split products stand for
	rateCopy      = 3e12
	rateWrite     = 1.6e12 // result of a product with short sums
	timeLaunch    = 2e-6
	singleShare   = 0.9 // a split product must take less than this share of single precision's time
	singleColumns = 128 // the library takes as long for fewer columns
)

// Products by the vendor's library, fitted to the per-step products of 95 layers on one H200. A
// multiprocessor forms one block of rows and columns at a time. Seconds, operations and bytes per
// second.
const (
	libraryStart     = 3.1e-6
	libraryMemory    = 2.2e12
	wholeMemory      = 4e12 // memory rate of several products side by side
	librarySide      = 128  // rows and columns of a block, 16 bits and TF32
	libraryShared    = 128  // least terms per block if blocks share a sum
	libraryPeak      = 500e12
	libraryPeakTF32  = 250e12
	libraryTermTime  = 1.9e-9 // per term of a sum
	libraryTerms     = 4096   // most terms that a block adds
	libraryPeakExact = 40e12
	librarySideExact = 64
	libraryTermExact = 5e-9
	librarySmooth    = 2 // with more blocks per multiprocessor, an incomplete last wave costs nothing

	// 16 bits, rows aligned to 16 bytes: fitted to 68 layers, with all steps in one product, to 7
	// %.
	alignedStart = 3.4e-6
	alignedPeak  = 665e12
	alignedTerm  = 1.3e-9

	// 16 bits, rows not aligned to 16 bytes.
	unevenStart     = 3e-6
	unevenRows      = 512   // with fewer rows the library has only slow kernels:
	unevenPeak      = 45e12 // rows aligned to 2 bytes,
	unevenPeakFour  = 65e12 // to 4,
	unevenPeakEight = 90e12 // to 8
	unevenPeakMany  = 200e12
	unevenTerm      = 3e-9
)

// LibrarySeconds predicts the seconds of a product by the vendor's library on sms multiprocessors.
// work is the part that other streams cannot use: the seconds in which it keeps all multiprocessors
// or memory busy.
func LibrarySeconds(p *driver.Product, sms int) (seconds, work float64) {
	start, peak, side, term := libraryStart, libraryPeak, librarySide, libraryTermTime
	memory := libraryMemory
	switch {
	case p.TF32:
		peak = libraryPeakTF32
	case p.Operands == driver.Single:
		peak, side, term = libraryPeakExact, librarySideExact, libraryTermExact
	case p.LdA%8 != 0 || p.LdB%8 != 0:
		start, peak, term = unevenStart, unevenPeakMany, unevenTerm
		switch ld := p.LdA | p.LdB; {
		case p.M >= unevenRows:
		case ld%2 != 0:
			peak = unevenPeak
		case ld%4 != 0:
			peak = unevenPeakFour
		default:
			peak = unevenPeakEight
		}
	default:
		start, peak, term, memory = alignedStart, alignedPeak, alignedTerm, wholeMemory
	}
	m, n, k := float64(p.M), float64(p.N), float64(p.K)
	blocks := ints.CeilDiv(p.M, side) * ints.CeilDiv(p.N, side)
	parts := max(1, min(sms/blocks, p.K/libraryShared))
	waves := math.Ceil(float64(blocks*parts) / float64(sms))
	block := min(ints.RoundUp(p.M, 32), side) * min(ints.RoundUp(p.N, 32), side)
	multiply := waves * 2 * float64(block) * k / float64(parts) / (peak / float64(sms))
	if blocks > librarySmooth*sms {
		multiply *= float64(blocks) / float64(sms) / waves
	}
	bytes := (m*k+n*k)*float64(p.Operands.Bytes()) + m*n*float64(p.Result.Bytes())
	filled := 2 * float64(blocks) * float64(block) * k / peak
	return start + max(multiply, term*min(k, libraryTerms), bytes/memory), max(filled, bytes/wholeMemory)
}

// splitStart is the seconds of a launch of the split-fp16 kernel.
const splitStart = 3e-6

// splitStages are the seconds of a stage of 32 terms and of an item, for blocks of so many groups
// of 64 rows. An item is one part of a tile's sum.
var splitStages = []struct {
	groups      int
	stage, item float64
}{
	{groups: 3, stage: 0.9e-6, item: 1.25e-6},
	{groups: 2, stage: 0.65e-6, item: 1e-6},
}

// nanoseconds predicts the time of a product of rows rows on 1/share of an H200. The limits are:
// the cache lines that a multiprocessor's warps request, each with 128 bytes of weights or 64 of a
// row; what all of them read from the cache; the multiplications; and memory, if weights come from
// there.
func (n Skinny) nanoseconds(rows, share int, p driver.Properties) float64 {
	blocks := float64(n.blocks() * ints.CeilDiv(rows, n.rows()))
	waves := math.Ceil(blocks / float64(max(1, p.SMs/share)))
	pieces := float64(n.total() * n.bands) // of all warps
	ask := skinnyAsk * waves * pieces * float64(8*(n.tiles+n.eights))
	read := blocks * pieces * float64(512*(2*n.tiles+n.eights)) / skinnyRead * float64(share)
	multiply := skinnyProduct * waves * pieces * float64(2*n.tiles*n.eights)
	if n.exact {
		ask *= skinnyAskExact
		multiply *= skinnyProducts
	}
	most := max(ask, read, multiply)
	if bytes := float64(16 * n.Quads() * share); bytes >= skinnyCached*float64(p.L2) {
		most = max(most, bytes/skinnyMemory+skinnyRest*most)
	}
	return skinnyStart + most
}

// Seconds predicts the seconds of a product of rows rows in a run of steps, where it begins before
// the previous one has ended.
func (n Skinny) Seconds(rows int, p driver.Properties) float64 {
	t := 1e-9 * skinnyInSteps * (n.nanoseconds(rows, 1, p) - skinnyAhead)
	if n.length*n.weights.Bytes()%16 != 0 {
		t *= skinnyUneven
	}
	return t
}

// libraryNanoseconds predicts the same by the vendor's library. In single precision, it was
// measured to read weights at a third of memory's rate however few the rows, except for a single
// row.
func (n Skinny) libraryNanoseconds(rows, share int) float64 {
	weights := float64(n.length) * float64(n.columns) * float64(share)
	work, bytes := 2*float64(rows)*weights, weights*float64(n.weights.Bytes())
	switch {
	case n.exact && rows == 1:
		return libraryRow + bytes/skinnyMemory
	case n.exact:
		return max(libraryExact+work/libraryExactRate, libraryRead+bytes/libraryReadRate)
	case n.weights == driver.Single:
		return librarySingle + work/librarySingleRate
	}
	few := libraryFew + libraryFewTerm*float64(n.length) + max(work/libraryRate, bytes/libraryFewRate)
	return max(few, libraryMany+work/libraryRate+libraryManyTerm*float64(n.length))
}

// seconds predicts the time of op by method f; ahead: the right factor is split beforehand.
func (s SplitPlan) seconds(op schedule.Gemm, f Method, ahead bool) float64 {
	m, n, k := op.Sizes()
	flops := 2 * float64(m) * float64(n) * float64(k)
	left, right := float64(m)*float64(k), float64(n)*float64(k)
	row := 0.0 // seconds to add a row to each row
	if s.added[op] {
		row = 8*float64(m)*float64(n)/rateCopy + timeLaunch
	}
	switch f {
	case SplitLibrary:
		if ahead {
			right = 0
		}
		chains := 0.0 // that are added to the first
		if ahead || m >= k {
			chains = float64(len(chainEnds(k)) - 1)
		}
		return max(flops/rateSplit, 4*float64(m)*float64(n)/rateWrite) + chains*8*float64(m)*float64(n)/rateCopy + 14*(left+right)/rateCopy + s.launches(2+chains, ahead) + row
	case SplitKernel:
		_, t := Divide(op, s.SMs)
		if ahead {
			right = 0
		}
		if !EngineCopies(op.A) {
			t += 8*left/rateCopy + timeLaunch
		}
		// Assumes that the largest value of every other left factor is known.
		return t + (2*left+12*right)/rateCopy + s.launches(0.5, ahead)
	}
	return singleShare*flops/float64(n)*float64(max(n, singleColumns))/rateSingle + row
}

// launches returns the seconds of n launches, and of two more to split a right factor unless ahead.
func (s SplitPlan) launches(n float64, ahead bool) float64 {
	if !ahead {
		n += 2
	}
	return n * timeLaunch
}
