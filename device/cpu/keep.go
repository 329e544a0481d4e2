package cpu

import (
	"slices"

	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A kept says which sequences begin anew at a step. Such a sequence reads zeros instead of some of
// the cell's vectors: a row of zeros is passed in their place, so kernels need not know. See
// schedule.Cell.
type kept struct {
	all  ones    // one per step and sequence, in the order of steps
	by   []ones  // distinct columns by which vectors are read, at the first step
	of   [][]int // for each of by, the vectors that it applies to
	zero []float32
}

// Ones is a column of ones and zeros, from its first row to the end of memory.
type ones struct {
	data   []float32
	stride int
	view   schedule.View
}

// kept returns the resets of op. of returns the column by which a vector is read. The result is the
// zero value if no sequence begins anew.
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

// some reports whether any sequence may begin anew.
func (k *kept) some() bool { return k.all.data != nil }

// isReset reports whether the sequence of a row begins anew. There is a row for each step and
// sequence.
func (k *kept) isReset(row int) bool { return k.some() && k.all.data[row*k.all.stride] == 0 }

// zeroes replaces vectors of v, those of one sequence, that read as 0 if the sequence begins anew.
// row is the row of the step and sequence.
func (k *kept) zeroes(v []fused.Vector, row int) {
	for at := range k.by {
		if o := &k.by[at]; o.data[row*o.stride] == 0 {
			for _, i := range k.of[at] {
				v[i] = fused.Vector{Data: k.zero}
			}
		}
	}
}
