package rnn

// A way is the order in which a layer of the reference reads the steps. Rows are steps × distinct
// sequences in the order of steps, whatever the way. Layers keep the states of a step more: the
// initial ones lie before the first step or, of a layer that begins at the last, after that.
type way struct {
	backwards     bool
	frames, batch int
	rows          int
	initial       int // row of the initial states
	before, after int // rows from a row of the input to the states before and after its step
}

// wayOf is that of number i of Problem.Reads.
func wayOf(r *reference, i int) way {
	w := way{backwards: r.p.Backwards(i), frames: r.p.Frames(), batch: r.Distinct, rows: r.rows, after: r.Distinct}
	if w.backwards {
		w.initial, w.before, w.after = r.rows, r.Distinct, 0
	}
	return w
}

// step is the kth step that is read.
func (w way) step(k int) int {
	if w.backwards {
		return w.frames - 1 - k
	}
	return k
}

// earlier is the row of the same sequence that was read k steps before, if there is one.
func (w way) earlier(row, k int) (int, bool) {
	if w.backwards {
		k = -k
	}
	row -= k * w.batch
	return row, row >= 0 && row < w.rows
}

// prior are values [from, to) of the states before the steps of rows.
func (y *refLayer) prior(state, from, to, hidden int) []float64 {
	return y.state[state][y.before*hidden:][from:to]
}

// later are the states after the steps of all rows.
func (y *refLayer) later(state, hidden int) []float64 {
	return y.state[state][y.after*hidden:][:y.rows*hidden]
}

// outputs are those of layer l: both ways side by side.
func (r *reference) outputs(l int) []float64 {
	var parts [][]float64
	for w := range r.p.Ways() {
		parts = append(parts, r.layers[l*r.p.Ways()+w].later(0, r.p.Hidden))
	}
	return beside(parts, r.p.Hidden)
}

// beside joins rows of so many columns; nil if there are none.
func beside(parts [][]float64, cols int) []float64 {
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
