package cpu

import (
	"slices"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A kept tells of a cell's vectors which sequences begin anew: these read 0 in the place of some vectors. A row
// of 0 takes the place of theirs, so that no kernel knows of it. See schedule.Cell.
type kept struct {
	all  ones    // those of a step after the other
	by   []ones  // of these, the rows of the first step by which vectors are read
	of   [][]int // which vectors, for each of by
	zero []float32
}

// Ones are a column of ones and zeros, as far as it goes.
type ones struct {
	data   []float32
	stride int
	view   schedule.View
}

// kept is that of vectors that are read as of says; the zero value where no sequence begins anew.
func (p *binder) kept(op schedule.Op, vectors []cell.Ref, of func(cell.Ref) schedule.View, units int) kept {
	if schedule.Keeping(op).Empty() {
		return kept{}
	}
	column := func(v schedule.View) ones {
		return ones{data: p.memory[v.M.ID][v.Row*v.M.Cols+v.Col:], stride: v.M.Cols, view: v}
	}
	k := kept{all: column(schedule.Keeping(op)), zero: make([]float32, units)}
	for i, r := range vectors {
		v := of(r)
		if v.Empty() {
			continue
		}
		at := slices.IndexFunc(k.by, func(o ones) bool { return o.view == v })
		if at < 0 {
			at = len(k.by)
			k.by, k.of = append(k.by, column(v)), append(k.of, nil)
		}
		k.of[at] = append(k.of[at], i)
	}
	return k
}

// some reports whether sequences may begin anew.
func (k *kept) some() bool { return k.all.data != nil }

// anew reports whether a sequence does, given the row of its step and sequence.
func (k *kept) anew(row int) bool { return k.some() && k.all.data[row*k.all.stride] == 0 }

// zeroes has v, the vectors of a sequence, be 0 where it begins anew, given the row of its step and sequence.
func (k *kept) zeroes(v [][]float32, row int) {
	for at := range k.by {
		if o := &k.by[at]; o.data[row*o.stride] == 0 {
			for _, i := range k.of[at] {
				v[i] = k.zero[:len(v[i])]
			}
		}
	}
}
