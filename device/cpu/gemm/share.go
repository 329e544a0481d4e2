package gemm

// Share returns the rectangle of C that a worker computes: rows m0 … m1 and columns n0 … n1,
// possibly empty. With packed weights it is a band of columns that depends on N alone.
func (e *Engine) Share(p *Product, worker, workers int) (m0, m1, n0, n1 int) {
	if workers == 1 {
		return 0, p.M, 0, p.columns()
	}
	wn := e.columns(p, workers)
	m0, m1 = 0, p.M
	if wn < workers {
		rows := tall(e, p)
		t0, t1 := part(ceil(p.M, rows), worker/wn, workers/wn)
		m0, m1 = t0*rows, min(p.M, t1*rows)
		worker %= wn
	}
	unit := width
	if wide := wide(e, p); p.columns() >= 8*wide*wn {
		unit = wide // whole tiles: a share may be a tile larger than another, which must be little
	}
	s0, s1 := part(ceil(p.columns(), unit), worker, wn)
	return m0, m1, min(p.columns(), s0*unit), min(p.columns(), s1*unit)
}

// wide is how many columns are multiplied at once.
func wide(e *Engine, p *Product) int {
	if (rounder{e}).takes(p) && e.k.Unit() != nil {
		return leastStrips * width
	}
	return e.k.MaxStrips(e.k.MaxRows()) * width
}

// columns returns how many bands of columns the workers form; it divides workers. It weighs the
// largest share of multiply-adds against the packing that bands of rows or columns repeat.
func (e *Engine) columns(p *Product, workers int) int {
	strips := ceil(p.columns(), width)
	if p.Packed != nil && (p.M <= tall(e, p) || strips >= 8*workers) {
		return workers
	}
	// packing one float takes about as long as this many multiply-adds
	packing := 24
	if (rounder{e}).takes(p) {
		packing *= 4 // which are that much faster
	}
	rows := tall(e, p)
	tiles := ceil(p.M, rows)
	cost := func(wn int) int {
		m, n := ceil(tiles, workers/wn)*rows, ceil(strips, wn)*width
		c := m * n
		if p.Packed == nil {
			c += packing * n
		}
		if p.A.Trans {
			c += packing * m
		}
		return c
	}
	best, least := workers, cost(workers)
	try := func(wn int) {
		if c := cost(wn); c < least || c == least && wn > best {
			best, least = wn, c
		}
	}
	for d := 1; d*d <= workers; d++ {
		if workers%d == 0 {
			try(workers / d)
			try(d)
		}
	}
	return best
}
