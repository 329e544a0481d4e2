package cpu

import (
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A persistent operation runs a layer over all steps. Each worker of a team has a band of the
// units, the same in every gate. Their weights and states stay in its own cache from step to step.
// Workers meet once a step and exchange the state, which the next product reads whole (Diamos et
// al. 2016, section 3).
type persistent struct {
	band
	through    track             // the state before each step, which the products multiply
	weights    [][]float32       // per recurrent gate, packed
	recurrence *fused.Recurrence // runs all steps of one sequence in one call; nil: not available
	done       []*counter        // with a recurrence: per worker, its progress
	input      *input            // the input product, if steps compute it; nil: it was computed before
}

// A persistentBackward is the gradient of a persistent operation. At each step a worker runs the
// cells of its band. After a meeting it computes its band's columns of the product with the
// gradients of all gates.
type persistentBackward struct {
	band
	gradient track // of the recurrent products
	weights  []float32
	depth    int    // rows of the weights
	carry    matrix // gradient of the state that the products multiply
	add      bool   // add to carry, which the cells have written
}

// A band runs a cell's program over some of the units, step by step.
type band struct {
	program              *program
	kernel               *fused.Kernel
	vectors              []track // in the kernel's order
	steps, batch, hidden int
	most                 int        // workers of a group that take part, at most
	meetings             []*barrier // one per group
	size                 int        // workers of a group
	ownSequences         bool       // each worker runs all units of its own sequences
	kept                 kept       // rows are steps × sequences
}

// A track is a vector of units for each step and sequence.
type track struct {
	data      []float32
	step, row int // strides in floats: from step to step and from sequence to sequence
	product   int // number of the worker's own product that it is, from 1; 0: it is in data
}

func (t *track) at(step, row int) []float32 { return t.data[step*t.step+row*t.row:] }

// track returns the track of a view that moves from step to step.
func (p *binder) track(steps int, view func(step int) schedule.View) track {
	v := view(0)
	at := func(v schedule.View) int { return v.Row*v.M.Cols + v.Col }
	t := track{data: p.memory[v.M.ID][at(v):], row: v.M.Cols}
	if v.Rows == 1 { // one sequence, or one row for all
		t.row = 0
	}
	if steps > 1 {
		t.step = at(view(1)) - at(v)
	}
	return t
}

// band returns the band of op, a persistent operation over s or its gradient.
func (p *binder) band(op schedule.Op, pass fused.Pass, s *schedule.Sequence, at func(step int) stepCell) band {
	groups := groupsOf(&p.device.planner, op, p.format, p.knobs, p.here.members)
	size := p.here.members / groups
	b := band{
		program: p.program, kernel: fused.New(p.device.kernels.Level(), s.Cell, pass), steps: s.Steps, batch: s.Batch(), hidden: s.Hidden(),
		most: p.device.most(op, p.format, p.knobs, size, false), size: size, ownSequences: p.device.ownSequences(op, p.format, p.knobs),
	}
	for g := range groups {
		b.meetings = append(b.meetings, p.barrier(p.here.first+g*size, size))
	}
	for _, r := range b.kernel.Vectors() {
		if r.Kind == cell.R {
			b.vectors = append(b.vectors, track{product: r.Index + 1})
			continue
		}
		b.vectors = append(b.vectors, p.track(s.Steps, func(step int) schedule.View { return at(step).Vector(r) }))
	}
	b.kept = p.kept(op, b.kernel.Vectors(), at(0).KeepOf, s.Hidden())
	return b
}

func (p *binder) persistent(op schedule.Persistent) work {
	through, pass := op.Cell.Through, pass(op.Train)
	w := &persistent{
		band:    p.band(op, pass, &op.Sequence, func(step int) stepCell { return op.Step(step, schedule.View{}) }),
		through: p.track(op.Steps, func(step int) schedule.View { return op.Before(step)[through] }),
	}
	for _, r := range op.R {
		w.weights = append(w.weights, p.memory[r.M.ID])
	}
	if (w.ownSequences || w.batch == 1) && p.format == simd.F32 {
		w.recurrence = fused.NewRecurrence(p.device.kernels.Level(), op.Cell, pass, op.Hidden())
		for range p.device.workers {
			w.done = append(w.done, p.counter())
		}
		w.most = p.device.most(op, p.format, p.knobs, p.here.members, inBands(w.recurrence))
	}
	return w
}

func (p *binder) persistentBackward(op schedule.PersistentBackward) work {
	through := op.Cell.Through
	return &persistentBackward{
		band:     p.band(op, fused.Backward, &op.Sequence, func(step int) stepCell { return op.StepBack(step) }),
		gradient: p.track(op.Steps, op.Recurrent),
		weights:  p.memory[op.R.M.ID],
		depth:    op.R.Rows,
		carry:    p.matrix(op.Carry[through]),
		add:      op.Cell.DirectPrev(through),
	}
}

// own returns units from … to-1 of the worker's band, and the number of workers that have a band.
func (b *band) own(part, parts int) (from, to, bands int) {
	bands = min(parts, (b.hidden+line-1)/line)
	if b.most > 0 {
		bands = min(bands, b.most)
	}
	if part < bands {
		from, to = span(b.hidden, line, part, bands)
	}
	return from, to, bands
}

// rows returns the sequences of a worker that runs all their units.
func (b *band) rows(part, parts int) fused.Span {
	from, to := span(b.batch, 1, part, parts)
	return fused.Span{From: from, N: to - from}
}

// meet waits for the workers of the group's other bands.
func (b *band) meet(g group, bands int) {
	if bands > 1 {
		b.program.device.pool.meet(b.meetings[g.of], g.place, bands)
	}
}

// cells runs units from … to-1 of some sequences at a step. products holds the recurrent products
// of these units, gate by gate for each sequence.
func (b *band) cells(step int, rows fused.Span, from, to int, products []float32, gates int, s *scratch) {
	n, atOnce := to-from, rows.N
	if b.kept.some() { // each sequence may read other vectors
		atOnce = 1
	}
	v := s.tracks[:len(b.vectors)]
	for row := 0; row < rows.N; row += atOnce {
		for i := range b.vectors {
			if t := &b.vectors[i]; t.product > 0 {
				v[i] = fused.Vector{Data: products, From: (row*gates + t.product - 1) * n, Row: gates * n}
			} else {
				v[i] = fused.Vector{Data: t.data, From: step*t.step + (rows.From+row)*t.row + from, Row: t.row}
			}
		}
		b.kept.zeroes(v, step*b.batch+rows.From+row)
		b.kernel.Run(v, s.addresses, n, atOnce)
	}
}

// bandProduct returns a step's product for some of the units, without memory.
func bandProduct(batch, units, depth int, f simd.Format) gemm.Product {
	return gemm.Product{M: batch, N: units, K: depth, Packed: []float32{}, Format: f}
}

func (w *persistent) share(part, parts int, s *scratch) {
	if w.ownSequences {
		rows := w.rows(part, parts)
		if !w.oneByOne(rows.N) {
			w.run(rows, 0, w.hidden, group{size: 1}, 1, s)
			return
		}
		for i := range rows.N {
			w.sequence(part, rows.From+i, ownUnits{0, w.hidden, 1}, s)
		}
		return
	}
	g := w.group(part, parts)
	from, to, bands := w.own(g.place, g.size)
	if w.input != nil {
		w.input.start(part, parts, w.program.device.pool, w.meetings[0], s)
	}
	if from == to {
		for w.input != nil && w.input.computeBlock(w.program.device.pool, s) {
		}
		return
	}
	switch {
	case !w.inOneCall(bands):
		w.run(w.rowsOf(g, parts), from, to, g, bands, s)
	case w.kept.some():
		w.sequence(part, 0, ownUnits{from, to, bands}, s)
	default:
		w.call(part, ownUnits{from, to, bands}, s)
	}
}

// run runs all steps of units from … to-1 of some sequences. All workers of a group that have a
// band run it at the same time.
func (w *persistent) run(rows fused.Span, from, to int, of group, bands int, s *scratch) {
	n, gates := to-from, len(w.weights)
	g := bandProduct(rows.N, n, w.hidden, w.program.format)
	g.A.Stride, g.LdC = w.through.row, gates*n
	parts := w.parts(gates, n, w.hidden, rows.N)
	for step := range w.steps {
		if step > 0 {
			w.meet(of, bands)
		}
		g.A.Data, g.Again = w.through.at(step, rows.From), false
		for k := range gates * parts {
			i := inTurn(k, gates*parts, step)
			at, end := span(n, line, i%parts, parts)
			g.N, g.Packed, g.C = end-at, gemm.Columns(w.weights[i/parts], g.Format, w.hidden, from+at), s.products[i/parts*n+at:]
			w.program.device.gemm.Run(&g, 0, 1, s.gemm)
			g.Again = true
		}
		w.cells(step, rows, from, to, s.products, gates, s)
	}
}

// parts returns into how many parts of columns a step cuts each of so many weight matrices. The
// next step reads the parts in reverse order, so that those read last are still in the worker's own
// cache. It pays if that cache does not hold all weights, and if reading them takes longer than
// multiplying: with few sequences. Weights of 16 bits, which are widened on the way, were up to 4 %
// slower.
func (b *band) parts(matrices, units, depth, rows int) int {
	const few, shares = 6, 4
	own, bytes := gemm.CacheOf(b.program.device.gemm), 4*units*depth
	if b.program.format != simd.F32 || rows > few || matrices*bytes <= own {
		return 1
	}
	return min(ceil(shares*bytes, own), ceil(units, 4*line))
}

// inTurn returns i, or n-1-i in every other step.
func inTurn(i, n, step int) int {
	if step%2 > 0 {
		return n - 1 - i
	}
	return i
}

// ownUnits are those of a band, one of so many.
type ownUnits struct{ from, to, bands int }

// start sets up a call for a band of one sequence, of so many steps from step on, and waits until
// all bands have done so.
func (w *persistent) start(part, row, step, steps int, own ownUnits, s *scratch) {
	v, n := s.tracks[:len(w.vectors)], own.to-own.from
	for i := range w.vectors {
		v[i] = w.vectors[i].of(step, row, own.from)
	}
	p := fused.Products{State: w.through.of(step, row, 0), Depth: w.hidden, Weights: s.weights[:0]}
	for _, weights := range w.weights {
		p.Weights = append(p.Weights, gemm.Columns(weights, w.program.format, w.hidden, own.from))
	}
	pairs := w.pairs(n) && (w.batch == 1 || w.near(n) || len(w.weights) > 1)
	b := fused.Band{Span: fused.Span{From: own.from, N: n}, Others: s.others[:0], Done: &w.done[part].Uint64, Pairs: pairs}
	for other := range own.bands {
		if other != part && own.bands > 1 {
			from, to := span(w.hidden, line, other, own.bands)
			b.Others = append(b.Others, fused.Span{From: from, N: to - from})
		}
	}
	w.recurrence.Start(s.steps, v, &p, &b, steps)
	if own.bands > 1 {
		w.awaitBands(own.bands, s.steps)
	}
}

// call runs all steps of a band of one sequence in one call, or in one per block of the input
// product. More calls are needed if another band's worker loses its processor.
func (w *persistent) call(part int, own ownUnits, s *scratch) {
	from, to, bands := own.from, own.to, own.bands
	w.start(part, 0, 0, w.steps, own, s)
	if w.input == nil {
		w.finish(bands, s.steps)
		return
	}
	for block, at, end := 0, 0, w.input.first.M; at < w.steps; block++ {
		rows := min(w.input.block, w.steps-end)
		var tiles []fused.Tile
		if w.input.helped {
			w.input.await(block, w.program.device.pool, s)
		} else {
			tiles = w.input.tiles(s.tiles[:0], w.program.device.kernels, s.inputs, end, rows, from, to, w.hidden)
		}
		w.recurrence.Form(s.steps, end-at, tiles, w.input.K, w.input.out.step)
		w.finish(bands, s.steps)
		at, end = end, end+rows
	}
}

// sequence runs all steps of a band of one sequence in one call. If the sequence begins anew at some
// steps, each of these steps runs by itself, without products, and ends a call. All bands do the
// same.
func (w *persistent) sequence(part, row int, own ownUnits, s *scratch) {
	for at := 0; at < w.steps; {
		if w.kept.isReset(at*w.batch + row) {
			w.cells(at, fused.Span{From: row, N: 1}, own.from, own.to, s.products, len(w.weights), s)
			at++
			continue
		}
		end := at + 1
		for end < w.steps && !w.kept.isReset(end*w.batch+row) {
			end++
		}
		w.start(part, row, at, end-at, own, s)
		w.finish(own.bands, s.steps)
		at = end
	}
}

// finish runs the steps of the current call, resuming it if it stops early.
func (w *persistent) finish(bands int, s *fused.Steps) {
	for !w.recurrence.Run(s) {
		w.awaitBands(bands, s)
		w.recurrence.Resume(s)
	}
}

// awaitBands waits until all bands have started, or have reached the step of this one.
func (w *persistent) awaitBands(bands int, s *fused.Steps) {
	for other := range bands {
		w.program.device.pool.await(w.done[other], uint64(s.Turn))
	}
}

// largest returns the units of the largest of so many bands.
func (b *band) largest(bands int) int {
	strips := (b.hidden + line - 1) / line
	return min(b.hidden, (strips+bands-1)/bands*line)
}

// of returns the vector of one sequence from a step and a unit on.
func (t *track) of(step, row, unit int) fused.Vector {
	if t.product > 0 { // it has no memory
		return fused.Vector{}
	}
	return fused.Vector{Data: t.data[step*t.step+row*t.row:], From: unit, Step: t.step}
}

func (w *persistentBackward) share(part, parts int, s *scratch) {
	of := w.group(part, parts)
	rows := w.rowsOf(of, parts)
	from, to, bands := w.own(of.place, of.size)
	if w.ownSequences {
		rows, from, to, bands = w.rows(part, parts), 0, w.hidden, 1
	}
	if from == to || rows.N == 0 {
		return
	}
	n := to - from
	g := bandProduct(rows.N, n, w.depth, w.program.format)
	g.A.Stride, g.LdC, g.Accumulate = w.gradient.row, w.carry.stride, w.add
	pieces := w.parts(1, n, w.depth, rows.N)
	for step := w.steps - 1; step >= 0; step-- {
		w.cells(step, rows, from, to, nil, 0, s)
		w.meet(of, bands)
		g.A.Data, g.Again = w.gradient.at(step, rows.From), false
		for k := range pieces {
			at, end := span(n, line, inTurn(k, pieces, step), pieces)
			g.N, g.Packed, g.C = end-at, gemm.Columns(w.weights, g.Format, w.depth, from+at), w.carry.data[rows.From*w.carry.stride+from+at:]
			w.program.device.gemm.Run(&g, 0, 1, s.gemm)
			g.Again = true
		}
	}
}
