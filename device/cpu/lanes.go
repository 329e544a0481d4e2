package cpu

import (
	"cmp"
	"slices"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// Few channels fill a part of a vector register. A worker then cuts its chunk of time into stretches
// and runs them side by side, each in a lane. It transposes what the steps read, so that a unit's
// values of all lanes lie side by side, and its loops run over rows that are so many times as long.
// It composes all lanes, computes the state before each of them, runs them, and transposes the
// results back. This is Algorithm 1 of Martin and Cundy (2017) with lanes in place of processors.

// A strip is adjacent vectors of one matrix that are transposed together.
type strip struct {
	matrix            // from its first column on
	first    cell.Ref // its first vector
	vectors  int
	result   bool
	from, to int // its columns among those of all strips
}

// lanes are how a scan runs in lanes.
type lanes struct {
	*scan
	count   int // of lanes: stretches of a worker's time that run side by side
	longest int // steps of a stretch, at most
	strips  []strip
}

// A laneScratch is one worker's memory for lanes.
type laneScratch struct {
	columns  []float32 // the strips of all steps of a stretch, one after another
	states   summary   // of the steps done so far in each lane; after spread, add is the states
	repeated []float32 // vectors that all steps share
}

// lanesOf returns w's lanes, or nil if it runs without: its channels fill more than half of a vector,
// or its steps are few.
func (w *scan) lanesOf(level simd.Level, k knob.Params) *lanes {
	l := &lanes{scan: w, count: k["scanlanes"]}
	if l.count == 0 {
		l.count = w.laneCount(level)
	}
	if l.count == 1 {
		return nil
	}
	l.strips = w.stripsOf()
	l.longest = gemm.DetectL2() / 4 / (4 * l.count * w.batch * l.columns())
	if chunk := k["scanchunk"]; chunk > 0 {
		l.longest = chunk / l.count
	}
	l.longest = max(1, min(l.longest, w.steps/l.count))
	whole := 1 // steps of whole cache lines
	for whole < line && whole*w.batch*w.hidden%line != 0 {
		whole *= 2
	}
	if n := l.longest / whole; n > 0 { // odd, so that stretches do not all begin in the same lines of a cache
		l.longest = ((n - 1) | 1) * whole
	}
	return l
}

// laneCount returns the number of lanes that suits w; 1: none.
func (w *scan) laneCount(level simd.Level) int {
	const most, enough = 64, 8 // units worth a row, and steps worth a stretch
	n := line
	if level.Base() != simd.AVX512 {
		n /= 2
	}
	if 2*w.hidden*min(w.batch, w.step.Packs(w.hidden)) > n || w.steps < 4*n {
		return 1
	}
	for n*w.hidden < most && 2*n*enough <= w.steps {
		n *= 2
	}
	return n
}

// stripsOf returns the strips of w's loops, without their matrices.
func (w *scan) stripsOf() []strip {
	var all []strip
	for _, l := range w.loops() {
		reads, _ := l.Program().Vectors()
		for i, ref := range l.Vectors() {
			known := slices.ContainsFunc(all, func(s strip) bool { return s.first == ref })
			if l.at[i].moves == perStep && !known {
				all = append(all, strip{first: ref, vectors: 1, result: !slices.Contains(reads, ref)})
			}
		}
	}
	slices.SortFunc(all, func(a, b strip) int {
		return cmp.Or(cmp.Compare(a.first.Kind, b.first.Kind), cmp.Compare(a.first.Index, b.first.Index))
	})
	var joined []strip
	for _, s := range all {
		before := cell.Ref{Kind: s.first.Kind, Index: s.first.Index - 1}
		if n := len(joined) - 1; n >= 0 && fused.Apart(s.first.Kind) && joined[n].has(before) && joined[n].result == s.result {
			joined[n].vectors++
			joined[n].to += w.hidden
			continue
		}
		if n := len(joined) - 1; n >= 0 {
			s.from = joined[n].to
		}
		s.to = s.from + w.hidden
		joined = append(joined, s)
	}
	return joined
}

// has reports whether ref is a vector of s.
func (s *strip) has(ref cell.Ref) bool {
	return ref.Kind == s.first.Kind && ref.Index >= s.first.Index && ref.Index < s.first.Index+s.vectors
}

// columns returns the columns of all strips.
func (w *lanes) columns() int { return w.strips[len(w.strips)-1].to }

// repeats returns the floats of the vectors that all steps of all lanes share.
func (w *lanes) repeats() int {
	n := 0
	for _, l := range w.loops() {
		for i := range l.at {
			n += w.count * w.hidden * w.repeatedRows(&l.at[i])
		}
	}
	return n
}

// repeatedRows returns the rows of a vector that all steps share; 0: each step has its own.
func (w *lanes) repeatedRows(at *place) int {
	switch at.moves {
	case constant:
		return 1
	case perSequence:
		return w.batch
	}
	return 0
}

// run runs all steps of all channels, which a group of workers shares. The last of them runs the
// steps that are too few to divide.
func (w *lanes) run(c piece, group []scratch, part int) {
	if part < len(group)-1 && w.steps < w.count*len(group) { // nothing divides
		return
	}
	own := &group[part].scan
	for k, initial := range w.initial {
		c.copy(w.state(own.start, k), initial)
	}
	done := w.divided(c, group, part)
	if part < len(group)-1 {
		return
	}
	w.scan.run(own, c, &w.step, own.start, nil, done, w.steps)
	for k, final := range w.final {
		c.copy(final, w.state(own.start, k))
	}
}

// divided runs the steps as far as they divide evenly among the lanes of all workers, and returns
// their number. It leaves the state after them in own.start.
func (w *lanes) divided(c piece, group []scratch, part int) (done int) {
	own := &group[part].scan
	w.repeatShared(own)
	for block := 0; ; block++ {
		stretch := min(w.longest, (w.steps-done)/(w.count*len(group)))
		if stretch == 0 {
			return done
		}
		from := done + part*w.count*stretch
		w.transpose(own, from, stretch, false)
		states := own.lanes.states
		for i := range states.add[:len(w.carried)*w.batch*w.hidden*w.count] {
			states.factor[i], states.add[i] = 1, 0
		}
		w.advance(own, &w.compose, states, stretch)
		start := own.start
		if len(group) > 1 {
			w.reduce(own, &own.chunk[block%2])
			w.program.device.pool.meet(w.meetings[0], part, len(group))
			w.startStates(c, block, group, part)
			start = own.held
		}
		w.spread(own, start)
		w.advance(own, &w.step, states, stretch)
		w.transpose(own, from, stretch, true)
		done += len(group) * w.count * stretch
	}
}

// lane returns the lane of the i-th stretch. Lanes are in the order of memory.
func (w *lanes) lane(i int) int {
	if w.backward {
		return w.count - 1 - i
	}
	return i
}

// reduce composes the lanes.
func (w *lanes) reduce(own *scanScratch, sum *summary) {
	n := w.count
	for i := range len(w.carried) * w.batch * w.hidden {
		factor, add := own.lanes.states.factor[i*n:][:n], own.lanes.states.add[i*n:][:n]
		f, a := float32(1), float32(0)
		for k := range n {
			l := w.lane(k)
			f, a = f*factor[l], a*factor[l]+add[l]
		}
		sum.factor[i], sum.add[i] = f, a
	}
}

// spread replaces what the lanes add by the states before them. It leaves the state after them in
// start.
func (w *lanes) spread(own *scanScratch, start []float32) {
	n := w.count
	for i := range len(w.carried) * w.batch * w.hidden {
		factor, add := own.lanes.states.factor[i*n:][:n], own.lanes.states.add[i*n:][:n]
		h := start[i]
		for k := range n {
			l := w.lane(k)
			h, add[l] = h*factor[l]+add[l], h
		}
		start[i] = h
	}
}

// repeatShared repeats for each lane what all steps share.
func (w *lanes) repeatShared(own *scanScratch) {
	to := own.lanes.repeated
	for _, l := range w.loops() {
		for i := range l.at {
			at := &l.at[i]
			for row := range w.repeatedRows(at) {
				for _, x := range at.row(row)[:w.hidden] {
					for k := range w.count {
						to[k] = x
					}
					to = to[w.count:]
				}
			}
		}
	}
}

// advance runs a loop over the steps of all lanes.
func (w *lanes) advance(own *scanScratch, l *loop, states summary, steps int) {
	n := w.count * w.hidden
	repeated := own.lanes.repeated
	if l == &w.step {
		for i := range w.compose.at {
			repeated = repeated[w.repeatedRows(&w.compose.at[i])*n:]
		}
	}
	first, sign := 0, 1
	if w.backward {
		first, sign = (steps-1)*w.batch, -1
	}
	v := own.vectors[:len(l.at)]
	for i, ref := range l.Vectors() {
		at := &l.at[i]
		switch at.moves {
		case held:
			v[i] = fused.Vector{Data: states.add, From: at.state * w.batch * n, Row: n, Step: n * (1 - w.batch)}
		case factor:
			v[i] = fused.Vector{Data: states.factor, From: at.state * w.batch * n, Row: n, Step: n * (1 - w.batch)}
		case constant:
			v[i] = fused.Vector{Data: repeated}
			repeated = repeated[n:]
		case perSequence:
			v[i] = fused.Vector{Data: repeated, Row: n, Step: n * (1 - w.batch)}
			repeated = repeated[w.batch*n:]
		default:
			s := &w.strips[slices.IndexFunc(w.strips, func(s strip) bool { return s.has(ref) })]
			row := s.vectors * n
			v[i] = fused.Vector{Data: own.lanes.columns[w.count*s.from*w.batch*steps:], From: first*row + (ref.Index-s.first.Index)*n, Row: row, Step: row * (1 - w.batch + sign*w.batch)}
		}
	}
	l.Run(v, own.addresses, n, w.batch, steps, false)
}

// transpose moves the strips of the lanes' steps between their matrices and own memory: inputs from
// matrices, or results to them.
func (w *lanes) transpose(own *scanScratch, from, steps int, results bool) {
	if w.backward {
		from = w.steps - from - w.count*steps
	}
	move := w.program.device.kernels.Transpose
	for i := range w.strips {
		s := &w.strips[i]
		if s.result != results {
			continue
		}
		rows, cols := steps*w.batch, s.to-s.from
		apart := rows * s.stride // from lane to lane
		memory, columns := s.data[from*w.batch*s.stride:], own.lanes.columns[w.count*s.from*rows:]
		if s.stride == cols {
			rows, cols = 1, rows*cols
		}
		for row := range rows {
			m, c := memory[row*s.stride:], columns[row*cols*w.count:]
			if results {
				move(m, c, apart, w.count, w.count, cols)
			} else {
				move(c, m, w.count, apart, cols, w.count)
			}
		}
	}
}
