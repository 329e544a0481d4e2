package cpu

import (
	"slices"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// recurrent returns op as bind would make it for so many workers, without memory.
func (p *forecast) recurrent(op schedule.Persistent, members int) *persistent {
	recurrence := p.recurrence(op.Sequence, op, pass(op.Train))
	size := members / groupsOf(p.planner, op, p.format, p.knobs, members)
	return &persistent{
		band: band{
			program: &program{device: &Device{planner: *p.planner}, format: p.format}, steps: op.Steps, batch: op.Batch(), hidden: op.Hidden(),
			most: p.most(op, p.format, p.knobs, size, inBands(recurrence)), size: size, ownSequences: p.ownSequences(op, p.format, p.knobs),
		},
		weights: make([][]float32, len(op.R)), recurrence: recurrence,
	}
}

// recurrence returns the kernel that runs all steps of a sequence in one call, or nil.
func (p *forecast) recurrence(s schedule.Sequence, op schedule.Op, pass fused.Pass) *fused.Recurrence {
	if p.format != simd.F32 || s.Batch() > 1 && !p.ownSequences(op, p.format, p.knobs) {
		return nil
	}
	return fused.NewRecurrence(p.kernels.Level(), s.Cell, pass, s.Hidden())
}

// programOf returns a cell's forward program, for training or inference.
func programOf(c *cell.Cell, train bool) cell.Program {
	if train {
		return c.Forward
	}
	return c.Inference
}

// persistent predicts a Persistent on so many workers.
func (p *forecast) persistent(op schedule.Persistent, parts int) float64 {
	return p.steps(p.recurrent(op, parts), programOf(op.Cell, op.Train), parts)
}

// steps predicts all steps of w.
func (p *forecast) steps(w *persistent, prog cell.Program, parts int) float64 {
	steps := float64(w.steps)
	all := p.vectorBytes(prog, w.steps, w.batch, w.hidden, parts)
	if w.ownSequences {
		rows := ceil(w.batch, parts)
		if w.oneByOne(rows) {
			calls := float64(rows) * (p.sequence + steps*p.stepInCall(w, prog, w.hidden))
			if p.level(all) > 1 { // no prefetcher follows a sequence's steps, which lie rows apart
				calls += p.moveOf(all, all)
			}
			return calls
		}
		return steps * (p.bandProducts(len(w.weights), rows, w.hidden, w.hidden) + p.rows(prog, rows, w.hidden, all))
	}
	size := min(w.size, parts)
	_, _, bands := w.own(0, size)
	units := w.largest(bands)
	if w.inOneCall(bands) {
		return p.sequence + steps*(p.stepInCall(w, prog, units)+p.meetingTime(bands))
	}
	rows := ceil(w.batch, parts/size)
	return steps * (p.bandProducts(len(w.weights), rows, units, w.hidden) + p.rows(prog, rows, units, all) + p.meetingTime(bands))
}

// vectorBytes returns the bytes of a worker's part of the vectors of all steps.
func (p *forecast) vectorBytes(prog cell.Program, steps, batch, units, parts int) int64 {
	return 4 * int64(perStepVectors(prog)) * int64(steps) * int64(ceil(batch*units, parts))
}

// bandProducts predicts a step's products of a band with count weight matrices. The weights stay in
// the nearest memory that holds them all.
func (p *forecast) bandProducts(count, batch, units, depth int) float64 {
	elements := int64(count) * int64(depth) * int64(ceil(units, line)*line)
	return float64(count) * p.weighted(batch, units, depth, p.format, p.level(elements*bytesOf(p.format)), 0)
}

// stepInCall predicts a step of so many units of one sequence, if one call runs all steps.
func (p *forecast) stepInCall(w *persistent, prog cell.Program, units int) float64 {
	lanes := line
	if p.kernels.Level() == simd.AVX2 {
		lanes /= 2
	}
	lines := float64(ceil(units, lanes)*lanes) / line
	weights := int64(4 * len(w.weights) * w.hidden * ceil(units, line) * line)
	each := p.nearLine
	switch level := p.level(weights); {
	case level > 1:
		each = max(p.farLine, 4*line/p.read[level])
	case level == 1:
		each = p.farLine
	}
	step := p.step
	if slices.ContainsFunc([]cell.Instr(prog), func(in cell.Instr) bool { return function(in.Op) }) {
		step += p.latency
	}
	return step + lines*float64(len(w.weights)*w.hidden)*each + (1+p.beside*max(0, lines-1))*p.instructions(prog)
}

// meetingTime predicts a meeting of so many workers. It was measured with two; see moves.
func (p *forecast) meetingTime(workers int) float64 { return p.meeting * p.times(workers) }

// formed predicts a persistent operation that computes its input product in blocks. ok is false if
// it does not.
func (p *forecast) formed(g schedule.Gemm, op schedule.Persistent, block, members, pieces int) (sec float64, ok bool) {
	w, parts := p.recurrent(op, members), 1
	if pieces > 0 {
		parts = members
	}
	if w.recurrence == nil {
		return 0, false
	}
	bands, helped, ok := w.forms(p.knobs, members, parts)
	if !ok {
		return 0, false
	}
	m, n, k := g.Sizes()
	first := min(m, firstBlock(m, block))
	ahead := p.weighted(first, largest(n, line, members), k, p.format, 1, 0)
	rest := p.weighted(m-first, n, k, p.format, 1, 0)
	if helped {
		w.most = bands
		return p.handover + ahead + max(p.steps(w, programOf(op.Cell, op.Train), members), rest/float64(members-bands)), true
	}
	return p.handover + ahead + p.steps(w, programOf(op.Cell, op.Train), parts) + p.forming*rest/float64(bands), true
}

// persistentBackward predicts a PersistentBackward on so many workers.
func (p *forecast) persistentBackward(op schedule.PersistentBackward, parts int) float64 {
	groups := groupsOf(p.planner, op, p.format, p.knobs, parts)
	b := band{hidden: op.Hidden(), most: p.most(op, p.format, p.knobs, parts/groups, false)}
	rows, units, bands := op.Batch(), op.Hidden(), 1
	if p.ownSequences(op, p.format, p.knobs) {
		rows = ceil(rows, parts)
	} else {
		_, _, bands = b.own(0, parts/groups)
		rows, units = ceil(rows, groups), b.largest(bands)
	}
	all := p.vectorBytes(op.Cell.Backward, op.Steps, op.Batch(), op.Hidden(), parts)
	return float64(op.Steps) * (p.bandProducts(1, rows, units, op.R.Rows) + p.rows(op.Cell.Backward, rows, units, all) + p.meetingTime(bands))
}
