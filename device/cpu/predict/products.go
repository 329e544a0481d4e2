package predict

import (
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

// product predicts a Gemm on so many workers. from is the level of memory that weights come from.
func (p *forecast) product(op schedule.Gemm, from, parts int) float64 {
	m, n, k := op.Sizes()
	if op.B.M.Packed {
		cols := largest(n, line, parts)
		return p.weighted(m, cols, k, p.Format, from, p.moveOf(4*int64(m)*int64(cols), matrixBytes(op.C)/int64(parts)))
	}
	wide := float64(m) * float64(ceil(n, line)*line) / float64(parts)
	rate := p.peak
	g := gemm.Product{M: m, N: n, K: k, Format: p.Format}
	if _, ok := gemm.Rounds(p.Engine, &g); ok {
		rate = p.half
	}
	groups := ceil(ceil(n, line), p.Engine.Kernels().MaxStrips(p.Engine.Kernels().MaxRows()))
	sec := max(2*wide*float64(k)/rate, p.results*float64(m*groups)/float64(parts))
	sec += p.call + p.tile*wide/float64(line*p.Engine.Kernels().MaxRows())
	sec += p.pack * float64(k) * float64(m+n) / float64(parts)
	return sec + wide*4/p.stream[p.level(max(matrixBytes(op.C)/int64(parts), int64(4*wide)))]
}

// from returns the level of memory that packed weights come from: the nearest one that holds all
// bytes touched since they were last read. Each of so many workers touches its share of the bytes.
func (p *forecast) from(weights *schedule.View, parts int) int {
	bytes := int64(weights.M.Rows) * int64(ceil(weights.M.Cols, line)*line) * int64(p.Format.Bytes())
	since := p.Bytes // since the previous run
	if was := p.wasRead[weights.M.ID]; was > 0 {
		since = p.touched - was + bytes
	}
	p.touched += bytes
	p.wasRead[weights.M.ID] = p.touched
	return p.level(since / int64(parts))
}

// packing returns the seconds that a product saves if another one packs the same rows for it.
func (p *forecast) packing(op schedule.Gemm, parts int) float64 {
	m, _, k := op.Sizes()
	return p.pack * float64(m) * float64(k) / float64(parts)
}

// weighted predicts a product by packed weights on one worker: the longer of its multiply-adds and
// of reading the weights. results is the seconds of writing the results.
func (p *forecast) weighted(m, n, k int, f simd.Format, from int, results float64) float64 {
	g := gemm.Product{M: m, N: n, K: k, Packed: []float32{}, Format: f}
	if blocks, ok := gemm.Rounds(p.Engine, &g); ok {
		wide := float64(ceil(n, line) * line)
		results = max(results, p.store*float64(ceil(n, line)*ceil(m, line)))
		return 2*p.call + results + p.block*float64(blocks) + p.round*float64(m)*float64(k) + wide*float64(k)*max(2*float64(m)/p.half, float64(f.Bytes())/p.load[from])
	}
	if f == simd.I8 {
		rows, elements := float64(m), float64(ceil(n, line)*line)*float64(k)
		rounded := p.round*rows*float64(k) + p.tile*rows*float64(ceil(ceil(n, line), p.Engine.Kernels().MaxI8Strips()))
		return p.call + results + rounded + max(2*rows*elements/p.integer, elements/p.read[from])
	}
	rows := p.Engine.Kernels().MaxRows()
	tiles := ceil(m, rows)
	strips := ceil(n, line)
	wide := strips * line
	groups := ceil(strips, p.Engine.Kernels().MaxStrips(min(m, rows)))
	sec := max(2*float64(m)*float64(wide)*float64(k)/p.peak, p.results*float64(m*groups))
	sec += p.tile * float64(tiles*groups)
	elements := float64(wide) * float64(k)
	if f != simd.F32 && tiles > 2 {
		sec += p.widen * elements * float64(ceil(tiles, widenedTiles))
	}
	if f != simd.F32 && tiles <= 2 { // each tile widens elements among its multiply-adds
		sec += p.narrow * elements * min(1, 2/float64(m))
	}
	least := float64(f.Bytes()) / p.read[from]
	more := 0.0
	if from > 1 {
		more = unhidden * min(sec, elements*least)
	}
	return p.call + results + max(sec, elements*least) + more
}

// unhidden is the part of the shorter time that does not overlap with the longer one: of reading
// weights from a shared memory, and of the multiply-adds.
const unhidden = 0.25

// widenedTiles is how many tiles of rows share widened weights.
const widenedTiles = 32
