package simd

// Products are the micro-kernels of products of one level.
type Products struct {
	tiles               [formats]tileTable
	dots                [MaxRows + 1][DotCols + 1]func(*Dot)
	maxRows, maxDotRows int
	maxStrips           [MaxRows + 1]int
	peak                func(n int)
	peakFLOPs           int // of one round of peak
}

// A tileTable has the kernels by rows and strips.
type tileTable [MaxRows + 1][MaxRows + 1]func(*Tile)

// MaxRows returns the most rows of a Tile.
func (k *Products) MaxRows() int { return k.maxRows }

// MaxStrips returns the most strips of a Tile of the given rows.
func (k *Products) MaxStrips(rows int) int { return k.maxStrips[rows] }

// Tile runs t. It does not check that the slices of t are long enough.
func (k *Products) Tile(t *Tile) { k.tiles[t.Format][t.Rows][t.Strips](t) }

// MaxDotRows returns the most rows of a Dot.
func (k *Products) MaxDotRows() int { return k.maxDotRows }

// Dot runs t. It does not check that the slices of t are long enough.
func (k *Products) Dot(t *Dot) { k.dots[t.Rows][t.Cols](t) }

// FMAPeak runs about n multiply-adds on registers alone and returns how many floating-point
// operations it did: the machine's peak, divided by the time it took.
func (k *Products) FMAPeak(n int) int64 {
	rounds := max(1, 2*n/k.peakFLOPs)
	k.peak(rounds)
	return int64(rounds) * int64(k.peakFLOPs)
}
