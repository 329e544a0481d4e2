package gemm

import "rnnbench/device/cpu/simd"

// tilesOfRows covers rows m … mEnd-1 and columns n … nEnd-1 of C with tiles and reads A in place.
// While it multiplies with some strips of b, it prefetches the strips that follow and, at the end,
// the first of next.
func (e *Engine) tilesOfRows(p *Product, b, next []float32, k, m, mEnd, n, nEnd int, t *simd.Tile) {
	t.CRow = p.LdC
	origin := m*p.A.Stride + k
	t.ARow, t.ACol = p.A.Stride, 1
	if p.A.Trans {
		origin = k*p.A.Stride + m
		t.ARow, t.ACol = 1, p.A.Stride
	}
	rows := mEnd - m
	tiles, few, many := 1, rows, 0 // many tiles have a row more than few
	if rows > e.k.MaxRows() {
		tiles = ceil(rows, e.k.MaxRows())
		few = rows / tiles
		many = rows - few*tiles
	}
	strips, groups := ceil(nEnd-n, width), 1
	if most := e.k.MaxStrips(few + min(many, 1)); strips > most {
		groups = ceil(strips, most)
	}
	for g, s := 0, 0; g < groups; g++ {
		end := strips
		if g < groups-1 {
			end = strips * (g + 1) / groups
		}
		t.Strips = end - s
		t.Last = min(width, nEnd-n-(end-1)*width)
		t.B = b[s*t.BStrip:]
		later := next
		if end < strips {
			later = b[end*t.BStrip:]
		}
		a, c := origin, m*p.LdC+n+s*width
		for i := range tiles {
			t.Rows = few
			if i < many {
				t.Rows++
			}
			t.A, t.C = p.A.Data[a:], p.C[c:]
			fetch(t, later, i, tiles)
			e.k.Tile(t)
			a += t.Rows * t.ARow
			c += t.Rows * p.LdC
		}
		s = end
	}
}

// tilesOfStrips does the same with a packed block of A, whose strips are rows of C, and does not
// prefetch.
func (e *Engine) tilesOfStrips(p *Product, a, b []float32, m, mEnd, n, nEnd int, t *simd.Tile) {
	t.CRow = p.LdC
	t.ARow, t.ACol = 1, width
	strips := ceil(nEnd-n, width)
	perStrip := ceil(width, e.k.MaxRows())
	groups := ceil(strips, e.k.MaxStrips(ceil(width, perStrip)))
	for g, s := 0, 0; g < groups; g++ {
		end := strips * (g + 1) / groups
		t.Strips = end - s
		t.Last = min(width, nEnd-n-(end-1)*width)
		t.B = b[s*t.BStrip:]
		t.Ahead, t.AheadStep = t.B, 0
		for row := m; row < mEnd; row += width {
			rows := min(width, mEnd-row)
			tiles := ceil(rows, e.k.MaxRows())
			for i := range tiles {
				from, to := part(rows, i, tiles)
				t.Rows = to - from
				t.A = a[(row-m)*t.K+from:]
				t.C = p.C[(row+from)*p.LdC+n+s*width:]
				e.k.Tile(t)
			}
		}
		s = end
	}
}

// fetch sets what a tile prefetches: its part of as many strips of later as it multiplies with. So
// many tiles multiply with the same strips one after another, so that slow memory is never asked
// for all of later at once.
func fetch(t *simd.Tile, later []float32, i, tiles int) {
	each := max(1, tiles/t.Strips) // tiles that share the fetching of a strip
	if row := t.Format.RowFloats(); t.BStep == row {
		each = min(each, row)
	} else {
		each = 1 // rows are not contiguous
	}
	strip, part := i/each, i%each
	at := strip*t.BStrip + part*t.K/each*t.BStep
	if strip >= t.Strips || at >= len(later) {
		t.Ahead, t.AheadStep = t.B, 0
		return
	}
	t.Ahead, t.AheadStep = later[at:], ceil(t.BStep, each)
}
