package cpu

import (
	"slices"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A place says where a loop's vector lies in memory.
type place struct {
	matrix
	moves    movement
	state    int  // index in scan.carried, if it is held
	result   bool // it is a result, which may bypass the caches
	cut      bool // it reads as 0 when a sequence begins anew
	adjacent int  // vectors from this one on that the loop reads side by side
}

// A movement says how a vector advances from row to row.
type movement int

const (
	perStep     movement = iota // a row for each step of each sequence
	perSequence                 // a row for each sequence
	constant                    // one row
	held                        // a row for each sequence in the worker's own memory
	factor                      // the same, in a summary's factor
)

// scanOf returns the scan of op, without memory, or nil if op is no scan.
func (pl *planner) scanOf(op schedule.Op, k knob.Params) *scan {
	var w *scan
	var keep schedule.View
	switch op := op.(type) {
	case schedule.Scan:
		w = pl.newScan(&op.Sequence, op.Serial, pass(op.Train), fused.Compose)
		keep = op.Keep
	case schedule.ScanBackward:
		w = pl.newScan(&op.Sequence, op.Serial, fused.Backward, fused.ComposeBackward)
		w.backward, keep = true, op.Keep
	default:
		return nil
	}
	for _, l := range w.loops() {
		for _, ref := range l.Vectors() {
			moves := w.movement(ref)
			l.at = append(l.at, place{moves: moves, state: slices.Index(w.carried, ref.Index), cut: isCut(ref, moves)})
		}
	}
	if keep.Empty() && !w.serial {
		w.lanes = w.lanesOf(pl.kernels.Level(), k)
	}
	w.settle(pl.workers, pl.paying(cost(op), pl.workers), k)
	return w
}

func (pl *planner) newScan(s *schedule.Sequence, serial bool, step, compose fused.Pass) *scan {
	level := pl.kernels.Level()
	w := &scan{step: loop{Loop: fused.NewLoop(level, s.Cell, step)}, serial: serial, steps: s.Steps, batch: s.Batch(), hidden: s.Hidden()}
	if serial {
		w.carried = s.Cell.Serial.Carried
		return w
	}
	w.compose, w.carried = loop{Loop: fused.NewLoop(level, s.Cell, compose)}, s.Cell.Recurrence.Carried
	return w
}

// loops are the loops of w. A serial scan never composes.
func (w *scan) loops() []*loop {
	if w.serial {
		return []*loop{&w.step}
	}
	return []*loop{&w.compose, &w.step}
}

// movement returns the movement of a vector. Carried states are in the worker's own memory.
func (w *scan) movement(ref cell.Ref) movement {
	before := cell.Prev
	if w.backward {
		before = cell.DNext
	}
	switch {
	case ref.Kind == cell.Factor:
		return factor
	case ref.Kind == before && slices.Contains(w.carried, ref.Index):
		return held
	case ref.Kind == cell.DNext || ref.Kind == cell.DPeep:
		return perSequence
	case ref.Kind.Broadcast():
		return constant
	}
	return perStep
}

func (p *binder) scan(op *schedule.Scan) work {
	w := p.device.scanOf(*op, p.knobs)
	p.keep(w, &op.Sequence)
	p.place(w, func(ref cell.Ref) matrix {
		switch ref.Kind {
		case cell.X:
			return p.column(op.X, ref.Index, op.Hidden())
		case cell.R:
			return p.column(op.R, ref.Index, op.Hidden())
		case cell.BX:
			return p.column(op.BX, ref.Index, op.Hidden())
		case cell.BR:
			return p.column(op.BR, ref.Index, op.Hidden())
		case cell.Peep:
			return p.column(op.Peep, ref.Index, op.Hidden())
		}
		return p.stepped(&op.Sequence, ref)
	})
	for _, s := range w.carried {
		w.initial = append(w.initial, p.matrix(op.Before(0)[s]))
	}
	return w
}

func (p *binder) scanBackward(op *schedule.ScanBackward) work {
	w := p.device.scanOf(*op, p.knobs)
	p.keep(w, &op.Sequence)
	p.place(w, func(ref cell.Ref) matrix {
		switch ref.Kind {
		case cell.DOut:
			return p.matrix(op.DOut)
		case cell.DX:
			return p.column(op.DX, ref.Index, op.Hidden())
		case cell.Peep:
			return p.column(op.Peep, ref.Index, op.Hidden())
		case cell.DR:
			return p.column(op.DR, ref.Index, op.Hidden())
		case cell.DNext:
			return p.matrix(op.Carry[ref.Index])
		case cell.DPeep:
			return p.column(op.DPeep, ref.Index, op.Hidden())
		}
		return p.stepped(&op.Sequence, ref)
	})
	for _, s := range w.carried {
		w.initial = append(w.initial, p.matrix(op.Carry[s]))
	}
	w.final = w.initial
	return w
}

// keep binds the column of resets, if there is one.
func (p *binder) keep(w *scan, s *schedule.Sequence) {
	if w.keep = p.matrix(s.Keep); !s.Keep.Empty() {
		w.zero = make([]float32, s.Hidden())
	}
}

// place binds w's vectors, except those in the worker's own memory.
func (p *binder) place(w *scan, find func(cell.Ref) matrix) {
	w.program, w.packed = p.program, w.step.Packs(w.hidden) > 1
	parts := min(p.here.members, w.most)
	if cut := parts / groups(parts, w.cut); cut > 1 {
		w.meetings = make([]*barrier, parts)
		for first := 0; first < parts; first += cut {
			w.meetings[first] = p.barrier(p.here.first+first, cut)
		}
	}
	if w.lanes != nil {
		for i := range w.lanes.strips {
			s := &w.lanes.strips[i]
			s.matrix = find(s.first)
		}
	}
	for _, l := range w.loops() {
		for i, ref := range l.Vectors() {
			if at := &l.at[i]; at.moves != factor && at.moves != held {
				at.matrix, at.result, at.adjacent = find(ref), fused.Bypasses(ref.Kind), l.SideBySide(ref)
				w.packed = w.packed && (fused.Apart(ref.Kind) || at.moves == constant || at.stride == w.hidden)
			}
		}
	}
}

// column returns the columns of v from its i-th vector of hidden units on.
func (p *binder) column(v schedule.View, i, hidden int) matrix {
	return p.matrix(v.Columns(i*hidden, v.Cols-i*hidden))
}

// stepped returns the matrix of a state or a saved vector of all steps.
func (p *binder) stepped(s *schedule.Sequence, ref cell.Ref) matrix {
	rows := s.Steps * s.Batch()
	switch ref.Kind {
	case cell.Saved:
		return p.column(s.Saved, ref.Index, s.Hidden())
	case cell.Prev:
		return p.matrix(s.State[ref.Index].Band(0, rows))
	}
	return p.matrix(s.State[ref.Index].Band(s.Batch(), rows))
}

// settle chooses how many workers take part in w and how they share it. paying is the number for
// which it pays.
func (w *scan) settle(all, paying int, k knob.Params) {
	w.stream = w.stepBytes(&w.step)*w.steps > max(cpuid.CPU.Cache.L3, leastL3)
	cut := min(k["scansplit"], all)
	if w.serial {
		cut = 1
	}
	if w.most = min(k["scanworkers"], all); w.most == 0 {
		if w.most = paying; w.stream && !activates(w.step.Program()) {
			w.most = (all + 1) / 2
		}
		if cut > 0 && w.most%cut > 0 {
			w.most = max(w.most, cut) / cut * cut
		}
	}
	w.split(min(cut, w.most), k["scanchunk"], w.most)
}

// activates reports whether p computes functions, so that memory is not its only limit.
func activates(p cell.Program) bool {
	return slices.ContainsFunc(p, func(in cell.Instr) bool { return fused.Function(in.Op) })
}

// stepBytes returns the bytes that l reads and writes per step.
func (w *scan) stepBytes(l *loop) int {
	n := 0
	for _, at := range l.at {
		if at.moves == perStep {
			n += 4 * w.batch * w.hidden
		}
	}
	return n
}

// split chooses how workers share the work. If cut is 0, it becomes the least number of parts of
// time with which all workers are about equally busy; 1 splits channels only. If chunk is 0, a
// chunk's data fill half of L2.
func (w *scan) split(cut, chunk, workers int) {
	if w.cut = cut; cut == 0 {
		channels := w.batch * w.hidden
		for w.cut = 1; w.cut < workers; w.cut++ {
			n := groups(workers, w.cut)
			c := min(largest(w.batch, 1, n)*w.hidden, largest(w.hidden, line, n)*w.batch)
			if 4*c*n <= 5*channels {
				break
			}
		}
	}
	if w.lanes != nil && cut == 0 {
		w.cut = workers
	}
	if w.chunk = chunk; chunk == 0 {
		perWorker := w.stepBytes(&w.compose) / groups(workers, w.cut)
		w.chunk = max(1, gemm.DetectL2()/2/max(1, perWorker))
	}
}
