package devicetest

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// sequence is a few steps of cell c over fresh matrices.
func (t *trial) sequence(c *cell.Cell, train bool) schedule.Sequence {
	// Evaluation takes time of the order of rows·h²: few sequences are many.
	steps, rows, h, g := 1+t.rng.IntN(6), 1+t.size()%20, t.size(), len(c.Gates)
	s := schedule.Sequence{Cell: c, Train: train, Steps: steps, X: t.place(steps*rows, g*h), BX: t.place(1, g*h)}
	if n := c.Recurrent; n > 0 {
		s.BR = t.place(1, n*h)
	}
	if n := len(c.Peeps); n > 0 {
		s.Peep = t.place(1, n*h)
	}
	if train && c.Saved > 0 {
		s.Saved = t.place(steps*rows, c.Saved*h)
	}
	for range c.States {
		s.State = append(s.State, t.place((steps+1)*rows, h))
	}
	return s
}

// gradient is where the gradients of s come from and go to.
func (t *trial) gradient(s schedule.Sequence) schedule.SequenceGrad {
	c, rows, h := s.Cell, s.Batch(), s.Hidden()
	g := schedule.SequenceGrad{DOut: t.place(s.Steps*rows, h), DX: t.place(s.Steps*rows, len(c.Gates)*h)}
	if c.SplitGrad {
		g.DR = t.place(s.Steps*rows, c.Recurrent*h)
	}
	if n := len(c.Peeps); n > 0 {
		g.DPeep = t.place(rows, n*h)
	}
	for range c.States {
		g.Carry = append(g.Carry, t.place(rows, h))
	}
	return g
}

// weights packs fresh weights.
func (t *trial) weights(rows, cols int, trans bool) schedule.View {
	packed := t.b.Packed("packed", rows, cols).All()
	r, c := oriented(trans, rows, cols)
	t.b.Do(0, schedule.Pack{Src: t.b.Matrix(weights, r, c).All(), Dst: packed, Trans: trans})
	return packed
}

// weights names matrices whose products shrink what they multiply, so that
// errors do not grow from step to step.
const weights = "weights"

// sequenceMakers build the operations over several steps of c.
func sequenceMakers(c *cell.Cell) map[string]func(t *trial) schedule.Op {
	all := map[string]func(t *trial) schedule.Op{}
	if c.Recurrence != nil {
		all["scan"] = func(t *trial) schedule.Op {
			op := schedule.Scan{Sequence: t.sequence(c, t.flip())}
			if n := c.Recurrent; n > 0 {
				op.R = t.place(op.X.Rows, n*op.Hidden())
			}
			return op
		}
		all["scanbackward"] = func(t *trial) schedule.Op {
			s := t.sequence(c, true)
			return schedule.ScanBackward{Sequence: s, SequenceGrad: t.gradient(s)}
		}
	}
	if c.Recurrent > 0 {
		all["persistent"] = func(t *trial) schedule.Op {
			op := schedule.Persistent{Sequence: t.sequence(c, t.flip())}
			for range c.Recurrent {
				op.R = append(op.R, t.weights(op.Hidden(), op.Hidden(), t.flip()))
			}
			return op
		}
		all["persistentbackward"] = func(t *trial) schedule.Op {
			s := t.sequence(c, true)
			h := s.Hidden()
			return schedule.PersistentBackward{Sequence: s, SequenceGrad: t.gradient(s), R: t.weights(c.Recurrent*h, h, t.flip())}
		}
	}
	return all
}

// isSequence reports whether op multiplies what it has computed itself.
func isSequence(op schedule.Op) bool {
	switch op.(type) {
	case schedule.Persistent, schedule.PersistentBackward, schedule.Vendor, schedule.VendorBackward:
		return true
	}
	return false
}
