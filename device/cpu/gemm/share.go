package gemm

// Share returns the rectangle of C that a worker computes: rows m0 … m1-1 and columns n0 … n1-1,
// possibly empty. With packed weights and few rows it is a band of columns that depends on N alone.
//
// Workers form bands of rows, with heights in proportion to their numbers of workers, and the
// workers of a band split its columns. So all workers have about the same work, whether their
// number has divisors or not.
func (e *Engine) Share(p *Product, worker, workers int) (m0, m1, n0, n1 int) {
	if workers == 1 {
		return 0, p.M, 0, p.columns()
	}
	bands := e.bands(p, workers)
	first, next := part(workers, ((worker+1)*bands-1)/workers, bands) // the workers of this worker's band
	rows := tileHeight(e, p)
	t0, t1 := first*ceil(p.M, rows)/workers, next*ceil(p.M, rows)/workers
	m0, m1 = t0*rows, min(p.M, t1*rows)
	wn := next - first
	unit := width
	if wide := tileWidth(e, p); p.columns() >= 8*wide*wn {
		unit = wide // whole tiles, if a tile more or less makes little difference
	}
	s0, s1 := part(ceil(p.columns(), unit), worker-first, wn)
	return m0, m1, min(p.columns(), s0*unit), min(p.columns(), s1*unit)
}

// tileWidth returns how many columns are multiplied at once.
func tileWidth(e *Engine, p *Product) int {
	if (rounder{e}).rounds(p) && e.k.Unit() != nil {
		return leastStrips * width
	}
	return e.k.MaxStrips(e.k.MaxRows()) * width
}

// bands returns how many bands of rows the workers form. It weighs the largest share of
// multiply-adds against packing that several workers repeat.
func (e *Engine) bands(p *Product, workers int) int {
	strips := ceil(p.columns(), width)
	if p.Packed != nil && (p.M <= tileHeight(e, p) || strips >= 8*workers) {
		return 1
	}
	// packing one float takes about as long as this many multiply-adds
	packing := 24
	if (rounder{e}).rounds(p) {
		packing *= 4 // multiply-adds are so much faster
	}
	rows := tileHeight(e, p)
	tiles := ceil(p.M, rows)
	cost := func(bands int) int {
		few := workers / bands // workers of a band, or one more
		most := 0
		for many := few; many <= min(few+1, ceil(workers, bands)); many++ {
			m, n := ceil(tiles*many, workers)*rows, ceil(strips, many)*width
			c := m * n
			if p.Packed == nil {
				c += packing * n
			}
			if p.A.Trans {
				c += packing * m
			}
			most = max(most, c)
		}
		return most
	}
	best, least := 1, cost(1)
	for bands := 2; bands <= min(workers, tiles); bands++ {
		if c := cost(bands); c < least {
			best, least = bands, c
		}
	}
	return best
}
