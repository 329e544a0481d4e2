package cpu

import (
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
)

// Steps at which sequences begin anew divide the steps of a scan. The held states of these
// sequences are set to 0 there. If the cell also reads other vectors of the state before the step,
// or of its products, the step runs by itself. Then each of these sequences runs alone, with zeros
// in place of such vectors.

// isCut reports whether a vector that is not held reads as 0 when a sequence begins anew.
func isCut(ref cell.Ref, moves movement) bool {
	return ref.Kind == cell.R || ref.Kind == cell.Prev && moves == perStep
}

// cuts reports whether l has a vector that isCut.
func (l *loop) cuts() bool {
	for i := range l.at {
		if l.at[i].cut {
			return true
		}
	}
	return false
}

// resetRows returns the first rows, in the column of resets, for a step's held states and for its
// other vectors. The step is counted from where the pass begins.
func (w *scan) resetRows(step int) (hold, other int) {
	if w.backward {
		t := w.steps - 1 - step
		return (t + 1) * w.batch, t * w.batch
	}
	return step * w.batch, step * w.batch
}

// isReset reports whether a sequence begins anew, by its row in the column of resets.
func (w *scan) isReset(row int) bool { return w.keep.data[row*w.keep.stride] == 0 }

// anyReset reports whether any of c's sequences begins anew. row is one that resetRows returns.
func (w *scan) anyReset(c piece, row int) bool {
	for i := c.row; i < c.row+c.rows; i++ {
		if w.isReset(row + i) {
			return true
		}
	}
	return false
}

// run advances the held states by steps from … to-1, counted from where the pass begins.
func (w *scan) run(own *scanScratch, c piece, l *loop, holds, factors []float32, from, to int) {
	if w.keep.rows > 0 {
		alone := l.cuts()
		for step := from; step < to; step++ {
			hold, other := w.resetRows(step)
			held, apart := w.anyReset(c, hold), alone && w.anyReset(c, other)
			if !held && !apart {
				continue
			}
			w.stretch(own, c, l, holds, factors, from, step, false)
			if from = step; held {
				w.clear(c, holds, hold)
				if factors != nil {
					w.clear(c, factors, hold)
				}
			}
			if apart {
				w.apart(own, c, l, holds, factors, step, other)
				from++
			}
		}
	}
	w.stretch(own, c, l, holds, factors, from, to, false)
}

// clear sets the held states of those sequences of c to 0 that begin anew.
func (w *scan) clear(c piece, holds []float32, row int) {
	for k := range w.carried {
		m := w.state(holds, k)
		for i := c.row; i < c.row+c.rows; i++ {
			if w.isReset(row + i) {
				clear(m.row(i)[c.unit : c.unit+c.units])
			}
		}
	}
}

// apart runs a step: each sequence that begins anew by itself, and the ones between together.
func (w *scan) apart(own *scanScratch, c piece, l *loop, holds, factors []float32, step, row int) {
	end := c.row + c.rows
	for from := c.row; from < end; {
		part, reset := c, w.isReset(row+from)
		part.row, part.rows = from, 1
		for !reset && from+part.rows < end && !w.isReset(row+from+part.rows) {
			part.rows++
		}
		w.stretch(own, part, l, holds, factors, step, step+1, reset)
		from += part.rows
	}
}

// none returns a vector that is 0 for every row.
func (w *scan) none() fused.Vector { return fused.Vector{Data: w.zero} }
