package gemm

import "rnnbench/device/cpu/simd"

// Run computes the worker's share of p. Shares are disjoint. The order of additions depends only on
// p, worker and workers.
func (e *Engine) Run(p *Product, worker, workers int, s *Scratch) {
	m0, m1, n0, n1 := e.Share(p, worker, workers)
	if m0 < m1 && n0 < n1 {
		e.run(p, m0, m1, n0, n1, p.from(n1), s)
	}
}

// sumRows sums rows m0 … m1-1 of A, read in place.
func (e *Engine) sumRows(p *Product, m0, m1 int, s *Scratch) {
	sums := p.Sums[m0:m1]
	if !p.Accumulate {
		clear(sums)
	}
	e.k.SumRows(sums, p.A.Data[m0:], p.A.Stride, p.K, s.part[:])
}

// sumStrips sums the columns of a packed block of A that t multiplies with: a product with a row of
// ones. It sets sums or adds to them, as t does.
func (e *Engine) sumStrips(sums, a []float32, t, ones *simd.Tile) {
	ones.A, ones.ACol = e.ones, 1
	ones.BStrip, ones.BStep = t.K*width, width
	ones.K, ones.Rows, ones.Accumulate = t.K, 1, t.Accumulate
	for n := 0; n < len(sums); n += ones.Strips * width {
		rest := len(sums) - n
		ones.Strips = min(ceil(rest, width), e.k.MaxStrips(1))
		ones.Last = min(width, rest-(ones.Strips-1)*width)
		ones.B, ones.C = a[n*t.K:], sums[n:]
		ones.Ahead = ones.B
		e.k.Tile(ones)
	}
}

// run computes a rectangle of p. It prefetches next, the strips that are likely to be read
// afterwards.
func (e *Engine) run(p *Product, m0, m1, n0, n1 int, next []float32, s *Scratch) {
	if p.Sums != nil && n0 == 0 {
		if a, _ := e.scratch(p, m1-m0, n1-n0); a == 0 { // otherwise packing A also sums its rows
			e.sumRows(p, m0, m1, s)
		}
	}
	switch e.way(p, m1-m0) {
	case rounded:
		rounder{e}.run(p, m0, m1, n0, n1, next, s)
	case integers:
		runI8(e, p, m0, m1, n0, n1, s)
	case packed:
		if m1-m0 <= e.k.MaxRows() {
			e.runPacked(p, m0, m1, n0, n1, next, s)
		} else {
			e.runBlocks(p, m0, m1, n0, n1, next, s)
		}
	case byDots:
		e.runDots(p, m0, m1, n0, n1, s)
	case inPlace:
		e.runInPlace(p, m0, m1, n0, n1, s)
	default:
		e.runBlocks(p, m0, m1, n0, n1, next, s)
	}
}

// runPacked multiplies few rows with packed weights: one tile high, all of K at once.
func (e *Engine) runPacked(p *Product, m0, m1, n0, n1 int, next []float32, s *Scratch) {
	t := &s.tile
	t.K = p.K
	t.BStep = p.Format.RowFloats()
	t.BStrip = p.K * t.BStep
	t.Format = p.Format
	t.Accumulate = p.Accumulate
	e.tilesOfRows(p, Columns(p.Packed, p.Format, p.K, n0), next, 0, m0, m1, n0, n1, t)
}

// from returns the packed strips from column n on, or nil if there are none.
func (p *Product) from(n int) []float32 {
	if p.Packed == nil || n >= p.N {
		return nil
	}
	return Columns(p.Packed, p.Format, p.K, n)
}

func (e *Engine) runBlocks(p *Product, m0, m1, n0, n1 int, after []float32, s *Scratch) {
	mc, nc, kc := e.blocks(p, m1-m0, n1-n0)
	a := 0
	if p.A.Trans {
		a, _ = e.scratch(p, m1-m0, n1-n0)
	}
	bufA, bufB := s.buf[:a], s.buf[a:]
	t := &s.tile
	way := e.way(p, m1-m0)
	if way == packed {
		nc = n1 - n0
	}
	for n := n0; n < n1; n += nc {
		nEnd := min(n+nc, n1)
		for k := 0; k < p.K; k += kc {
			kEnd := min(k+kc, p.K)
			b, next := bufB, []float32(nil)
			t.Format, t.BStep = simd.F32, width
			t.BStrip = (kEnd - k) * width
			switch way {
			case packed:
				t.Format, t.BStep = p.Format, p.Format.RowFloats()
				t.BStrip = p.K * t.BStep
				b = Columns(p.Packed, p.Format, p.K, n)
				if next = after; kEnd < p.K {
					next = b[kEnd*t.BStep:]
				}
				b = b[k*t.BStep:]
			case widened:
				row := p.Format.RowFloats()
				for s := range ceil(nEnd-n, width) {
					e.k.Widen(b[s*t.BStrip:][:t.BStrip], p.Packed[((n/width+s)*p.K+k)*row:], p.Format)
				}
			default:
				p.each(n, nEnd, func(q *Product, from, to, before int) {
					e.pack(b[before*(kEnd-k):], q.B, k, kEnd, from, to)
				})
			}
			t.K = kEnd - k
			t.Accumulate = p.Accumulate || k > 0
			for m := m0; m < m1; m += mc {
				mEnd := min(m+mc, m1)
				if a > 0 {
					e.k.Pack(bufA, p.A.Data[k*p.A.Stride+m:], t.K*width, p.A.Stride, t.K, mEnd-m)
					if p.Sums != nil && n == 0 {
						e.sumStrips(p.Sums[m:mEnd], bufA, t, &s.sums)
					}
					p.each(n, nEnd, func(q *Product, from, to, before int) {
						e.tilesOfStrips(q, bufA, b[before*t.K:], m, mEnd, from, to, t)
					})
				} else {
					p.each(n, nEnd, func(q *Product, from, to, before int) {
						e.tilesOfRows(q, b[before*t.K:], next, k, m, mEnd, from, to, t)
					})
				}
			}
		}
	}
}

// runInPlace multiplies few rows with strips read from B itself.
func (e *Engine) runInPlace(p *Product, m0, m1, n0, n1 int, s *Scratch) {
	_, _, kc := e.blocks(p, m1-m0, n1-n0)
	t := &s.tile
	t.Format = simd.F32
	whole := n0 + (n1-n0)/width*width
	for k := 0; k < p.K; k += kc {
		kEnd := min(k+kc, p.K)
		t.K = kEnd - k
		t.Accumulate = p.Accumulate || k > 0
		if n0 < whole {
			t.BStrip, t.BStep = width, p.B.Stride
			e.tilesOfRows(p, p.B.Data[k*p.B.Stride+n0:], nil, k, m0, m1, n0, whole, t)
		}
		if whole < n1 {
			e.pack(s.buf, p.B, k, kEnd, whole, n1)
			t.BStrip, t.BStep = width*t.K, width
			e.tilesOfRows(p, s.buf, nil, k, m0, m1, whole, n1, t)
		}
	}
}

// runDots multiplies few rows with rows of Bᵀ.
func (e *Engine) runDots(p *Product, m0, m1, n0, n1 int, s *Scratch) {
	d := &s.dot
	d.K = p.K
	d.ARow, d.BRow, d.CRow = p.A.Stride, p.B.Stride, p.LdC
	d.Accumulate = p.Accumulate
	for n := n0; n < n1; n += d.Cols {
		d.Cols = simd.DotCols
		if n+d.Cols > n1 {
			d.Cols = 1
		}
		d.B = p.B.Data[n*p.B.Stride:]
		for m := m0; m < m1; m += d.Rows {
			d.Rows = min(e.k.MaxDotRows(), m1-m)
			d.A, d.C = p.A.Data[m*p.A.Stride:], p.C[m*p.LdC+n:]
			e.k.Dot(d)
		}
	}
}
