package rnn

import (
	"fmt"
	"math/rand/v2"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A reset at step t separates a sequence before it from one after it, as between the episodes of
// reinforcement learning. A layer that reads from the first step begins step t with states of 0;
// one that reads from the last step begins step t-1 so. No gradient passes. Step 0 has no reset: it
// begins with the initial states in any case.
//
// Resets are data. Operations read them from matrices, so a schedule does not depend on them.

// mostResets is the Problem.Resets of sequences that begin anew at every step.
const mostResets = 100

// resetName is the tensor of Data with a 1 for each reset.
const resetName = "reset"

// checkResets reports an invalid percentage of resets, and settings that do not go with resets.
func checkResets(p Problem) error {
	switch {
	case p.Resets < 0 || p.Resets > mostResets:
		return fmt.Errorf("rnn: resets are %d%%: they must be 0%% (none) to %d%% of the steps", p.Resets, mostResets)
	case p.Resets == 0:
	case p.Lengths != "":
		return fmt.Errorf("rnn: resets are %d%% and lengths are %.60v: sequences with resets have all steps, so set lengths to full, or resets to none", p.Resets, p.Lengths)
	case p.History > 0:
		return fmt.Errorf("rnn: resets are %d%%, but gradients of history flow back into the previous minibatch without resets: set history to 0, or resets to none", p.Resets)
	case p.Calls > 0:
		return fmt.Errorf("rnn: resets are %d%%, but calls go on from the states that the call before left: set calls to 0, or resets to none", p.Resets)
	case float64(p.Steps+1)*float64(p.Batch) > MaxSymbols:
		return fmt.Errorf("rnn: resets are %d%%: they take at most %d rows of steps and sequences, not %.0f", p.Resets, MaxSymbols, float64(p.Steps+1)*float64(p.Batch))
	}
	return nil
}

// declineResets says why p's layers cannot have resets.
func declineResets(p Problem) error {
	switch {
	case p.Resets == 0:
	case p.Cell.Window > 1:
		return fmt.Errorf("%w: %v reads %d steps of its input, which a reset would have to cut as well: set resets to none", schedule.ErrResets, p.Cell, p.Cell.Window)
	case p.Projection > 0:
		return fmt.Errorf("%w: the outputs of a projection are not reset: set projection to none, or resets to none", schedule.ErrResets)
	}
	return nil
}

// drawResets draws a 1 for each reset, for steps × sequences.
func drawResets(p Problem, seed uint64, sequences int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 0x726573657473))
	v := make([]float32, p.Steps*sequences)
	for i := range v[sequences:] {
		if rng.IntN(100) < p.Resets {
			v[sequences+i] = 1
		}
	}
	return v
}

// resets holds the columns for layers that read from one end. Rows are steps in the order of
// reading. The columns are made on first use.
type resets struct {
	keep  *schedule.Matrix // (T+1)·B × 1: 0 where a sequence begins anew at the step, else 1
	prior *schedule.Matrix // T·B × 1: for each row, the row of a state before its step; at a reset, the row of 0
	both  *schedule.Matrix // 2 × H: a row of 0 and one of 1
	given *schedule.Matrix // T·B × 1: the resets themselves, in the order of steps

	backwards bool // the last step comes first
}

// newResets makes the resets of layers that read from the first step, and of the others; nil: none.
func newResets(p Problem) []*resets {
	if p.Resets == 0 {
		return nil
	}
	return []*resets{{}, {backwards: true}}
}

// stateRows is the number of rows of a state of p: the initial state in front, rows of steps and,
// with resets, a row of 0 behind.
func stateRows(p Problem, rows int) int {
	if p.Resets > 0 {
		rows++
	}
	return rows + p.Batch
}

// newState makes the matrix of a state, which has so many rows of steps.
func newState(p *Plan, name string, rows int) *schedule.Matrix {
	m := p.Matrix(name, stateRows(p.Problem, rows), p.Hidden)
	if p.Resets > 0 {
		p.Prepare(schedule.Map{Op: cell.Zero, Out: m.Band(m.Rows-1, 1)})
	}
	return m
}

// resetsOf are the resets of the layers of p, which all read the same way; nil: there are none.
func resetsOf(p *Plan) *resets {
	switch {
	case p.resets == nil:
		return nil
	case p.turned:
		return p.resets[1]
	}
	return p.resets[0]
}

// Keeping is the column of ones and zeros of n steps from t, which may include the one after the
// last. It tells a cell which sequences begin anew. It is empty where none does. See schedule.Cell.
func Keeping(p *Plan, t, n int) schedule.View {
	r := resetsOf(p)
	if r == nil {
		return schedule.View{}
	}
	if r.keep == nil {
		r.keep = p.Matrix("keep", (p.Steps+1)*p.Batch, 1)
	}
	return r.keep.Band(t*p.Batch, n*p.Batch)
}

// GivenResets is the column of a 1 for each reset, for steps × batch; nil: there are none. It is for
// programs from elsewhere.
func GivenResets(p *Plan) *schedule.Matrix {
	if p.resets == nil {
		return nil
	}
	if r := p.resets[0]; r.given == nil {
		r.given = p.Matrix("reset", p.Steps*p.Batch, 1)
	}
	return p.resets[0].given
}

// priorRows holds, for n steps from t, the rows of the states before them; at a reset, the row of 0.
func (r *resets) priorRows(p *Plan, t, n int) schedule.View {
	if r.prior == nil {
		r.prior = p.Matrix("row before", p.Steps*p.Batch, 1)
	}
	return r.prior.Band(t*p.Batch, n*p.Batch)
}

// keptPrior adds an operation that copies the states before all steps that layer l's recurrent
// product multiplies, 0 where a sequence begins anew.
func keptPrior(p *Plan, stream, l int) schedule.View {
	from := p.Layer[l].State[p.Cell.Through]
	m := p.Matrix(fmt.Sprintf("%s before", from.Name), p.Steps*p.Batch, p.Hidden)
	p.Do(stream, schedule.Gather{Index: resetsOf(p).priorRows(p, 0, p.Steps), Table: from.All(), Out: m.All()})
	return m.All()
}

// A Restart holds what separate operations need to begin sequences anew. A fused cell does so itself.
type Restart struct {
	plan   *Plan
	before []*schedule.Matrix // B × H: the states before a step
	after  []*schedule.Matrix // B × H: the gradients of the states after a step
	keep   *schedule.Matrix   // B × H: ones and zeros
}

// NewRestart makes the matrices for one step; nil where no sequence begins anew.
func NewRestart(p *Plan, name string) *Restart {
	r := resetsOf(p)
	if r == nil {
		return nil
	}
	a := &Restart{plan: p}
	for _, s := range p.Cell.States {
		a.before = append(a.before, p.Matrix(fmt.Sprintf("%s before a step%s", s, name), p.Batch, p.Hidden))
		if p.Pass == Train {
			a.after = append(a.after, p.Matrix(fmt.Sprintf("d%s after a step%s", s, name), p.Batch, p.Hidden))
		}
	}
	if p.Pass == Train {
		a.keep = p.Matrix("keep at a step"+name, p.Batch, p.Hidden)
	}
	return a
}

// Before appends the operations that form the states before step t of layer l, 0 where a sequence begins anew.
func (a *Restart) Before(stream, l, t int) []schedule.View {
	var views []schedule.View
	for s, m := range a.before {
		a.plan.Do(stream, schedule.Gather{Index: resetsOf(a.plan).priorRows(a.plan, t, 1), Table: a.plan.Layer[l].State[s].All(), Out: m.All()})
		views = append(views, m.All())
	}
	return views
}

// Step has c, step t of layer l, read states that are already 0 where sequences begin anew. Its
// recurrent product must be formed of these.
func (a *Restart) Step(c *schedule.Cell, stream, l, t int) {
	c.Prev, c.Keep = a.Before(stream, l, t), schedule.View{}
}

// Back does the same with the gradient of step t.
func (a *Restart) Back(c *schedule.CellBackward, stream, l, t int) {
	c.Prev = a.Before(stream, l, t)
	a.plan.Do(stream, schedule.Gather{Index: c.KeepNext(), Table: resetsOf(a.plan).zeroAndOne(a.plan), Out: a.keep.All()})
	next := make([]schedule.View, len(c.DNext))
	for s, m := range a.after {
		next[s] = m.All()
		a.plan.Do(stream, schedule.Map{Op: cell.Mul, Out: next[s], A: c.DNext[s], B: a.keep.All()})
	}
	c.DNext, c.Keep = next, schedule.View{}
}

// zeroAndOne views a row of 0 and one of 1.
func (r *resets) zeroAndOne(p *Plan) schedule.View {
	if r.both == nil {
		r.both = p.Matrix("zero and one", 2, p.Hidden)
		p.Prepare(schedule.Map{Op: cell.Zero, Out: r.both.Band(0, 1)})
		p.Prepare(schedule.Map{Op: cell.OneMinus, Out: r.both.Band(1, 1), A: r.both.Band(0, 1)})
	}
	return r.both.All()
}

// writeResets writes the columns of all layers, given a 1 for each reset of steps × batch.
func writeResets(p *Plan, mem Memory, reset []float32) error {
	for _, r := range p.resets {
		if r.keep != nil {
			if err := mem.Write(r.keep, r.keeping(p.Problem, reset)); err != nil {
				return err
			}
		}
		if r.prior != nil {
			if err := mem.Write(r.prior, r.priors(p.Problem, reset)); err != nil {
				return err
			}
		}
		if r.given != nil {
			if err := mem.Write(r.given, reset); err != nil {
				return err
			}
		}
	}
	return nil
}

// keeping is the content of the matrix keep: 0 where a sequence begins anew, else 1.
func (r *resets) keeping(p Problem, reset []float32) []float32 {
	v := make([]float32, (p.Steps+1)*p.Batch)
	for row := range v {
		v[row] = 1
		if row < len(reset) {
			v[row] -= reset[row]
		}
	}
	if r.backwards { // a reset is between a step and the one before
		reverseBlocks(v, p.Batch)
	}
	return v
}

// priors is the content of the matrix prior: the row of the state before each step.
func (r *resets) priors(p Problem, reset []float32) []float32 {
	v := r.keeping(p, reset)[:p.Steps*p.Batch]
	for row, keep := range v {
		if v[row] = float32(row); keep == 0 {
			v[row] = float32(stateRows(p, p.Steps*p.Batch) - 1)
		}
	}
	return v
}
