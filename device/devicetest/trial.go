package devicetest

import (
	"math/rand/v2"
	"slices"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// lengths are the sizes of operations: 1, odd numbers, primes, and one more than a vector, a tile
// or a block.
var lengths = []int{1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 48, 49, 64, 65, 97, 257}

// A trial builds one operation over fresh matrices.
type trial struct {
	b    *schedule.Builder
	rng  *rand.Rand
	size func() int
}

// place returns a view of a fresh matrix: all of it or, half of the time, a rectangle inside.
func (t *trial) place(rows, cols int) schedule.View { return t.placed("m", rows, cols) }

// divisor is like place, with values that may be divisors; see fill.
func (t *trial) divisor(rows, cols int) schedule.View { return t.placed(positive, rows, cols) }

// state is like place, for state s of c.
func (t *trial) state(c *cell.Cell, s, rows, cols int) schedule.View {
	if slices.Contains(c.Positive, s) {
		return t.divisor(rows, cols)
	}
	return t.place(rows, cols)
}

func (t *trial) placed(name string, rows, cols int) schedule.View {
	if t.rng.IntN(2) == 0 {
		return t.b.Matrix(name, rows, cols).All()
	}
	top, left := t.rng.IntN(3), t.rng.IntN(19)
	return schedule.View{M: t.b.Matrix(name, top+rows+t.rng.IntN(3), left+cols+t.rng.IntN(5)), Row: top, Col: left, Rows: rows, Cols: cols}
}

// index returns a column of indices of a table's rows; see fill.
func (t *trial) index(rows int) schedule.View { return t.b.Matrix("index", rows, 1).All() }

func (t *trial) flip() bool { return t.rng.IntN(2) == 0 }

func oriented(trans bool, rows, cols int) (int, int) {
	if trans {
		return cols, rows
	}
	return rows, cols
}
