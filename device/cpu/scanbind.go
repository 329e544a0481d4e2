package cpu

import (
	"slices"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A place says where a loop's vector lies.
type place struct {
	matrix
	moves  movement
	state  int  // of what a worker holds: which of the carried states
	result bool // may bypass the caches
	beside int  // vectors from here on that the loop reads side by side
}

// A movement is how a vector goes on from row to row.
type movement int

const (
	perStep     movement = iota // a row for each step of each sequence
	perSequence                 // a row for each sequence
	constant                    // one row
	held                        // a row for each sequence in the worker's own memory
	factor                      // the same of a summary's factor
)

func (p *program) scan(op *schedule.Scan) work {
	rec := op.Cell.Recurrence
	step := rec.Inference
	if op.Train {
		step = rec.Forward
	}
	w := p.newScan(&op.Sequence, step, rec.Compose)
	p.place(w, op.Cell, cell.Prev, func(ref cell.Ref) place {
		switch ref.Kind {
		case cell.X:
			return place{matrix: p.column(op.X, ref.Index, op.Hidden())}
		case cell.R:
			return place{matrix: p.column(op.R, ref.Index, op.Hidden())}
		case cell.BX:
			return place{matrix: p.column(op.BX, ref.Index, op.Hidden()), moves: constant}
		case cell.BR:
			return place{matrix: p.column(op.BR, ref.Index, op.Hidden()), moves: constant}
		}
		return p.stepped(&op.Sequence, ref)
	})
	for _, s := range rec.Carried {
		w.initial = append(w.initial, p.matrix(op.Before(0)[s]))
	}
	return w
}

func (p *program) scanBackward(op *schedule.ScanBackward) work {
	rec := op.Cell.Recurrence
	w := p.newScan(&op.Sequence, rec.Backward, rec.ComposeBackward)
	w.backward = true
	p.place(w, op.Cell, cell.DNext, func(ref cell.Ref) place {
		switch ref.Kind {
		case cell.DOut:
			return place{matrix: p.matrix(op.DOut)}
		case cell.DX:
			return place{matrix: p.column(op.DX, ref.Index, op.Hidden())}
		case cell.DR:
			return place{matrix: p.column(op.DR, ref.Index, op.Hidden())}
		case cell.DNext:
			return place{matrix: p.matrix(op.Carry[ref.Index]), moves: perSequence}
		}
		return p.stepped(&op.Sequence, ref)
	})
	for _, s := range rec.Carried {
		w.initial = append(w.initial, p.matrix(op.Carry[s]))
	}
	w.final = w.initial
	return w
}

// column is the matrix of gate or saved vector i of v and of those beside it.
func (p *program) column(v schedule.View, i, hidden int) matrix {
	return p.matrix(v.Columns(i*hidden, v.Cols-i*hidden))
}

// stepped is where the states and what is saved of each step lie.
func (p *program) stepped(s *schedule.Sequence, ref cell.Ref) place {
	rows := s.Steps * s.Batch()
	switch ref.Kind {
	case cell.Saved:
		return place{matrix: p.column(s.Saved, ref.Index, s.Hidden())}
	case cell.Prev:
		return place{matrix: p.matrix(s.State[ref.Index].Band(0, rows))}
	}
	return place{matrix: p.matrix(s.State[ref.Index].Band(s.Batch(), rows))}
}

func (p *program) newScan(s *schedule.Sequence, step, compose cell.Program) *scan {
	level := p.device.kernels.Level()
	w := &scan{
		program: p, step: loop{Loop: fused.NewLoop(level, step)}, compose: loop{Loop: fused.NewLoop(level, compose)},
		steps: s.Steps, batch: s.Batch(), hidden: s.Hidden(),
	}
	for range p.device.workers {
		w.meetings = append(w.meetings, p.meeting())
	}
	return w
}

// place finds the vectors of both loops: those of the given kind that are
// carried from step to step in the worker's own memory, the others where the
// function says.
func (p *program) place(w *scan, c *cell.Cell, carried cell.Kind, find func(cell.Ref) place) {
	nth := map[int]int{}
	for k, s := range c.Recurrence.Carried {
		nth[s] = k
	}
	for _, l := range []*loop{&w.compose, &w.step} {
		for _, ref := range l.Vectors() {
			k, ok := nth[ref.Index]
			switch {
			case ref.Kind == cell.Factor:
				l.at = append(l.at, place{moves: factor, state: k})
			case ref.Kind == carried && ok:
				l.at = append(l.at, place{moves: held, state: k})
			default:
				at := find(ref)
				at.result = fused.Bypasses(ref.Kind)
				at.beside = l.SideBySide(ref)
				l.at = append(l.at, at)
			}
		}
	}
	w.stream = w.stepBytes(&w.step)*w.steps > cpuid.CPU.Cache.L3
	all := p.device.workers
	cut := min(p.knobs["scansplit"], all)
	if w.most = min(p.knobs["scanworkers"], all); w.most == 0 {
		if w.most = all; w.stream && !activates(w.step.Program()) {
			w.most = (all + 1) / 2
		}
		if cut > 0 && w.most%cut > 0 {
			w.most = all / cut * cut
		}
	}
	w.split(min(cut, w.most), p.knobs["scanchunk"], w.most)
}

// activates reports whether p has work for more than memory.
func activates(p cell.Program) bool {
	return slices.ContainsFunc(p, func(in cell.Instr) bool { return in.Op == cell.Sigmoid || in.Op == cell.Tanh })
}

// stepBytes is what loop l reads and writes per step.
func (w *scan) stepBytes(l *loop) int {
	n := 0
	for _, at := range l.at {
		if at.moves == perStep {
			n += 4 * w.batch * w.hidden
		}
	}
	return n
}

// split settles how the work is shared, for knobs that are 0 by what is there:
// channels where they keep all workers equally busy, else as few cuts of time as
// do.
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
	if w.chunk = chunk; chunk == 0 {
		perWorker := w.stepBytes(&w.compose) / groups(workers, w.cut)
		w.chunk = max(1, gemm.DetectL2()/2/max(1, perWorker))
	}
}
