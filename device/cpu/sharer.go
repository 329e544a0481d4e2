package cpu

import (
	"rnnbench/device/cpu/predict"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// outline returns how the workers would run s, for the cost model.
func (pl *planner) outline(s *schedule.Schedule, f simd.Format, k knob.Params) predict.Program {
	teams := pl.teams(s, f, k)
	s = asRun(s, f, teams)
	by := sharer{pl, f, k}
	p := predict.Program{
		Schedule: s, Format: f, Engine: pl.gemm, Absorbed: map[int]bool{}, Pairs: pl.packPairs(s, teams == 1), Formed: map[int]predict.Band{}, Workers: by,
	}
	for _, m := range s.Matrices {
		p.Bytes += 4 * int64(pl.floats(m, f))
	}
	for t := range teams {
		p.Teams = append(p.Teams, pl.first(t+1, teams)-pl.first(t, teams))
	}
	for _, j := range sums(s) {
		p.Absorbed[j] = true
	}
	for i, block := range pl.inputs(s, f, k, teams == 1) {
		if band, ok := by.formed(s.Nodes[i+1].Op.(schedule.Persistent), block, p.Teams[s.Nodes[i].Stream%teams]); ok {
			p.Formed[i], p.Absorbed[i+1] = band, true
		}
	}
	return p
}

// A sharer says how workers would share operations, which need no memory for that.
type sharer struct {
	*planner
	format simd.Format
	knobs  knob.Params
}

// Takers implements predict.Workers.
func (by sharer) Takers(op schedule.Op, members int) int {
	pieces := by.share(op, by.format, by.knobs)
	if pieces == 0 || members < 2 {
		return 1
	}
	return by.takers(op, pieces, members)
}

// Meeting implements predict.Workers.
func (by sharer) Meeting(workers int) float64 { return by.times(workers) }

// Unsupported implements predict.Workers.
func (by sharer) Unsupported(op schedule.Op) error { return unsupported(op) }

// Band implements predict.Workers.
func (by sharer) Band(op schedule.Op, workers int) predict.Band {
	switch op := op.(type) {
	case schedule.Persistent:
		return by.persistent(op, workers).largestPart(workers)
	case schedule.PersistentBackward:
		size := workers / groupsOf(by.planner, op, by.format, by.knobs, workers)
		b := band{
			batch: op.Batch(), hidden: op.Hidden(), size: size,
			most: by.most(op, by.format, by.knobs, size, false), ownSequences: by.ownSequences(op, by.format, by.knobs),
		}
		return b.largestPart(workers)
	}
	return predict.Band{}
}

// largestPart returns the largest band of so many workers.
func (b *band) largestPart(workers int) predict.Band {
	if b.ownSequences {
		return predict.Band{Sequences: ceil(b.batch, workers), Units: b.hidden, Workers: 1}
	}
	size := min(b.size, workers)
	_, _, bands := b.own(0, size)
	return predict.Band{Sequences: ceil(b.batch, workers/size), Units: b.largest(bands), Workers: bands}
}

// persistent returns op as bind would make it for so many workers, without memory.
func (by sharer) persistent(op schedule.Persistent, workers int) *persistent {
	own := by.ownSequences(op, by.format, by.knobs)
	var recurrence *fused.Recurrence
	if by.format == simd.F32 && (own || op.Batch() == 1) {
		recurrence = fused.NewRecurrence(by.kernels.Level(), op.Cell, pass(op.Train), op.Hidden())
	}
	size := workers / groupsOf(by.planner, op, by.format, by.knobs, workers)
	return &persistent{
		band: band{
			program: &program{device: &Device{planner: *by.planner}, format: by.format}, steps: op.Steps, batch: op.Batch(), hidden: op.Hidden(),
			most: by.most(op, by.format, by.knobs, size, inBands(recurrence)), size: size, ownSequences: own,
		},
		weights: make([][]float32, len(op.R)), recurrence: recurrence,
	}
}

// largestPart returns the largest band of so many workers.
func (w *persistent) largestPart(workers int) predict.Band {
	b := w.band.largestPart(workers)
	if w.ownSequences {
		b.InCalls = w.oneByOne(b.Sequences)
	} else {
		b.InCalls = w.inOneCall(b.Workers)
	}
	return b
}

// formed returns the largest band of op, if it computes the product before it in blocks of so many
// steps.
func (by sharer) formed(op schedule.Persistent, block, members int) (predict.Band, bool) {
	w, parts := by.persistent(op, members), 1
	if by.share(op, by.format, by.knobs) > 0 {
		parts = members
	}
	bands, helped, ok := w.forms(by.knobs, members, parts)
	if !ok {
		return predict.Band{}, false
	}
	if helped {
		w.most, parts = bands, members
	}
	b := w.largestPart(parts)
	b.First, b.Helpers = min(op.Steps, firstBlock(op.Steps, block)), members-bands
	return b, true
}

// Scan implements predict.Workers.
func (by sharer) Scan(op schedule.Op, workers int) predict.Scan {
	w := by.scanOf(op, by.knobs)
	workers = min(workers, w.most)
	groups := groups(workers, w.cut)
	cut := workers / groups
	rows, units := largest(w.batch, 1, groups), w.hidden
	if rows*w.hidden > largest(w.hidden, line, groups)*w.batch {
		rows, units = w.batch, largest(w.hidden, line, groups)
	}
	s := predict.Scan{Units: units, Together: 1, Cut: cut, Step: w.step.perRow()}
	if rows > 1 && units == w.hidden {
		s.Together = min(rows, w.step.Packs(units)) // a vector has rows of one step
	}
	s.Rows = rows * ceil(w.steps, cut)
	if l := w.lanes; l != nil && groups == 1 {
		s.Compose, s.Meetings = w.compose.perRow(), ceil(w.steps, cut*l.count*l.longest)
		s.Transposed = s.Rows * l.columns()
		s.Rows, s.Units, s.Together = w.batch*ceil(w.steps, cut*l.count), w.hidden*l.count, 1
	} else if cut > 1 {
		s.Compose, s.Meetings = w.compose.perRow(), ceil(w.steps, cut*w.chunk)
	}
	return s
}

// perRow returns the program of l, for the cost model.
func (l *loop) perRow() predict.Loop {
	f := predict.Loop{Program: l.Program(), Interpreted: !l.Assembled()}
	for _, at := range l.at {
		if at.moves == perStep {
			f.Vectors++
		}
	}
	return f
}
