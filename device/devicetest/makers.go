package devicetest

import (
	"maps"
	"slices"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A maker builds one operation of random sizes.
type maker func(t *trial) schedule.Op

// makers returns makers by name. They cover every kind of schedule.Op.
func makers() map[string]maker {
	all := simpleMakers()
	maps.Copy(all, lossMakers())
	for _, o := range cell.Ops() {
		all["map "+o.String()] = func(t *trial) schedule.Op { return t.mapOf(o) }
	}
	all["maps"] = func(t *trial) schedule.Op { return t.maps() }
	for _, c := range cell.All() {
		all["cell "+c.Name] = func(t *trial) schedule.Op { return t.cell(c) }
		all["cellbackward "+c.Name] = func(t *trial) schedule.Op { return t.cellBackward(c) }
		if !slices.Contains(resetCells, c) {
			continue
		}
		all["cell anew "+c.Name] = func(t *trial) schedule.Op {
			op := t.cell(c)
			op.Keep = column(t, op.Next[0].Rows)
			return op
		}
		all["cellbackward anew "+c.Name] = func(t *trial) schedule.Op {
			op := t.cellBackward(c)
			op.Keep = column(t, 2*op.Next[0].Rows)
			return op
		}
	}
	for _, c := range cell.Every() {
		if c.Half { // a step of its own, never one of several
			continue
		}
		for name, build := range sequenceMakers(c) {
			all[name+" "+c.Name] = build
		}
		if c.Recurrent == len(c.Gates) && len(c.Peeps) == 0 && cell.Lookup(c.Name) == c {
			for name, build := range stackMakers(c) {
				all[name+" "+c.Name] = build
			}
		}
	}
	return all
}

// simpleMakers returns the makers of operations without a cell or an element-wise function.
func simpleMakers() map[string]maker {
	return map[string]maker{
		"gemm": func(t *trial) schedule.Op {
			m, n, k := t.size(), t.size(), t.size()
			ta, tb := t.flip(), t.flip()
			ar, ac := oriented(ta, m, k)
			br, bc := oriented(tb, k, n)
			return schedule.Gemm{A: t.place(ar, ac), B: t.place(br, bc), C: t.place(m, n), TransA: ta, TransB: tb, Accumulate: t.flip()}
		},
		"gemm packed": func(t *trial) schedule.Op {
			m, n, k := t.size(), t.size(), t.size()
			tb := t.flip()
			br, bc := oriented(tb, k, n)
			packed := t.b.Packed("packed", k, n).All()
			t.b.Do(0, schedule.Pack{Src: t.place(br, bc), Dst: packed, Trans: tb})
			return schedule.Gemm{A: t.place(m, k), B: packed, C: t.place(m, n), Accumulate: t.flip()}
		},
		"sumrows": func(t *trial) schedule.Op {
			rows, cols := t.size(), t.size()
			return schedule.SumRows{A: t.place(rows, cols), Out: t.place(1, cols), Accumulate: t.flip()}
		},
		"gather": func(t *trial) schedule.Op {
			rows, cols := t.size(), t.size()
			return schedule.Gather{Index: t.index(rows), Table: t.place(5, cols), Out: t.place(rows, cols)}
		},
		"scatter": func(t *trial) schedule.Op {
			rows, cols := t.size(), t.size()
			return schedule.Scatter{Index: t.index(rows), Src: t.place(rows, cols), Table: t.place(5, cols)}
		},
		"normalise": func(t *trial) schedule.Op { return t.normalise() },
		"normalisebackward": func(t *trial) schedule.Op { // of a forward pass, whose stats it needs
			n := t.normalise()
			n.Out, n.Stats = t.place(n.X.Rows, n.X.Cols), t.place(n.X.Rows, 2)
			t.b.Do(0, n)
			op := schedule.NormaliseBackward{DOut: n.Out, X: n.X, Gain: n.Gain, Stats: n.Stats, DX: n.Out, Share: n.X}
			if t.flip() {
				op.DX = t.place(n.X.Rows, n.X.Cols)
			}
			if t.flip() {
				op.Share = t.place(n.X.Rows, n.X.Cols)
			}
			return op
		},
		"squares": func(t *trial) schedule.Op {
			rows, cols := t.size(), t.size()
			return schedule.Squares{A: t.place(rows, cols), Out: t.place(1, 1+t.rng.IntN(rows))}
		},
		"squares rows": func(t *trial) schedule.Op {
			table, index := t.table(t.size())
			return schedule.Squares{A: table, Out: t.place(1, 1+t.rng.IntN(table.Rows)), Rows: index}
		},
		"change":          func(t *trial) schedule.Op { return t.change() },
		"update sgd":      func(t *trial) schedule.Op { return t.update(schedule.SGD, t.rng.IntN(2)) },
		"update nesterov": func(t *trial) schedule.Op { return nesterov(t) },
		"update rows": func(t *trial) schedule.Op {
			op := t.update(schedule.SGD, 0)
			op.Copy = schedule.View{}
			return t.sparse(op)
		},
		"update momentum rows": func(t *trial) schedule.Op { return t.sparse(t.update(schedule.SGD, t.rng.IntN(2))) },
		"update adam":          func(t *trial) schedule.Op { return t.update(schedule.Adam, 2) },
		"update adam rows":     func(t *trial) schedule.Op { return t.sparse(t.update(schedule.Adam, 2)) },
		"allreduce": func(t *trial) schedule.Op { // one replica: sums over several replicas need as many devices
			return schedule.AllReduce{Sums: []schedule.View{t.place(t.size(), t.size()), t.place(t.size(), t.size())}, Replicas: 1}
		},
	}
}

// lossMakers returns the makers of losses.
func lossMakers() map[string]maker {
	return map[string]maker{
		"softmaxloss": func(t *trial) schedule.Op {
			rows, cols := t.size(), 4+t.size()
			return t.softmaxLoss(rows, cols, 0)
		},
		"softmaxloss grouped": func(t *trial) schedule.Op {
			rows, groups, each := t.size(), 3+t.rng.IntN(3), 1+t.size()
			if t.flip() { // small groups, so that targets fall into several of them
				each = 2
			}
			op := t.softmaxLoss(rows, groups*each, groups)
			op.Weight = t.shares(rows)
			return op
		},
		"ctcloss": func(t *trial) schedule.Op { return transcribed(t) },
	}
}

// normalise builds the operation with or without stats, in place or not.
func (t *trial) normalise() schedule.Normalise {
	rows, cols := t.size(), t.size()
	if t.flip() {
		cols += 300
	}
	op := schedule.Normalise{X: t.place(rows, cols), Gain: t.place(1, cols)}
	if op.Out = op.X; t.flip() {
		op.Out = t.place(rows, cols)
	}
	if t.flip() {
		op.Stats = t.place(rows, 2)
	}
	return op
}

// softmaxLoss builds the operation for so many rows and classes.
func (t *trial) softmaxLoss(rows, cols, groups int) schedule.SoftmaxLoss {
	op := schedule.SoftmaxLoss{Logits: t.place(rows, cols), Target: t.index(rows), Loss: t.place(rows, 1), Grad: t.flip(), Groups: groups, Scale: 0.25}
	if op.Prob = op.Logits; t.flip() {
		op.Prob = t.place(rows, cols)
	}
	return op
}

// shares returns a column in which about half of the values are 0.
func (t *trial) shares(rows int) schedule.View {
	v := t.place(rows, 1)
	t.b.Do(0, schedule.Map{Op: cell.ReLU, Out: v, A: v})
	return v
}

// update builds an update by a rule with so many moments. Rates lie between 0 and 1, and mean
// squares are not negative.
func (t *trial) update(rule schedule.Rule, moments int) schedule.Update {
	rows, cols := t.size(), t.size()
	op := schedule.Update{
		Rule: rule, Param: t.place(rows, cols), Grad: t.place(rows, cols), Rates: t.place(1, schedule.RateColumns),
		Beta1: 0.75, Beta2: 0.9, Epsilon: 0.125,
	}
	t.b.Do(0, schedule.Map{Op: cell.Sigmoid, Out: op.Rates, A: op.Rates})
	for range moments {
		m := t.place(rows, cols)
		t.b.Do(0, schedule.Map{Op: cell.Mul, Out: m, A: m, B: m})
		op.Moment = append(op.Moment, m)
	}
	if t.flip() {
		op.Squares = t.place(1, t.size())
		t.b.Do(0, schedule.Map{Op: cell.Mul, Out: op.Squares, A: op.Squares, B: op.Squares})
	}
	if t.flip() {
		op.Copy = t.place(rows, cols)
	}
	return op
}

// nesterov builds an update by Nesterov's momentum, of all rows or of a table's.
func nesterov(t *trial) schedule.Update {
	op := t.update(schedule.SGD, 1)
	if op.Nesterov = true; t.flip() {
		op = t.sparse(op)
	}
	return op
}

// table returns a table that is zero except in some rows, and the column of their indices. Some
// rows occur more than once.
func (t *trial) table(cols int) (table, index schedule.View) {
	n := t.size()
	table, index = t.place(5, cols), t.index(n)
	t.b.Do(0, schedule.Map{Op: cell.Zero, Out: table})
	t.b.Do(0, schedule.Scatter{Index: index, Src: t.place(n, cols), Table: table})
	return table, index
}

// sparse changes op to parameters of 5 rows, of which some have a gradient. In some trials rows are
// long, since a device may then treat only the rows that are named.
func (t *trial) sparse(op schedule.Update) schedule.Update {
	cols := t.size()
	if t.flip() {
		cols += 64
	}
	op.Param = t.place(5, cols)
	op.Grad, op.Rows = t.table(cols)
	for i := range op.Moment {
		op.Moment[i] = t.place(5, cols)
		t.b.Do(0, schedule.Map{Op: cell.Mul, Out: op.Moment[i], A: op.Moment[i], B: op.Moment[i]})
	}
	if !op.Copy.Empty() {
		op.Copy = t.place(5, cols)
	}
	return op
}

// mapOf builds a map of o over random operands.
func (t *trial) mapOf(o cell.Op) schedule.Map {

	rows, cols := t.size(), t.size()
	m := schedule.Map{Op: o, Out: t.place(rows, cols)}
	operand := func() schedule.View {
		switch t.rng.IntN(3) {
		case 0:
			return t.place(1, cols)
		case 1:
			return m.Out
		}
		return t.place(rows, cols)
	}
	if o.Operands() > 0 {
		m.A = operand()
	}
	if o.Operands() > 1 {
		m.B = operand()
	}
	if o == cell.Div {
		m.B = t.divisor(m.B.Rows, cols)
	}
	return m
}

// maps builds a chain of up to 20 maps over a few views.
func (t *trial) maps() schedule.MapChain {

	rows, cols := t.size(), t.size()
	views := []schedule.View{t.place(1, cols)}
	for range 5 {
		views = append(views, t.place(rows, cols))
	}
	var op schedule.MapChain
	for range 1 + t.rng.IntN(20) {
		pick := func(from int) schedule.View { return views[from+t.rng.IntN(len(views)-from)] }
		ops := []cell.Op{cell.Sigmoid, cell.Tanh, cell.OneMinus, cell.Mul, cell.SigmoidGrad, cell.Copy, cell.Zero} // bounded
		op.Append(schedule.Map{Op: ops[t.rng.IntN(len(ops))], Out: pick(1), A: pick(0), B: pick(0)})
	}
	return op
}

// cell builds one step of c.
func (t *trial) cell(c *cell.Cell) schedule.Cell {

	rows, h, g := t.size(), t.size(), len(c.Gates)
	op := schedule.Cell{Cell: c, Train: t.flip(), X: t.place(rows, g*h), BX: t.place(1, g*h)}
	if n := c.Recurrent; n > 0 {
		op.R, op.BR = t.place(rows, n*h), t.place(1, n*h)
	}
	if n := len(c.Peeps); n > 0 {
		op.Peep = t.place(1, n*h)
	}
	if op.Train && c.Saved > 0 {
		op.Saved = t.place(rows, c.Saved*h)
	}
	for s := range c.States {
		op.Prev, op.Next = append(op.Prev, t.state(c, s, rows, h)), append(op.Next, t.place(rows, h))
	}
	return op
}

// cellBackward builds the gradient of one step of c.
func (t *trial) cellBackward(c *cell.Cell) schedule.CellBackward {

	rows, h, g := t.size(), t.size(), len(c.Gates)
	op := schedule.CellBackward{Cell: c, DOut: t.place(rows, h), DX: t.place(rows, g*h)}
	if n := len(c.Peeps); n > 0 {
		op.Peep, op.DPeep = t.place(1, n*h), t.place(rows, n*h)
	}
	if c.Saved > 0 {
		op.Saved = t.place(rows, c.Saved*h)
	}
	if c.SplitGrad {
		op.DR = t.place(rows, c.Recurrent*h)
	}
	for s := range c.States {
		op.Prev, op.Next = append(op.Prev, t.state(c, s, rows, h)), append(op.Next, t.state(c, s, rows, h))
		op.DNext = append(op.DNext, t.place(rows, h))
		switch {
		case !c.DirectPrev(s):
			op.DPrev = append(op.DPrev, schedule.View{})
		case t.flip():
			op.DPrev = append(op.DPrev, op.DNext[s])
		default:
			op.DPrev = append(op.DPrev, t.place(rows, h))
		}
	}
	return op
}
