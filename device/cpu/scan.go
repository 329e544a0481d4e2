package cpu

import (
	"iter"

	"rnnbench/device/cpu/simd/fused"
)

// A scan runs a linear recurrence over time, forward or backward. Workers split its channels, which
// are the units of all sequences, or time, or both. If time is split, it runs Algorithm 1 of Martin
// and Cundy (2017) on one block of time after another. Blocks are so short that the data that a
// worker reads to compose its chunk is still in its cache when it computes the chunk.
type scan struct {
	program              *program
	meetings             []*barrier // of the workers that share channels, by the first of them
	step, compose        loop
	initial, final       []matrix // carried states before the first step, gradients after the last
	carried              []int    // numbers of the carried states
	steps, batch, hidden int
	backward             bool
	serial               bool // time is never split, and the recurrence need not be linear
	stream               bool // results bypass the caches

	packed bool      // several sequences of few channels run in one vector
	keep   matrix    // resets of each step and of the one after the last; see scankeep.go
	zero   []float32 // a row of zeros

	lanes *lanes // nil: time is not cut into lanes

	most  int // workers that take part
	cut   int // workers that split the time of the same channels
	chunk int // steps of a chunk, at most, if time is split
}

// A loop is a program for many steps, with its vectors.
type loop struct {
	*fused.Loop
	at []place
}

// A scanScratch is one worker's own memory for the scans of a program. Its arrays of states hold
// the carried states, one after another.
type scanScratch struct {
	start, held []float32  // states before the block, and current states in the chunk
	chunk       [2]summary // of this block, and of the one before, which others may still read
	vectors     []fused.Vector
	addresses   []uintptr
	packs       []fused.Pack
	constants   []float32 // for all sequences of a vector
	lanes       laneScratch
}

// A summary is the composition of a chunk of steps: they turn a state h into factor∘h + add.
type summary struct{ factor, add []float32 }

// scanArrays is how many arrays of states a scanScratch has.
const scanArrays = 6

func newScanScratch(n needs) scanScratch {
	own := func() []float32 { return make([]float32, n.states) }
	return scanScratch{
		start: own(), held: own(), chunk: [2]summary{{own(), own()}, {own(), own()}},
		vectors: make([]fused.Vector, n.scanVectors), addresses: make([]uintptr, n.scanVectors),
		packs: make([]fused.Pack, 2), constants: make([]float32, line*n.scanVectors),
		lanes: laneScratch{columns: make([]float32, n.columns), repeated: make([]float32, n.repeated), states: summary{make([]float32, n.laneStates), make([]float32, n.laneStates)}},
	}
}

// state returns the k-th of the carried states, with a row for each sequence.
func (w *scan) state(states []float32, k int) matrix {
	n := w.batch * w.hidden
	return matrix{data: states[k*n:][:n], stride: w.hidden, rows: w.batch, cols: w.hidden}
}

// A piece is a share of a scan's channels: some units of some sequences.
type piece struct{ row, rows, unit, units int }

// piece returns a part of the channels. It cuts between sequences or between units, whichever makes
// the largest part smaller.
func (w *scan) piece(part, parts int) piece {
	if largest(w.batch, 1, parts)*w.hidden <= largest(w.hidden, line, parts)*w.batch {
		from, to := span(w.batch, 1, part, parts)
		return piece{row: from, rows: to - from, unit: 0, units: w.hidden}
	}
	from, to := span(w.hidden, line, part, parts)
	return piece{row: 0, rows: w.batch, unit: from, units: to - from}
}

// largest returns the size of the largest span of n items.
func largest(n, align, parts int) int {
	blocks := (n + align - 1) / align
	return min(n, (blocks+parts-1)/parts*align)
}

// each calls f with the piece's units of each row of two matrices.
func (c piece) each(a, b matrix, f func(a, b []float32)) {
	for i := c.row; i < c.row+c.rows; i++ {
		f(a.row(i)[c.unit:c.unit+c.units], b.row(i)[c.unit:c.unit+c.units])
	}
}

func (c piece) copy(to, from matrix) {
	c.each(to, from, func(to, from []float32) { copy(to, from) })
}

// groups returns how many groups of workers split the channels, if at most cut workers each split
// time.
func groups(parts, cut int) int {
	for cut = min(cut, parts); parts%cut != 0; {
		cut--
	}
	return parts / cut
}

func (w *scan) share(part, parts int, s *scratch) {
	if parts = min(parts, w.most); part >= parts {
		return
	}
	groups := groups(parts, w.cut)
	cut := parts / groups
	first := part / cut * cut // of the workers that share this part's channels
	c := w.piece(part/cut, groups)
	own := &s.scan
	if w.lanes != nil && groups == 1 {
		w.lanes.run(c, s.team[:cut], part)
		return
	}
	if cut == 1 {
		for c := range c.tiles(stateFloats / max(1, len(w.carried))) {
			w.alone(own, c)
		}
		return
	}
	for k, initial := range w.initial {
		c.copy(w.state(own.start, k), initial)
	}
	for at, block := 0, 0; at < w.steps; block++ {
		steps := min(w.steps-at, cut*w.chunk)
		from, to := span(steps, 1, part-first, cut)
		w.summarize(own, c, block, at+from, at+to)
		w.program.device.pool.meet(w.meetings[first], part-first, cut)
		w.startStates(c, block, s.team[first:first+cut], part-first)
		w.run(own, c, &w.step, own.held, nil, at+from, at+to)
		at += steps
	}
	if w.final != nil && part == first+cut-1 {
		for k, final := range w.final {
			c.copy(final, w.state(own.held, k))
		}
	}
}

// stateFloats is how many floats of states a worker keeps at a time when it runs all steps. They
// fit its caches, and are so many that rows of a step are long stretches of memory.
const stateFloats = 32768

// tiles cuts the piece into pieces of several sequences, with about so many units in all.
func (c piece) tiles(units int) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		tile, end := c, c.row+c.rows
		for most := max(1, units/max(1, c.units)); tile.row < end; tile.row += most {
			tile.rows = min(most, end-tile.row)
			if !yield(tile) {
				return
			}
		}
	}
}

// alone runs all steps of channels that no other worker shares.
func (w *scan) alone(own *scanScratch, c piece) {
	for k, initial := range w.initial {
		c.copy(w.state(own.held, k), initial)
	}
	w.run(own, c, &w.step, own.held, nil, 0, w.steps)
	for k, final := range w.final {
		c.copy(final, w.state(own.held, k))
	}
}

// summarize composes steps from … to-1.
func (w *scan) summarize(own *scanScratch, c piece, block, from, to int) {
	sum := &own.chunk[block%2]
	for k := range w.initial {
		c.each(w.state(sum.add, k), w.state(sum.factor, k), func(add, factor []float32) {
			for u := range add {
				add[u], factor[u] = 0, 1
			}
		})
	}
	w.run(own, c, &w.compose, sum.add, sum.factor, from, to)
}

// startStates computes the state before a worker's chunk from the summaries of the chunks before
// it. It also sets start to the state before the next block. group are the workers that share its
// channels.
func (w *scan) startStates(c piece, block int, group []scratch, part int) {
	own, kernels := &group[part].scan, w.program.device.kernels
	for k := range w.initial {
		start := w.state(own.start, k)
		for q := range group {
			if q == part {
				c.copy(w.state(own.held, k), start)
			}
			sum := &group[q].scan.chunk[block%2]
			c.each(start, w.state(sum.factor, k), func(a, b []float32) { kernels.Mul(a, a, b) })
			c.each(start, w.state(sum.add, k), kernels.Accumulate)
		}
	}
}

// prefetch is how far ahead of the reads the loop asks memory for data, in floats. It is far enough
// for memory to answer; more was no better, as measured.
const prefetch = 512

// ask makes the loop prefetch rows to come, each of n vectors side by side, row floats apart.
func (w *scan) ask(v *fused.Vector, n, row, units int) {
	v.Ahead = (prefetch/max(row, -row) + 1) * row
	v.Pace, v.Beside = 1, w.hidden
	if units < w.hidden {
		return
	}
	v.Pace, v.Beside = n, line // whole rows, from end to end
}

// stretch advances the held states by steps from … to-1, counted from where the pass begins. No
// sequence begins anew in them, or, with reset, all do at a single step.
func (w *scan) stretch(own *scanScratch, c piece, l *loop, holds, factors []float32, from, to int, reset bool) {
	if from == to {
		return
	}
	packed := w.packed && !reset && c.rows > 1 && c.units == w.hidden
	first, sign := from*w.batch+c.row, 1 // row, direction
	if w.backward {
		first, sign = (w.steps-1-from)*w.batch+c.row, -1
	}
	used := 0 // floats of own.constants
	v := own.vectors[:len(l.at)]
	stream := w.stream && l == &w.step
	for i := range l.at {
		at := &l.at[i]
		if reset && at.cut {
			v[i] = w.none()
			continue
		}
		m, start := at.matrix, c.row
		switch at.moves {
		case held:
			m = w.state(holds, at.state)
		case factor:
			m = w.state(factors, at.state)
		case perStep:
			start = first
		case constant:
			v[i] = fused.Vector{Data: m.data, From: c.unit}
			if packed {
				v[i] = fused.Vector{Data: own.constants, From: used}
				used += repeat(own.constants[used:], m.data[:w.hidden], l.Packs(w.hidden))
			}
			continue
		}
		v[i] = fused.Vector{Data: m.data, From: start*m.stride + c.unit, Row: m.stride, Step: m.stride * (1 - c.rows)} // Step goes back to a step's first row
		if at.moves == perStep {
			v[i].Step += sign * w.batch * m.stride
			w.ask(&v[i], at.adjacent, sign*m.stride, c.units)
			stream = stream && (!at.result || v[i].Aligned())
		}
	}
	if packed {
		l.RunPacked(v, own.addresses, own.packs, c.units, c.rows, to-from)
		return
	}
	l.Run(v, own.addresses, c.units, c.rows, to-from, stream)
}

// repeat writes a row so many times and returns the number of floats written.
func repeat(to, row []float32, times int) (n int) {
	for range times {
		n += copy(to[n:], row)
	}
	return n
}
