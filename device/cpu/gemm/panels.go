package gemm

import (
	"rnnbench/device/cpu/simd/amx"
	"rnnbench/device/cpu/simd/amx/program"
)

// panels multiply rounded rows by packed strips of BF16 in tile registers.
type panels struct {
	amx.Panel
	unit    *amx.Unit
	program program.Program
	height  int // rows of a block
	last    int // columns of the last strip
	depth   int // an even number of k
	add     bool
}

// run multiplies so many rows by so many columns. Blocks of rows are as high as tiles allow. All
// but the last one are equally high.
func (r *panels) run(words, b, c []float32, rows, columns int) {
	blocks := ceil(rows, tallRows)
	r.height = ceil(rows, blocks)
	full := rows / r.height
	r.strips(words, b, c, full, columns)
	if left := rows - full*r.height; left > 0 {
		words, c = words[full*r.height*r.ARow:], c[full*r.height*r.CRow:]
		r.height = left
		r.strips(words, b, c, 1, columns)
	}
}

// strips multiplies so many blocks of rows by all columns. A last strip with padding has a register
// of its own, whose shape excludes the padding.
func (r *panels) strips(words, b, c []float32, blocks, columns int) {
	r.Blocks, r.BlockRows = blocks, r.height
	r.program.Tiles = ceil(r.height, amx.TileRows)
	most := program.MaxStrips / r.program.Tiles
	for at := 0; at < columns; {
		left := columns - at
		r.Groups, r.program.Strips, r.last = left/(most*width), most, width
		if r.Groups == 0 {
			r.Groups, r.program.Strips = 1, min(ceil(left, width), program.Own(r.program.Tiles))
			r.last = min(width, left-(r.program.Strips-1)*width)
		}
		r.A, r.B, r.C = words, b[at/width*r.BStrip:], c[at:]
		r.multiply()
		at += r.Groups * r.program.Strips * width
	}
}

// stepsOf returns the number of steps of a product of so many words of k, and the words of each.
// The steps are equally long if at most a quarter more than the least number divides the words.
// Otherwise they are as long as possible, with a rest.
func stepsOf(words int) (steps, each int) {
	least := ceil(words, amx.TileWords)
	for steps = least; 4*steps <= 5*least; steps++ {
		if words%steps == 0 {
			return steps, words / steps
		}
	}
	return words / amx.TileWords, amx.TileWords
}

// restOf returns how many words of k remain after the steps of stepsOf.
func restOf(words int) int {
	steps, each := stepsOf(words)
	return words - steps*each
}

// multiply multiplies the steps of k and then the rest.
func (r *panels) multiply() {
	r.Accumulate = r.add
	words := r.depth / 2
	steps, each := stepsOf(words)
	r.steps(steps, each)
	if done := steps * each; done < words {
		r.A, r.B, r.Accumulate = r.A[done:], r.B[done*width:], true
		r.steps(1, words-done)
	}
}

// steps multiplies so many steps of so many words each.
func (r *panels) steps(steps, words int) {
	r.K, r.AStep, r.BStep = steps, words, words*width
	r.Config.Set(&r.program, r.height, words, r.last)
	r.unit.Run(&r.Panel, r.program.Tiles, r.program.Strips)
}
