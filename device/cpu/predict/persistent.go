package predict

import (
	"slices"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// persistent predicts a Persistent on so many workers.
func (p *forecast) persistent(op schedule.Persistent, b Band, parts int) float64 {
	prog := op.Cell.Inference
	if op.Train {
		prog = op.Cell.Forward
	}
	steps, count, hidden := float64(op.Steps), len(op.R), op.Hidden()
	all := p.vectorBytes(prog, op.Steps, op.Batch(), hidden, parts)
	if !b.InCalls {
		return steps * p.stepByProducts(prog, b, count, hidden, all)
	}
	calls := float64(b.Sequences) * (p.sequence + steps*(p.stepInCall(prog, count, hidden, b.Units)+p.meetingTime(b.Workers)))
	if op.Batch() > 1 && p.level(all) > 1 { // no prefetcher follows a sequence's steps, which lie rows apart
		calls += p.moveOf(all, all)
	}
	return calls
}

// persistentBackward predicts a PersistentBackward on so many workers.
func (p *forecast) persistentBackward(op schedule.PersistentBackward, b Band, parts int) float64 {
	prog := op.Cell.Backward
	return float64(op.Steps) * p.stepByProducts(prog, b, 1, op.R.Rows, p.vectorBytes(prog, op.Steps, op.Batch(), op.Hidden(), parts))
}

// formed predicts a persistent operation that computes its input product, g, in blocks.
func (p *forecast) formed(g schedule.Gemm, op schedule.Persistent, b Band, members int) float64 {
	m, n, k := g.Sizes()
	ahead := p.weighted(b.First, largest(n, line, members), k, p.Format, 1, 0)
	rest := p.weighted(m-b.First, n, k, p.Format, 1, 0)
	steps := p.persistent(op, b, members)
	if b.Helpers > 0 {
		return p.handover + ahead + max(steps, rest/float64(b.Helpers))
	}
	return p.handover + ahead + steps + p.forming*rest/float64(b.Workers)
}

// vectorBytes returns the bytes of a worker's part of the vectors of all steps.
func (p *forecast) vectorBytes(prog cell.Program, steps, batch, units, parts int) int64 {
	return 4 * int64(perStepVectors(prog)) * int64(steps) * int64(ceil(batch*units, parts))
}

// stepByProducts predicts a step as products by count weight matrices of so many rows, and then cells. all is
// the bytes of a worker's vectors of all steps.
func (p *forecast) stepByProducts(prog cell.Program, b Band, count, depth int, all int64) float64 {
	return p.bandProducts(count, b.Sequences, b.Units, depth) + p.rows(prog, b.Sequences, b.Units, all) + p.meetingTime(b.Workers)
}

// bandProducts predicts a step's products of a band with count weight matrices. The weights stay in
// the nearest memory that holds them all.
func (p *forecast) bandProducts(count, batch, units, depth int) float64 {
	elements := int64(count) * int64(depth) * int64(ceil(units, line)*line)
	return float64(count) * p.weighted(batch, units, depth, p.Format, p.level(elements*int64(p.Format.Bytes())), 0)
}

// stepInCall predicts a step of so many units of one sequence, with count weight matrices, if one
// call runs all steps.
func (p *forecast) stepInCall(prog cell.Program, count, hidden, units int) float64 {
	lanes := line
	if p.Engine.Kernels().Level() == simd.AVX2 {
		lanes /= 2
	}
	lines := float64(ceil(units, lanes)*lanes) / line
	weights := int64(4 * count * hidden * ceil(units, line) * line)
	each := p.nearLine
	switch level := p.level(weights); {
	case level > 1:
		each = max(p.farLine, 4*line/p.read[level])
	case level == 1:
		each = p.farLine
	}
	step := p.step
	if slices.ContainsFunc([]cell.Instr(prog), func(in cell.Instr) bool { return fused.Function(in.Op) }) {
		step += p.latency
	}
	return step + lines*float64(count*hidden)*each + (1+p.beside*max(0, lines-1))*p.instructions(prog)
}

// meetingTime predicts a meeting of so many workers. It was measured with two.
func (p *forecast) meetingTime(workers int) float64 { return p.meeting * p.Workers.Meeting(workers) }
