package cpu

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A scan runs a linear recurrence over time, forward or backward. Workers split
// its channels, the units of all sequences, or time, or both. Where time is
// split it is Algorithm 1 of Martin and Cundy (2017) on one block of time after
// the other, so short that what a worker has read to compose its chunk still
// lies in its cache when it computes it.
type scan struct {
	kernels              *simd.Kernels
	barrier              *barrier
	step, compose        loop
	initial, final       []matrix // carried states before the first step, gradients after the last
	steps, batch, hidden int
	backward             bool
	stream               bool // results bypass the caches

	cut     int // workers that split time between them
	chunk   int // steps of a chunk at most, where time is split
	workers []scanWorker
}

// A loop is a program for many steps with its vectors.
type loop struct {
	*fused.Loop
	at []place
}

// A scanWorker is what one worker of a scan has of its own.
type scanWorker struct {
	start, held []matrix   // per carried state: before the block, and in the course of the chunk
	chunk       [2]summary // of this block and of another, which others may still read
	vectors     []fused.Vector
	addresses   []uintptr
}

// A summary is a chunk of steps composed, per carried state: they make factor∘h
// + add of a state h.
type summary struct{ factor, add []matrix }

// A piece is a share of a scan's channels: some units of some sequences.
type piece struct{ row, rows, unit, units int }

// piece cuts the channels between sequences or between units, whichever makes
// parts more equal.
func (w *scan) piece(part, parts int) piece {
	if largest(w.batch, 1, parts)*w.hidden <= largest(w.hidden, line, parts)*w.batch {
		from, to := span(w.batch, 1, part, parts)
		return piece{from, to - from, 0, w.hidden}
	}
	from, to := span(w.hidden, line, part, parts)
	return piece{0, w.batch, from, to - from}
}

// largest is the size of the largest span.
func largest(n, align, parts int) int {
	blocks := (n + align - 1) / align
	return min(n, (blocks+parts-1)/parts*align)
}

// each runs f on the piece's rows of two matrices.
func (c piece) each(a, b *matrix, f func(a, b []float32)) {
	for i := c.row; i < c.row+c.rows; i++ {
		f(a.row(i)[c.unit:c.unit+c.units], b.row(i)[c.unit:c.unit+c.units])
	}
}

func (c piece) copy(to, from *matrix) {
	c.each(to, from, func(to, from []float32) { copy(to, from) })
}

// groups is how many groups of so many parts split time, of cut parts each at
// most.
func groups(parts, cut int) int {
	for cut = min(cut, parts); parts%cut != 0; {
		cut--
	}
	return parts / cut
}

func (w *scan) share(part, parts int, _ *scratch) {
	groups := groups(parts, w.cut)
	cut := parts / groups
	first := part / cut * cut // of those that share this part's channels
	c := w.piece(part/cut, groups)
	own := &w.workers[part]
	for k := range w.initial {
		c.copy(&own.start[k], &w.initial[k])
	}
	for at, block := 0, 0; at < w.steps; block++ {
		steps := w.steps - at
		if cut > 1 {
			steps = min(steps, cut*w.chunk)
		}
		from, to := span(steps, 1, part-first, cut)
		if cut > 1 {
			w.summarize(own, c, block, at+from, at+to)
			w.barrier.wait(part, first, first+cut)
		}
		w.lead(c, block, first, part, cut)
		w.run(own, c, &w.step, own.held, nil, at+from, at+to)
		at += steps
	}
	if w.final != nil && part == first+cut-1 {
		for k := range w.final {
			c.copy(&w.final[k], &own.held[k])
		}
	}
}

// summarize composes the steps from … to.
func (w *scan) summarize(own *scanWorker, c piece, block, from, to int) {
	sum := &own.chunk[block%2]
	for k := range sum.add {
		c.each(&sum.add[k], &sum.factor[k], func(add, factor []float32) {
			for u := range add {
				add[u], factor[u] = 0, 1
			}
		})
	}
	w.run(own, c, &w.compose, sum.add, sum.factor, from, to)
}

// lead sets what a part holds to what comes out of the chunks before its own,
// and the start to that of the next block.
func (w *scan) lead(c piece, block, first, part, cut int) {
	own := &w.workers[part]
	for k := range own.start {
		for q := first; q < first+cut; q++ {
			if q == part {
				c.copy(&own.held[k], &own.start[k])
			}
			if cut > 1 {
				sum := &w.workers[q].chunk[block%2]
				c.each(&own.start[k], &sum.factor[k], w.mul)
				c.each(&own.start[k], &sum.add[k], w.kernels.Accumulate)
			}
		}
	}
}

func (w *scan) mul(a, b []float32) { w.kernels.Mul(a, a, b) }

// run advances what is held by the steps from … to, counted from where the pass
// begins.
func (w *scan) run(own *scanWorker, c piece, l *loop, holds, factors []matrix, from, to int) {
	first, sign := from*w.batch+c.row, 1 // row, direction
	if w.backward {
		first, sign = (w.steps-1-from)*w.batch+c.row, -1
	}
	v := own.vectors[:len(l.at)]
	stream := w.stream && l == &w.step
	for i := range l.at {
		at := &l.at[i]
		m, start := &at.matrix, c.row
		switch at.moves {
		case held:
			m = &holds[at.state]
		case factor:
			m = &factors[at.state]
		case perStep:
			start = first
		case constant:
			v[i] = fused.Vector{Data: m.data, From: c.unit}
			continue
		}
		back := m.stride * (c.rows - 1) // from a step's last row to its first
		v[i] = fused.Vector{Data: m.data, From: start*m.stride + c.unit, Row: m.stride, Step: -back}
		if at.moves == perStep {
			v[i].Step += sign * w.batch * m.stride
			stream = stream && (!at.result || v[i].Aligned())
		}
	}
	l.Run(v, own.addresses, c.units, c.rows, to-from, stream)
}

// scanKnobs are those of schedules with scans.
func (d *Device) scanKnobs(s *schedule.Schedule) []knob.Knob {
	steps := 0
	for _, n := range s.Nodes {
		switch op := n.Op.(type) {
		case schedule.Scan:
			steps = max(steps, op.Steps)
		case schedule.ScanBackward:
			steps = max(steps, op.Steps)
		}
	}
	if steps == 0 || d.workers == 1 {
		return nil
	}
	split := []int{0, 1}
	for n := 2; n < d.workers; n *= 2 {
		split = append(split, n)
	}
	chunks := []int{0}
	for n := 16; n < steps && n <= 4096; n *= 4 {
		chunks = append(chunks, n)
	}
	return []knob.Knob{
		{Name: "scansplit", Doc: "workers that split time between them in a scan, the others split channels; 1: channels alone; 0: by the number of channels",
			Values: append(split, d.workers), Min: 0, Max: d.workers},
		{Name: "scanchunk", Doc: "steps of a worker's chunk of time in a scan; 0: as many as its cache holds", Values: chunks, Min: 0, Max: steps},
	}
}
