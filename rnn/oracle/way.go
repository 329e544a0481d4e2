package oracle

import (
	"slices"

	"rnnbench/rnn"
)

// A way is the order in which a layer of the reference reads the steps. Rows are steps × distinct
// sequences in the order of steps, whatever the way. Layers keep the states of one step more: the
// initial states, before the first step or, in a layer that begins at the last step, after it.
type way struct {
	backwards     bool
	frames, batch int
	rows          int
	initial       int       // row of the initial states
	before, after int       // rows from a row of the input to the states before and after its step
	lengths       []int     // of the sequences; nil: all have all steps
	resets        []float32 // 1 in each row before which a sequence begins anew; nil: none
}

// wayOf is the order in which layer i of Problem.Reads reads.
func wayOf(r *reference, i int) way {
	w := way{backwards: r.p.Backwards(i), frames: r.p.Frames(), batch: r.Distinct, rows: r.rows, after: r.Distinct, lengths: rnn.SequenceLengths(r.p)}
	if r.p.Resets > 0 {
		w.resets = r.Get("reset")
	}
	if w.backwards {
		w.initial, w.before, w.after = r.rows, r.Distinct, 0
	}
	return w
}

// step is the kth step in the order of reading.
func (w way) step(k int) int {
	if w.backwards {
		return w.frames - 1 - k
	}
	return k
}

// exists reports whether the sequence of a row has its step.
func (w way) exists(row int) bool {
	return w.lengths == nil || row/w.batch < w.lengths[row%w.batch]
}

// keepStates leaves the states of units [from, to) as they are at a row that does not exist. A
// layer that reads from the last step comes to such rows first.
func (y *refLayer) keepStates(row, from, to, h int) {
	for _, v := range y.state {
		copy(v[(row+y.after)*h+from:(row+y.after)*h+to], v[(row+y.before)*h+from:])
	}
}

// carryOver does the same with values, h for each row of step t. before has those of the step that
// is read before it; nil: 0.
func (w way) carryOver(values, before []float64, t, h int) {
	for j := range w.batch {
		row := t*w.batch + j
		switch to := values[row*h : (row+1)*h]; {
		case w.exists(row):
		case before == nil:
			clear(to)
		default:
			copy(to, before[j*h:])
		}
	}
}

// earlier is the row of the same sequence that was read k steps before, if it exists.
func (w way) earlier(row, k int) (int, bool) {
	if w.backwards {
		k = -k
	}
	row -= k * w.batch
	return row, row >= 0 && row < w.rows && w.exists(row)
}

// prior returns values [from, to) of the states before the steps of rows, 0 where sequences begin anew.
func (y *refLayer) prior(state, from, to, hidden int) []float64 {
	return y.begun(y.state[state][y.before*hidden:][from:to], from/hidden, hidden)
}

// later returns the states after the steps of all rows, 0 past the ends of sequences.
func (y *refLayer) later(state, hidden int) []float64 {
	return y.existing(y.state[state][y.after*hidden:][:y.rows*hidden], hidden)
}

// existing returns rows of n values each, 0 past the ends of sequences.
func (w way) existing(rows []float64, n int) []float64 {
	if w.lengths == nil {
		return rows
	}
	rows = slices.Clone(rows)
	for t := range w.frames {
		w.carryOver(rows, nil, t, n)
	}
	return rows
}

// outputs returns what others read of layer l, both ways side by side.
func (r *reference) outputs(l int) []float64 {
	var parts [][]float64
	for w := range r.p.Ways() {
		y := &r.layers[l*r.p.Ways()+w]
		if y.left != nil {
			parts = append(parts, y.left)
			continue
		}
		parts = append(parts, y.shown(0, r.p.Hidden))
	}
	return joinColumns(parts, rnn.Emits(r.p))
}

// joinColumns puts the rows of parts, each of so many columns, side by side; nil if the parts are.
func joinColumns(parts [][]float64, cols int) []float64 {
	if len(parts) == 1 || parts[0] == nil {
		return parts[0]
	}
	out := make([]float64, 0, len(parts)*len(parts[0]))
	for row := range len(parts[0]) / cols {
		for _, part := range parts {
			out = append(out, part[row*cols:(row+1)*cols]...)
		}
	}
	return out
}

// columns narrows rows to n columns from col.
func columns[F float32 | float64](rows []F, cols, col, n int) []F {
	if n == cols {
		return rows
	}
	out := make([]F, 0, len(rows)/cols*n)
	for at := col; at < len(rows); at += cols {
		out = append(out, rows[at:at+n]...)
	}
	return out
}

// restarts reports whether the sequence of a row begins anew at its step, in the way that w reads.
func (w way) restarts(row int) bool {
	if w.backwards {
		row += w.batch
	}
	return row < len(w.resets) && w.resets[row] != 0
}

// begun returns values from before the steps of rows, n for each, with 0 where a sequence begins
// restarts. first is the first row.
func (w way) begun(values []float64, first, n int) []float64 {
	if w.resets == nil {
		return values
	}
	out := append([]float64(nil), values...)
	for i := range len(out) / n {
		if w.restarts(first + i) {
			clear(out[i*n : (i+1)*n])
		}
	}
	return out
}

// cutCarry clears the gradients that would pass from step t to the step that is read before it,
// where a sequence begins anew.
func (y *refLayer) cutCarry(t, h int) {
	if y.resets == nil {
		return
	}
	for j := range y.batch {
		if y.restarts(t*y.batch + j) {
			for _, d := range y.dState {
				clear(d[j*h : (j+1)*h])
			}
		}
	}
}
