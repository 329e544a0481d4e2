package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// A backStep holds what the run left of one layer's gradients at each step, by which they are
// checked.
type backStep struct {
	l      int       // number of Problem.Reads
	above  []float64 // gradient of the layer's output, rows × Emits in the order of reading, as all of these
	dx, dr []float64 // of the products, rows × G·H; dr is nil where the cell does not split them
	below  []float64 // of the input; nil where one-hot
	whole  []float64 // of a projection's output, with what steps add; that of the initial state in front
}

// recurrent returns a row's gradients of the recurrent products.
func (c *stepper) recurrent(b *backStep, row int) []float64 {
	rh := c.Cell.Recurrent * c.Hidden
	if b.dr != nil {
		return b.dr[row*rh : (row+1)*rh]
	}
	return b.dx[row*len(c.Cell.Gates)*c.Hidden:][:rh]
}

// backward checks the gradients of all layers; above is that of the last one's output.
func (c *stepper) backward(above []float64, flops float64) error {
	emits := rnn.Emits(c.Problem)
	var by []float64 // what passes by the present module
	for l := c.Layers - 1; l >= 0; l-- {
		if _, ok := rnn.ShortcutTo(c.Problem, l); ok {
			by = above
		}
		var below []float64 // in the order of steps
		for w := range c.Ways() {
			i := l*c.Ways() + w
			out := orders{block: c.distinct * emits, forward: columns(above, c.Out(), w*emits, emits)}
			b := &backStep{l: i, above: out.read(c.layers[i].backwards)}
			if err := b.readGradients(c); err != nil {
				return err
			}
			if c.Projection > 0 {
				if err := received(c, b, flops/4); err != nil {
					return err
				}
			}
			c.through(b, 3*flops/4)
			c.parameters(b)
			if b.below == nil {
				continue
			}
			one := b.below
			if c.layers[i].backwards {
				one = stepsTurned(one, c.distinct*c.Width(l))
			}
			c.inputs(b, one, flops/4)
			if below == nil {
				below = one
			} else {
				addTo(below, one)
			}
		}
		if _, ok := rnn.ShortcutFrom(c.Problem, l); ok {
			below = plus(below, by)
		}
		if l == 0 && below != nil {
			inputChecked(c, below)
		}
		above = below
	}
	return nil
}

// readGradients reads the gradients that the run left of number b.l of Problem.Reads.
func (b *backStep) readGradients(c *stepper) (err error) {
	back := c.Layer[b.l].Back
	if b.dx, err = keptByGate(c, back, back.DX); err != nil {
		return err
	}
	if back.DR != nil {
		if b.dr, err = keptByGate(c, back, back.DR); err != nil {
			return err
		}
	}
	switch {
	case back.Below == nil:
	case back.Below == c.DX:
		b.below = c.tensor("dx").Values
	default:
		b.below, err = c.kept(back.Below)
	}
	return err
}

// addTo adds others to values.
func addTo(values, others []float64) {
	for i, v := range others {
		values[i] += v
	}
}

// inputChecked checks the gradient of the network's input, which is the sum over the layers that
// read it and of what passes by them, and that of the embedding.
func inputChecked(c *stepper, sum []float64) {
	t := c.tensor("dx")
	if rnn.Joins(c.Problem) {
		c.judge(t.Name, t.Values, t.Cols, differs(t.Values, sum))
	}
	if c.Embed != nil {
		embeddingChecked(c, t.Values)
	}
}

// through checks gradients through time. No technique shows what the cell's own gradient carries
// from step to step. But that stays within each unit: some units are followed over all steps, and
// all units over the last ones.
func (c *stepper) through(b *backStep, flops float64) {
	frames, h := c.Frames(), c.Hidden
	one := 2*c.unitFLOPs(b.l) + 2*float64(c.Cell.Recurrent*h)
	if c.Cell.Kinked() {
		one += c.unitFLOPs(b.l) // for how near the kink it is
	}
	units := min(h, int(flops/2/(one*float64(frames*c.distinct))))
	rng := rand.New(rand.NewPCG(c.Seed, uint64(b.l)|1<<61))
	all := rng.Perm(h)
	reach := make([]int, frames)
	fill := func(from int) {
		for t := from; t < frames; t++ {
			reach[t] = 1
		}
	}
	tail := min(frames, max(1, int(flops/2/(one*float64(h*c.distinct)))))
	switch {
	case units == h:
		tail = frames
	case units > 0:
		c.follow(b, all[:units], 0, c.distinct, 0)
		fill(0)
	default: // one unit of one sequence, over as many steps as time allows
		first := rng.IntN(c.distinct)
		start := max(0, frames-int(flops/2/one))
		c.follow(b, all[:1], first, first+1, start)
		fill(start)
	}
	if tail < frames || units == h {
		slices.Sort(all)
		c.follow(b, all, 0, c.distinct, frames-tail)
		fill(frames - tail)
	}
	if c.layers[b.l].backwards {
		slices.Reverse(reach)
	}
	c.noteSteps(reach)
}

// A lane is one unit of one sequence, followed from the last step.
type lane struct {
	unit, seq int
	carry     []float64
	dpeep     []float64
	found     []difference // of dx, dr
	kinks     Kinks
}

// follow compares the gradients of units of sequences [from, to), at steps from start on, with the reference.
func (c *stepper) follow(b *backStep, units []int, from, to, start int) {
	h, gates, rec := c.Hidden, len(c.Cell.Gates), c.Cell.Recurrent
	w, rows := c.layers[b.l].weightR, rec*h
	if j := c.layers[b.l].stepProjection; j != nil {
		w, rows = j.projects, c.Projection
	}
	columns := c.columnsOf(w, rows, h, units)
	lanes := make([]lane, len(units)*(to-from))
	parallel.For(len(lanes), func(i int) {
		k := i / (to - from)
		lanes[i] = lane{unit: units[k], seq: from + i%(to-from)}
		c.followLane(b, &lanes[i], columns[k], start)
	})
	var dx, dr difference
	states := make([]difference, len(c.Cell.States))
	name := func(s string) string { return c.Named(s, b.l) }
	peep := make([]float64, len(c.Cell.Peeps))
	var peeps difference
	for i, y := range lanes {
		dx.merge(y.found[0])
		dr.merge(y.found[1])
		c.found.add(y.kinks)
		if start > 0 {
			continue
		}
		for s := range states {
			if s == 0 && c.Projection > 0 {
				continue
			}
			states[s].add(c.tensor(name("grad_" + c.Cell.States[s] + "0")).Values[y.seq*h+y.unit], y.carry[s], y.seq*h+y.unit)
		}
		for k, v := range y.dpeep {
			peep[k] += v * c.data.Copies(y.seq)
		}
		if (i+1)%(to-from) == 0 && to-from == c.distinct {
			for k := range peep {
				peeps.add(c.tensor(name("grad_peephole")).Values[k*h+y.unit], peep[k], k*h+y.unit)
			}
			clear(peep)
		}
	}
	c.judge(name("d(x·W)"), b.dx, gates*h, dx)
	if b.dr != nil {
		c.judge(name("d(h·R)"), b.dr, rec*h, dr)
	}
	if start > 0 {
		return
	}
	for s, d := range states {
		if s == 0 && c.Projection > 0 {
			continue // received has that of the output
		}
		t := c.tensor(name("grad_" + c.Cell.States[s] + "0"))
		c.judge(t.Name, t.Values, h, d)
	}
	if t := c.tensor(name("grad_peephole")); t != nil && to-from == c.distinct {
		c.judge(t.Name, t.Values, t.Cols, peeps)
	}
}

// columnsOf copies the columns which of w, which has so many rows and columns.
func (c *stepper) columnsOf(w []float32, rows, cols int, which []int) [][]float64 {
	out := make([][]float64, len(which))
	parallel.For(len(which), func(i int) {
		out[i] = make([]float64, rows)
		for k := range out[i] {
			out[i][k] = float64(w[k*cols+which[i]])
		}
	})
	return out
}

// followLane runs the cell's gradient for one unit. column has the unit's weights in R, or in the
// projection if there is one.
func (c *stepper) followLane(b *backStep, y *lane, column []float64, start int) {
	k, h := c.Cell, c.Hidden
	gates, rec, rectifier := len(k.Gates), k.Recurrent, k.Rectifier()
	kink, kinked := k.Kink()
	clipped := kink.At.Kind == cell.Saved && rectifier // no state says on which side of the clip it is
	v := &laneValues{x: make([]float64, gates), r: make([]float64, rec), saved: make([]float64, k.Saved), dx: make([]float64, gates), dr: make([]float64, rec),
		temps: make([]float64, max(k.Forward.Temps(), k.Backward.Temps())), next: make([]float64, len(k.States)), prev: make([]float64, len(k.States)),
		lane: y, layer: &c.layers[b.l], h: h}
	y.carry, y.dpeep, y.found = make([]float64, len(k.States)), make([]float64, len(k.Peeps)), make([]difference, 2)
	for t := c.Frames() - 1; t >= start; t-- {
		row := t*c.distinct + y.seq
		c.products(b.l, row, y.unit, v.x, v.r)
		for s := range v.prev {
			v.prev[s] = c.before(v.layer, s, row)[y.unit]
		}
		k.Forward.Eval(v.at)
		near := rectifier && v.near(c, b.l, row)
		if !rectifier || near && !clipped && v.elsewhere(row) {
			for s := range v.next { // the run's own, which say on which side of a kink it is
				v.next[s] = v.layer.state[s][row*h+y.unit]
			}
		}
		v.dout = gradientOf(c, b, row, y.unit, column)
		if clipped && near {
			v.saved[kink.At.Index] = passing(k, v.saved[kink.At.Index])
		}
		if clipped && near || kinked && !rectifier && v.nearGate(c, kink, b.l, row) {
			v.takeSide(k, kink, b.dx[row*gates*h+kink.Gate*h+y.unit])
		}
		k.Backward.Eval(v.at)
		for g, want := range v.dx {
			at := row*gates*h + g*h + y.unit
			y.found[0].add(b.dx[at], want, at)
		}
		if b.dr != nil {
			for g, want := range v.dr {
				at := row*rec*h + g*h + y.unit
				y.found[1].add(b.dr[at], want, at)
			}
		}
		if !k.DirectPrev(k.Through) {
			y.carry[k.Through] = 0
		}
		if c.Projection > 0 {
			continue // it passes through the outputs: see received
		}
		for q, d := range c.recurrent(b, row) {
			y.carry[k.Through] += d * column[q]
		}
	}
}

// laneValues holds a lane's values for the programs of a cell.
type laneValues struct {
	x, r, saved, dx, dr, temps, prev, next []float64
	dout                                   float64
	constant                               [2]float64
	lane                                   *lane
	layer                                  *stepLayer
	h                                      int
}

func (v *laneValues) at(ref cell.Ref) *float64 {
	i := ref.Index
	weight := func(k int, w []float32) *float64 {
		v.constant[k] = float64(w[i*v.h+v.lane.unit])
		return &v.constant[k]
	}
	switch ref.Kind {
	case cell.X:
		return &v.x[i]
	case cell.R:
		return &v.r[i]
	case cell.BX:
		return weight(0, v.layer.biasX)
	case cell.BR:
		return weight(1, v.layer.biasR)
	case cell.Peep:
		return weight(1, v.layer.peep)
	case cell.Prev:
		return &v.prev[i]
	case cell.Next:
		return &v.next[i]
	case cell.Saved:
		return &v.saved[i]
	case cell.Temp:
		return &v.temps[i]
	case cell.DOut:
		return &v.dout
	case cell.DNext, cell.DPrev:
		return &v.lane.carry[i]
	case cell.DX:
		return &v.dx[i]
	case cell.DR:
		return &v.dr[i]
	case cell.DPeep:
		return &v.lane.dpeep[i]
	}
	panic(fmt.Sprintf("rnn: no value %v", ref))
}

// inputs checks the gradient of a layer's input: below, in the order of steps.
func (c *stepper) inputs(b *backStep, below []float64, flops float64) {
	y := &c.layers[b.l]
	gates, width, window := len(c.Cell.Gates)*c.Hidden, c.Width(y.level), c.Cell.Window
	name := "dx"
	switch {
	case c.Ways() > 1 || y.level == 0 && (y.backwards || c.Skip > 0):
		name = c.Named("d(input)", b.l)
	case y.level > 0:
		name = fmt.Sprintf("gradient of h_l%d", y.level-1)
	}
	// side stacks the weights of the window's steps, so that each input feature is one column.
	w := c.data.Get(c.Named("weight_ih", b.l))
	side := w
	if window > 1 {
		side = make([]float32, len(w))
		for g := range gates {
			for k := range window {
				copy(side[(k*gates+g)*width:][:width], w[(g*window+k)*width:])
			}
		}
	}
	c.rowProducts(name, below, width, flops, c.Frames(), func(row, _ int, col []float64) float64 {
		var sum float64
		row = y.step(row/c.distinct, c.Frames())*c.distinct + row%c.distinct
		for k := range window {
			from := row + k*c.distinct
			if (from+1)*gates > len(b.dx) {
				break
			}
			for g, d := range b.dx[from*gates : (from+1)*gates] {
				sum += d * col[k*gates+g]
			}
		}
		return sum
	}, side, window*gates, width)
}

// rowProducts checks rows × width values that are products with the columns of w: all columns at
// some steps, and some columns at all steps.
func (c *stepper) rowProducts(name string, values []float64, width int, flops float64, steps int, product func(row, col int, column []float64) float64, w []float32, rows, cols int) {
	all := flops / (2 * float64(rows))
	plan := choose(c.Seed, steps, c.distinct*width, all)
	rng := rand.New(rand.NewPCG(c.Seed, uint64(rows)|5<<59))
	some := rng.Perm(width)[:min(width, max(1, int(all/2/float64(steps*c.distinct))))]
	columns := c.columnsOf(w, rows, cols, some)
	whole := columns
	if slices.Max(plan) == c.distinct*width {
		every := rng.Perm(width)
		slices.Sort(every)
		whole = c.columnsOf(w, rows, cols, every)
	}
	found := make([][]difference, steps)
	parallel.For(steps, func(t int) {
		found[t] = make([]difference, 1)
		for i := range plan[t] {
			j, k := i%c.distinct, i/c.distinct
			row := t*c.distinct + (j+t)%c.distinct
			if plan[t] == c.distinct*width {
				at := row*width + k
				found[t][0].add(values[at], product(row, k, whole[k]), at)
			} else if k = (k + t) % len(some); true {
				at := row*width + some[k]
				found[t][0].add(values[at], product(row, some[k], columns[k]), at)
			}
		}
	})
	c.judge(name, values, width, differences(found, 0))
	c.noteSteps(plan)
}

// near counts a unit. It reports whether its input of ReLU, at row, lies within rounding of a kink and
// either side may count. The step is computed from the states that the run left, so these carry no error
// but that of being stored.
func (v *laneValues) near(c *stepper, l, row int) bool {
	y, h, unit := v.layer, v.h, v.lane.unit
	bx, br := float64(y.biasX[unit]), float64(y.biasR[unit])
	z := v.x[0] + v.r[0] + bx + br
	terms := y.fan + h
	sum := v.x[0] * v.x[0] // a one-hot input: the product is a weight
	if y.oneHot {
		terms = 1 + h
	} else {
		sum = dotSquares(y.weightX[unit*y.width:], y.in[row*y.width:(row+1)*y.width])
	}
	sum += dotSquares(y.weightR[unit*h:], c.before(y, 0, row))
	variance := ofTerm(c.Precision, terms)*sum + ofSums(c.Precision, v.x[0], v.r[0], bx, br)
	found := &v.lane.kinks
	found.Units++
	if toKink(c.Cell, z) > deviations*math.Sqrt(variance) {
		return false
	}
	found.Near++
	return !c.strict
}

// elsewhere counts a unit near its kink that the run has on the other side than the reference.
func (v *laneValues) elsewhere(row int) bool {
	if (v.next[0] > 0) == (v.layer.state[0][row*v.h+v.lane.unit] > 0) {
		return false
	}
	v.lane.kinks.Other++
	return true
}

// dotSquares is dot of squared weights and values.
func dotSquares(w []float32, x []float64) (sum float64) {
	for i, v := range x {
		p := v * float64(w[i])
		sum += p * p
	}
	return sum
}
