package gemm

import (
	"math"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/schedule"
)

// How long products take on an H200, by which plans choose how each is formed.
// Only ratios matter. The constants were fitted to measurements on one H200; their
// error was not recorded but for what TestNarrowChoice and TestHalvesChoice hold,
// which name times that were measured. Other GPUs were not measured.

// Skinny products by the kernel, in nanoseconds and bytes per nanosecond.
const (
	skinnyStart     = 1700 // of a launch
	skinnyAsk       = 1.2  // of a line of the cache that a warp asks for
	skinnyAskExact  = 1.25 // times that in single precision
	skinnyRead      = 8000 // from the cache, by all
	skinnyProduct   = 0.55 // of a product of tensor cores
	skinnyProducts  = 3    // for one of single precision
	skinnyCached    = 0.8  // of the L2 cache: larger weights come from memory
	skinnyMemory    = 4500 // from memory
	skinnyRest      = 0.1  // of the rest, which memory does not hide
	skinnyAhead     = 900  // of a launch that begins early; fitted, with the next, to 95 layers of per-step products
	skinnyInSteps   = 1.4  // times as long in a run of steps,
	skinnyUneven    = 1.45 // and where rows do not begin on 16 bytes
	cellNanoseconds = 2000 // of a cell that is launched alone
)

// The same by the vendor's library, in nanoseconds, operations and bytes per
// nanosecond.
const (
	libraryRow        = 3500   // of one row of single precision, which reads at memory's rate
	libraryExact      = 5000   // of single precision
	libraryExactRate  = 37000  //
	libraryRead       = 2000   // of single precision that waits for weights,
	libraryReadRate   = 1500   // a third of memory's rate
	librarySingle     = 6500   // of single precision rounded to TF32
	librarySingleRate = 180000 //
	libraryFew        = 2500   // of 16 bits, by the time of a term of a sum
	libraryFewTerm    = 0.5    //
	libraryFewRate    = 6500   //
	libraryMany       = 2700   // and in longer sums
	libraryManyTerm   = 0.8    //
	libraryRate       = 600000 //
)

// Rates of larger products: operations and bytes a second, seconds that a launch takes.
const (
	rateSingle    = 50e12
	rateSplit     = 240e12 // all three products
	rateCopy      = 3e12
	rateWrite     = 1.6e12 // of a product whose sums are short
	timeLaunch    = 2e-6
	singleShare   = 0.9 // of the time of single precision that counts
	singleColumns = 128 // as many as the library forms at least
)

// Products by the vendor's library, fitted to the per-step products of 95 layers on one
// H200: blocks of rows and columns, one a multiprocessor at a time. Seconds, operations
// and bytes per second.
const (
	libraryStart     = 3.1e-6
	libraryMemory    = 2.2e12
	wholeMemory      = 4e12 // bytes a second of several products side by side
	librarySide      = 128  // rows and columns of a block of 16 bits and TF32
	libraryShared    = 128  // terms of a sum that blocks share, at least
	libraryPeak      = 500e12
	libraryPeakTF32  = 250e12
	libraryTermTime  = 1.9e-9 // of a term of a sum
	libraryTerms     = 4096   // which a block adds at most
	libraryPeakExact = 40e12
	librarySideExact = 64
	libraryTermExact = 5e-9
	librarySmooth    = 2 // blocks of a multiprocessor, beyond which the last wave does not show

	// Rows of 16 bits that begin on 16 bytes: of 68 layers, with all steps in one product, to 7 %.
	alignedStart = 3.4e-6
	alignedPeak  = 665e12
	alignedTerm  = 1.3e-9

	// Rows of 16 bits that do not begin on 16 bytes.
	unevenStart     = 3e-6
	unevenRows      = 512   // with fewer the library has slow kernels alone:
	unevenPeak      = 45e12 // where rows begin on two bytes,
	unevenPeakFour  = 65e12 // on four,
	unevenPeakEight = 90e12 // on eight,
	unevenPeakMany  = 200e12
	unevenTerm      = 3e-9
)

// LibrarySeconds is about what the vendor's library takes for a product on a GPU of so
// many multiprocessors, and work what of that other streams cannot use: the seconds of all
// multiprocessors in which they multiply, or of memory.
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

// splitStart is the seconds of a launch of the kernel that splits the left factor.
const splitStart = 3e-6

// splitStages are the seconds of a stage of 32 terms and of a part of a product, for
// blocks of so many groups of 64 rows.
var splitStages = []struct {
	groups      int
	stage, item float64
}{
	{groups: 3, stage: 0.9e-6, item: 1.25e-6},
	{groups: 2, stage: 0.65e-6, item: 1e-6},
}

// nanoseconds is about what a product of so many rows takes on an H200 of which
// it has a share, as measured: the lines of the cache that warps of a
// multiprocessor ask for, each of 128 bytes of weights or 64 of a row, what all
// of them read, the multiplications, and memory where weights come from there.
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

// Seconds is about what a product of so many rows takes in a run of steps, where
// it begins ahead of the end of the one before.
func (n Skinny) Seconds(rows int, p driver.Properties) float64 {
	t := 1e-9 * skinnyInSteps * (n.nanoseconds(rows, 1, p) - skinnyAhead)
	if n.length*n.weights.Bytes()%16 != 0 {
		t *= skinnyUneven
	}
	return t
}

// libraryNanoseconds is about what the vendor's library takes for it, as
// measured: however few the rows, it reads weights at a third of memory's rate in
// single precision, but for a single row.
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

// seconds is about what op takes in a form, its right factor split ahead of it or with it.
func (s SplitPlan) seconds(op schedule.Gemm, f Method, ahead bool) float64 {
	m, n, k := op.Sizes()
	flops := 2 * float64(m) * float64(n) * float64(k)
	left, right := float64(m)*float64(k), float64(n)*float64(k)
	row := 0.0 // to add one to each
	if s.added[op] {
		row = 8*float64(m)*float64(n)/rateCopy + timeLaunch
	}
	switch f {
	case SplitLibrary:
		if ahead {
			right = 0
		}
		return max(flops/rateSplit, 4*float64(m)*float64(n)/rateWrite) + 14*(left+right)/rateCopy + s.launches(2, ahead) + row
	case SplitKernel:
		_, t := Divide(op, s.SMs)
		if ahead {
			right = 0
		}
		if !EngineCopies(op.A) {
			t += 8*left/rateCopy + timeLaunch
		}
		// The largest value of every other left factor is known.
		return t + (2*left+12*right)/rateCopy + s.launches(0.5, ahead)
	}
	return singleShare*flops/float64(n)*float64(max(n, singleColumns))/rateSingle + row
}

// launches is what so many take, and two that split a right factor.
func (s SplitPlan) launches(n float64, ahead bool) float64 {
	if !ahead {
		n += 2
	}
	return n * timeLaunch
}
