package cpu

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A kept tells of a cell's vectors which sequences begin anew: these read 0 in the place of some vectors. A row
// of 0 takes the place of theirs, so that no kernel knows of it. See schedule.Cell.
type kept struct {
	all  matrix   // the column of ones and zeros, those of a step after the other
	by   []matrix // for each vector the rows of it by which it is read; empty: as it is
	zero []float32
}

// kept is that of vectors that are read as of says; the zero value where no sequence begins anew.
func (p *binder) kept(op schedule.Op, vectors []cell.Ref, of func(cell.Ref) schedule.View, units int) kept {
	if schedule.Keeping(op).Empty() {
		return kept{}
	}
	from := func(v schedule.View) matrix { // to the column's end
		if v.Empty() {
			return matrix{}
		}
		return matrix{data: p.memory[v.M.ID][v.Row*v.M.Cols+v.Col:], stride: v.M.Cols, rows: v.Rows, cols: 1}
	}
	k := kept{all: from(schedule.Keeping(op)), by: make([]matrix, len(vectors)), zero: make([]float32, units)}
	for i, r := range vectors {
		k.by[i] = from(of(r))
	}
	return k
}

// some reports whether sequences may begin anew.
func (k *kept) some() bool { return k.by != nil }

// anew reports whether a sequence does, given the row of its step and sequence.
func (k *kept) anew(row int) bool { return k.some() && k.all.data[row*k.all.stride] == 0 }

// zeroes has v, the vectors of a sequence, be 0 where it begins anew, given the row of its step and sequence.
func (k *kept) zeroes(v [][]float32, row int) {
	for i := range k.by {
		if m := &k.by[i]; m.rows > 0 && m.data[row*m.stride] == 0 {
			v[i] = k.zero[:len(v[i])]
		}
	}
}
