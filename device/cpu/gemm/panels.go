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
	partial []float32
	ldc     int
	height  int // rows of a block
	depth   int // an even number of k
	add     bool
}

// run multiplies so many rows by so many columns. Blocks of rows are as high as tiles allow, and equally high but for the
// last one.
func (r *panels) run(words, b, c []float32, rows, columns int) {
	blocks := ceil(rows, tallRows)
	r.height = ceil(rows, blocks)
	full := rows / r.height
	r.strips(words, b, c, full, columns)
	if left := rows - full*r.height; left > 0 {
		words, c = words[full*r.height*r.ARow:], c[full*r.height*r.ldc:]
		r.height = left
		r.strips(words, b, c, 1, columns)
	}
}

// strips multiplies so many blocks of rows by all columns.
func (r *panels) strips(words, b, c []float32, blocks, columns int) {
	r.Blocks, r.BlockRows = blocks, r.height
	r.program.Tiles = ceil(r.height, amx.TileRows)
	most := program.MaxStrips / r.program.Tiles
	for at := 0; at < columns; {
		strips := (columns - at) / width
		r.CRow, r.Groups, r.program.Strips = r.ldc, strips/most, most
		if strips < most {
			r.Groups, r.program.Strips = 1, strips
		}
		if strips == 0 {
			r.last(words, b[at/width*r.BStrip:], c[at:], columns-at)
			return
		}
		r.A, r.B, r.C = words, b[at/width*r.BStrip:], c[at:]
		r.multiply(r.add)
		at += r.Groups * r.program.Strips * width
	}
}

// last multiplies by a strip with padding, whose sums go elsewhere first.
func (r *panels) last(words, b, c []float32, columns int) {
	blocks := r.Blocks
	r.Blocks, r.Groups, r.program.Strips = 1, 1, 1
	for i := range blocks {
		r.A, r.B = words[i*r.height*r.ARow:], b
		r.C, r.CRow = r.partial, width
		r.multiply(false)
		for row := range r.height {
			sums, to := r.partial[row*width:][:columns], c[(i*r.height+row)*r.ldc:][:columns]
			if !r.add {
				copy(to, sums)
				continue
			}
			for j, v := range sums {
				to[j] += v
			}
		}
	}
}

// multiply goes through whole steps of k, and then through the rest.
func (r *panels) multiply(add bool) {
	steps, rest := r.depth/amx.StepK, r.depth%amx.StepK/2
	r.Accumulate = add
	if steps > 0 {
		r.K = steps
		r.Config.Set(&r.program, r.height, amx.TileWords)
		r.unit.Run(&r.Panel, r.program.Tiles, r.program.Strips)
		r.Accumulate = true
	}
	if rest > 0 {
		r.A, r.B = r.A[steps*amx.TileWords:], r.B[steps*amx.TileRows*amx.TileWords:]
		r.K = 1
		r.Config.Set(&r.program, r.height, rest)
		r.unit.Run(&r.Panel, r.program.Tiles, r.program.Strips)
	}
}
