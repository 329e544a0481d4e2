package rnn

import (
	"cmp"
	"fmt"
	"slices"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Technique is one way to run an RNN: the common interface of everything in
// impl. It lays work out; devices carry it out.
type Technique interface {
	// Name is the word used in flags, results and legends.
	Name() string

	// Doc is one line: the idea and its paper.
	Doc() string

	// Knobs lists what a tuner may turn for p. A technique that can use
	// several streams has a knob of that name.
	Knobs(p Problem) []knob.Knob

	// Plan appends the work of one pass to plan, or returns an error wrapping
	// schedule.ErrUnsupported that says why it cannot. k is complete. Where training, it calls
	// plan.Cut before the first operation of the backward pass: see compose.
	Plan(plan *Plan, k knob.Params) error
}

// A Launcher is a technique whose knobs have other defaults where each operation is a launch, as on
// a GPU. Techniques know nothing else of the device.
type Launcher interface {
	Technique

	// LaunchedKnobs is Knobs for such a device. Only the order of values differs.
	LaunchedKnobs(p Problem) []knob.Knob
}

// KnobsOf lists t's knobs for p. launched says that each operation is a launch on the device.
func KnobsOf(t Technique, p Problem, launched bool) []knob.Knob {
	if l, ok := t.(Launcher); ok && launched {
		return l.LaunchedKnobs(p)
	}
	return t.Knobs(p)
}

// A Keeper is a technique that can train on the steps of Problem.History. It computes them ahead of
// all runs (Builder.Prepare), as the previous minibatch did. A plan that continues runs finds them
// instead: then the technique names the matrices that hold them (Plan.Keep). Layout declines
// history for all other techniques.
type Keeper interface {
	Technique
	KeepsHistory()
}

// A Plan is a problem with its parameters, inputs and results laid out, and the
// schedule that a technique adds to it.
type Plan struct {
	Matrices
	*schedule.Builder

	// UnitError is the largest absolute error of a sigmoid or hyperbolic tangent. A technique
	// states it if it leaves them to a library or another program; 0: rounding of single precision
	// alone.
	UnitError float64

	// Part says that a run computes only part of the pass, and the rest was computed ahead
	// of all runs. Its FLOP/s then count that part alone.
	Part bool

	// Iterations is how many an Iterative technique runs; 0: it is none. Iterates are the states of layers, and
	// gradients that are iterated, as its last two leave them.
	Iterations int
	Iterates   [][2]schedule.View
	changes    *schedule.Matrix // of Iterates, a row each: see LargestChange; nil: nothing keeps them

	// Continues says that a run finds the steps of the history where the run before left them.
	Continues bool
	kept      []Kept

	hosted *hosted // nil: the plan is not for a host program; see LayoutHosted

	turn *Turn // of what is written; nil: none
}

// A Kept is a matrix with a row per step and sequence. Lead more steps lie in front of those of the problem.
type Kept struct {
	Matrix *schedule.Matrix
	Lead   int
}

// Rows is the number of m's first rows that are kept from run to run.
func (k Kept) Rows(p Problem) int { return (k.Lead + p.History) * p.Batch }

// Keep declares that the history's steps in m are the last steps of the previous run. Every matrix
// that the backward pass reads at these steps must be declared.
func (p *Plan) Keep(m *schedule.Matrix, lead int) {
	k := Kept{m, max(0, lead)}
	if !slices.Contains(p.kept, k) {
		p.kept = append(p.kept, k)
	}
}

// Kept lists the matrices that are kept from run to run.
func (p *Plan) Kept() []Kept { return p.kept }

// Layout plans problem p by technique t with the knob settings k. Missing settings take their
// defaults.
func Layout(t Technique, p Problem, k knob.Params) (*Plan, *schedule.Schedule, error) {
	return LayoutWithin(t, p, k, 0)
}

// LayoutWithin is Layout with a limit in bytes; 0 is none. If the schedule of a long problem would
// take more of the host's memory, it lays nothing out and returns a *TooLarge.
func LayoutWithin(t Technique, p Problem, k knob.Params, limit int64) (*Plan, *schedule.Schedule, error) {
	plan, err := planned(t, p, k, kind{limit: limit})
	if err != nil {
		return nil, nil, err
	}
	s, err := plan.Schedule()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", t.Name(), err)
	}
	return plan, s, nil
}

// A kind is what a plan is for: see LayoutWithin, Plan.Continues and LayoutHosted.
type kind struct {
	limit             int64 // of the host's memory, in bytes; 0: none
	continues, hosted bool
}

// planned has t lay out p.
func planned(t Technique, p Problem, k knob.Params, of kind) (*Plan, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	k, err := k.Complete(t.Knobs(p))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name(), err)
	}
	if err := declined(t, p); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name(), err)
	}
	plan := newPlan(p, max(1, k["streams"]), k[sizesName])
	_, plan.Batches.longestFirst = t.(LongestFirst)
	if of.continues {
		plan.Continues = true
		feedNew(plan)
	}
	if of.hosted {
		plan.host()
	}
	if p.Frames() > foreseenBeyond {
		if whole, err := foresee(t, p, k); err == nil { // otherwise planning reports the error
			if of.limit > 0 && whole.bytes > of.limit {
				return nil, fmt.Errorf("%s: %w", t.Name(), &TooLarge{whole.bytes})
			}
			if err := plan.Expect(whole.nodes); err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name(), err)
			}
		}
	}
	if err := plan.layOutBy(t, k); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name(), err)
	}
	return plan, nil
}

// Declined says why no technique can run p: a network that is not published, or one that nothing here computes yet.
// It is nil where some technique may.
func Declined(p Problem) error { return cmp.Or(p.Check(), declined(able{}, p)) }

// able is a technique that could do all.
type able struct{ Technique }

func (able) KeepsHistory()          {}
func (able) Normalises()            {}
func (able) NormalisesBatch()       {}
func (able) Directs(Direction) bool { return true }

// declined says why t cannot run p, for the reasons that techniques share; nil: none of them.
func declined(t Technique, p Problem) error {
	_, keeps := t.(Keeper)
	switch c := p.Cell; {
	case p.Precision == INT8 && p.Pass == Train:
		return fmt.Errorf("%w: gradients need more than 8-bit integers: use int8 for inference", schedule.ErrPrecision)
	case p.History > 0 && !keeps:
		return fmt.Errorf("%w: it keeps no steps of the previous minibatch, but history is %d", schedule.ErrHistory, p.History)
	case p.OneHot && c.Window > 1:
		return fmt.Errorf("%w: %v reads %d time steps of its input, but one-hot input supports only one", schedule.ErrInput, c, c.Window)
	case p.Symbols > 0 && p.History > 0:
		return fmt.Errorf("%w: the history is computed ahead of a run, but an embedding in each run: set history to 0", schedule.ErrHistory)
	case p.Calls > 0 && c.Window > 1:
		return fmt.Errorf("%w: %v reads %d time steps of its input, but from call to call only states are kept", schedule.ErrCalls, c, c.Window)
	}
	return cmp.Or(p.declineHeads(), declineSkip(p), declineLookahead(p), declineDense(p), declineConv(p), declineNorm(t, p), declineProjection(p), declineResets(p), declineGain(p), canTurn(t, p))
}

// layOutBy lays the pass out by t, between the embedding or convolutions and their gradients.
func (p *Plan) layOutBy(t Technique, k knob.Params) error {
	embed(p)
	convolve(p)
	lay := t.Plan
	if composed(t, p.Problem) {
		lay = func(p *Plan, k knob.Params) error { return compose(p, t, k) }
	}
	if err := lay(p, k); err != nil {
		return err
	}
	convolutionGradients(p)
	embeddingGradient(p)
	if p.Calls > 0 {
		carryOn(p)
	}
	return nil
}

// NewPlan makes the matrices of p, of which no operation is laid out.
func NewPlan(p Problem) *Plan { return newPlan(p, 1, 0) }

// newPlan makes the plan's matrices, with at most sizes batch sizes; 0 is any number.
func newPlan(p Problem, streams, sizes int) *Plan {
	plan := &Plan{Matrices: Matrices{Problem: p, Batches: batchesOf(p, sizes), resets: newResets(p)}, Builder: schedule.NewBuilder(streams)}
	plan.SetPrecision(p.Precision)
	train := p.Pass == Train
	rows := plan.Batches.Before(p.Frames())
	fresh := rows - p.History*p.Batch
	if p.Lengths != "" {
		plan.uneven = &uneven{}
	}
	plan.X = plan.Matrix("x", rows, p.Given())
	plan.Given = plan.X
	if p.Symbols > 0 {
		plan.X = plan.Matrix("embedded", rows, p.Input)
		plan.Embed = &Embedding{Table: plan.Matrix("E", p.Symbols, p.Embedding), Grad: matrixIf(plan, train, "dE", p.Symbols, p.Embedding)}
	}
	if p.Conv != "" {
		plan.Convolutions = newConvolutions(plan, rows)
		plan.X = plan.Convolutions[len(plan.Convolutions)-1].Out
	}
	plan.DX = matrixIf(plan, train && !p.OneHot, "dx", rows, p.Width(0))
	for i := range p.Reads() {
		plan.Layer = append(plan.Layer, newLayer(plan, i, rows))
	}
	if p.Output > 0 {
		plan.Head = newHead(plan, fresh)
	} else {
		plan.DY = matrixIf(plan, train, "dy", fresh, p.Out())
	}
	return plan
}

// matrixIf adds a matrix to the plan if cond holds, and else returns nil.
func matrixIf(plan *Plan, cond bool, name string, rows, cols int) *schedule.Matrix {
	if !cond {
		return nil
	}
	return plan.Matrix(name, rows, cols)
}

// newLayer makes the matrices of layer i of Problem.Reads. rows counts those of all steps.
func newLayer(plan *Plan, i, rows int) Layer {
	p, h := plan.Problem, plan.Hidden
	train, gh, rh, mh := p.Pass == Train, len(p.Cell.Gates)*h, p.Cell.Recurrent*h, p.Cell.Multiplied()*h
	l, mark := i/p.Ways(), ""
	if i%p.Ways() == 1 {
		mark = "r" // from the last step
	}
	name := func(s string) string { return fmt.Sprintf("%s%d%s", s, l, mark) }
	wr, wc := gh, p.FanIn(l)
	if l == 0 && p.OneHot {
		wr, wc = wc, wr
	}
	peeps, saved := len(p.Cell.Peeps), p.Cell.Saved
	layer := Layer{
		W:     plan.Matrix(name("W"), wr, wc),
		R:     matrixIf(plan, mh > 0, name("R"), mh, p.HeadUnits()),
		BX:    plan.Matrix(name("bx"), 1, gh),
		BR:    matrixIf(plan, rh > 0, name("br"), 1, rh),
		Peep:  matrixIf(plan, peeps > 0, name("p"), 1, peeps*h),
		Saved: matrixIf(plan, train && saved > 0, name("saved"), rows, saved*h),
	}
	for i, s := range p.Cell.States {
		if i == 0 && p.Projection > 0 {
			s = "u" // not yet projected
		}
		layer.State = append(layer.State, newState(plan, name(s), rows))
	}
	layer.Projection, layer.Inner = newProjection(plan, name, layer.State[0]), newInner(plan, name, rows)
	layer.Norm, layer.BatchNorm = newNorm(plan, name, layer.Inner), newBatchNorm(plan, name, rows)
	layer.Ahead = newRowConvolution(plan, i)
	if !train {
		return layer
	}
	layer.Grad = LayerGrad{
		W:    plan.Matrix(name("dW"), wr, wc),
		R:    matrixIf(plan, mh > 0, name("dR"), mh, p.HeadUnits()),
		BX:   plan.Matrix(name("dbx"), 1, gh),
		BR:   matrixIf(plan, rh > 0, name("dbr"), 1, rh),
		Peep: matrixIf(plan, peeps > 0, name("dp"), 1, peeps*h),
	}
	for i, s := range p.Cell.States {
		if i == 0 && p.Projection > 0 {
			s = "u" // stays 0
		}
		layer.Grad.State = append(layer.Grad.State, plan.Matrix(name("d"+s), p.Batch, h))
	}
	return layer
}

// newHead makes the matrices of the output layer. rows counts those of all new steps.
func newHead(plan *Plan, rows int) *Head {
	p, v, train := plan.Problem, plan.Output, plan.Pass == Train
	targets, values := rows, 1
	if p.Transcript > 0 {
		targets, values = p.Batch, 1+p.Transcript
	}
	h := &Head{
		W: plan.Matrix("Wout", v, HeadInput(p)), B: plan.Matrix("bout", 1, v), Target: plan.Matrix("target", targets, values), Weight: matrixIf(plan, p.Weighted, "weight", rows, 1),
		Padding: matrixIf(plan, p.Transcript > 0, "padding", rows, 1), Prob: plan.Matrix("prob", rows, v), Loss: plan.Matrix("loss", targets, 1),
		DW: matrixIf(plan, train, "dWout", v, HeadInput(p)), DB: matrixIf(plan, train, "dbout", 1, v), DY: matrixIf(plan, train, "dy", rows, p.Out()),
	}
	h.Dense = newDense(plan, rows)
	if plan.uneven != nil && !p.Weighted {
		plan.uneven.weight = plan.Matrix("share", rows, 1)
	}
	return h
}

// Loss is the operation that turns the logits in Head.Prob at steps [t, t+n)
// into losses and probabilities or, where training, gradients.
func (p *Plan) Loss(t, n int) schedule.SoftmaxLoss {
	h := p.Head
	op := schedule.SoftmaxLoss{
		Logits: p.Rows(h.Prob, t, n), Prob: p.Rows(h.Prob, t, n),
		Target: p.Rows(h.Target, t, n), Loss: p.Rows(h.Loss, t, n),
		Grad: p.Pass == Train, Groups: p.Groups, Scale: float32(1 / float64(p.Steps*p.Batch)),
	}
	if h.Weight != nil {
		op.Weight, op.Scale = p.Rows(h.Weight, t, n), 1
	} else if p.uneven != nil {
		op.Weight, op.Scale = p.Rows(p.uneven.weight, t, n), 1
	}
	return op
}

// Step is the fused cell of layer l at step t. x holds the products of its input, B × G·H, and r
// those of its state, B × recurrent gates·H or empty.
func (p *Plan) Step(l, t int, x, r schedule.View) schedule.Cell {
	y := p.Layer[l]
	c := schedule.Cell{
		Cell: p.Cell, Train: p.Pass == Train, X: x, R: r, BX: y.BX.All(), BR: Maybe(y.BR),
		Peep: Maybe(y.Peep), Prev: p.Before(l, t), Next: p.After(l, t), Keep: Keeping(p, t, 1),
	}
	if y.Saved != nil {
		c.Saved = p.Rows(y.Saved, t, 1)
	}
	return c
}

// StepBack is the gradient of Step. above is the gradient of the layer's output
// at t; it writes dx and, where the cell splits its gradients, dr, and adds to
// dpeep, B × peepholes·H.
func (p *Plan) StepBack(l, t int, above, dx, dr, dpeep schedule.View) schedule.CellBackward {
	all, direct := p.Carry(l, t)
	c := schedule.CellBackward{
		Cell: p.Cell, DOut: above, DNext: all, DPrev: direct, Peep: Maybe(p.Layer[l].Peep),
		Prev: p.Before(l, t), Next: p.After(l, t), DX: dx, DPeep: p.Batches.Last(dpeep, t),
		Keep: Keeping(p, t, 2),
	}
	if p.Cell.SplitGrad {
		c.DR = dr
	}
	if s := p.Layer[l].Saved; s != nil {
		c.Saved = p.Rows(s, t, 1)
	}
	return c
}

// Sequence describes steps [t, t+n) of layer l, which must be a run, for one operation. x holds the
// products of their inputs, n·B × G·H.
func (p *Plan) Sequence(l, t, n int, x schedule.View) schedule.Sequence {
	y := p.Layer[l]
	s := schedule.Sequence{
		Cell: p.Cell, Train: p.Pass == Train, Steps: n, X: x,
		BX: y.BX.All(), BR: Maybe(y.BR), Peep: Maybe(y.Peep), Keep: Keeping(p, t, n+1),
	}
	for _, m := range y.State {
		s.State = append(s.State, p.stateBefore(m, t, n+1))
	}
	if y.Saved != nil {
		s.Saved = p.Rows(y.Saved, t, n)
	}
	return s
}

// SequenceBack describes the gradients of a Sequence that begins at step t. above is the gradient
// of the layer's outputs at those steps. The operation writes the gradients of the products to dx
// and dr, and adds those of the peepholes to dpeep.
func (p *Plan) SequenceBack(l, t int, above, dx, dr, dpeep schedule.View) schedule.SequenceGrad {
	carry, _ := p.Carry(l, t)
	g := schedule.SequenceGrad{DOut: above, Carry: carry, DX: dx, DPeep: p.Batches.Last(dpeep, t)}
	if p.Cell.SplitGrad {
		g.DR = dr
	}
	return g
}
