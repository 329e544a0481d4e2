// Package cell defines the point-wise operations of each recurrent cell.
//
// A recurrent layer is two matrix products and a cell. The products are the
// same for every kind of network; its Cell makes an LSTM an LSTM. A file writes
// its cell twice. The equations on scalars in double precision are the reference.
// The program of point-wise operations on vectors is what devices run, fused or
// one by one. The backward pass is derived from the program and checked against
// the equations by finite differences.
//
// The package knows no sizes, no time and no device.
package cell

import (
	"math"
	"slices"
	"sync"
)

// A Cell is one kind of recurrent unit.
type Cell struct {
	Name  string
	Doc   string   // one line: the equations and where they come from
	Text  string   // of the file of equations that defines it; "": it is built in
	Gates []string // names of the pre-activations, in the order of the rows of W
	// Window is the number of input steps that each gate reads: the present one and those before
	// it, as in a convolution over time. 1 unless stated.
	Window int
	// Recurrent is the number of gates, the first ones, that also have a recurrent product, for
	// which R has rows. 0: there is no R, and steps are tied by states alone, linearly or not.
	Recurrent int
	// Through is the state that the recurrent product multiplies.
	Through int
	// Inner is the number of inner gates, the last ones of the Recurrent. Their recurrent product
	// multiplies a value that the step computes, in place of a state: R·(r∘h). It is one value for all
	// of them. The forward program writes it to Ref{Inner, 0} before it reads R of these gates.
	Inner int
	// Normalised reports that inner gates have no rows in W and R: what stands for their recurrent
	// product is the inner value, normalised over the units of the layer.
	Normalised bool
	// States names the vectors carried from step to step. State 0 is the output.
	States []string
	// Positive lists states that others are divided by. They begin above 0.
	Positive []int
	// Fixed lists states that scale others and that the output does not depend on. The gradient
	// treats their new values as constants.
	Fixed []int
	Peeps []string // names of the per-unit weights
	Saved int      // vectors per unit that the forward pass keeps for the backward pass

	// Equations advance one unit by one step. x and r hold, gate by gate, the
	// input and the recurrent pre-activations with their biases; peep holds
	// the peephole weights and prev and next the states.
	Equations func(x, r, peep, prev, next []float64)
	// Value is the equation of the inner value. Of r, it must not read inner gates, which depend on it.
	Value func(x, r, peep, prev []float64) float64

	Inference Program // the forward pass, keeping nothing
	Forward   Program // the forward pass for training
	Backward  Program // the gradient of Forward; see gradient

	// Recurrence is the cell's linear recurrence; nil: steps do not compose.
	Recurrence *Recurrence

	// Serial is the recurrence of a cell without recurrent products, linear or not, whose steps run
	// one after another; nil: the cell has some. Where Recurrence is set too, it is the same.
	Serial *Recurrence

	// Scanned is what a scan runs in place of a cell with peepholes, else nil. Its backward pass
	// writes the peepholes' gradients for each step, so that time can be cut; they are summed
	// later.
	Scanned *Cell

	// Surrogate and Core are the parts of a linear surrogate cell (Martin and Cundy 2017, section
	// 3.2), else nil. Surrogate computes the state that the recurrent product multiplies, and needs
	// no product. Core computes the other states, once Surrogate has run for all steps. Core's
	// gates come first, and so do the values that Surrogate saves. The parts have programs and no
	// Equations.
	Surrogate, Core *Cell

	// Newton is how steps that do not compose run in parallel nonetheless, else nil: see newton.go.
	Newton *Newton

	// First and Second are the halves of a step with inner gates, else nil: see inner.go. They have
	// programs and no Equations.
	First, Second *Cell

	Half bool // it is the half of a step: see First

	sums    bool  // DPeep is a sum over the steps done so far; see Scanned
	guesses bool  // DX has no gradients of peepholes; see Newton.StepBack
	whole   int   // in the first half, the number of states of the whole
	carried []int // in the first half, the states whose gradients the second half has begun

	// SplitGrad reports that the two products of a gate have gradients of their own (DX and DR), as
	// where a gate multiplies a recurrent product. Otherwise the gradients of the recurrent
	// products are the first of DX.
	SplitGrad bool
}

func (c *Cell) String() string { return c.Name }

// DirectPrev reports whether the gradient of state s before a step has a part
// that does not pass through the recurrent product.
func (c *Cell) DirectPrev(s int) bool { return c.Backward.Writes(Ref{DPrev, s}) }

// Gradients is the number of vectors DX: one for each gate and, in another cell's Scanned, one for
// each peephole.
func (c *Cell) Gradients() int {
	if c.sums || c.guesses {
		return len(c.Gates)
	}
	return len(c.Gates) + len(c.Peeps)
}

// SumsPeeps reports whether the gradients of peepholes are summed over the steps, in DPeep.
func (c *Cell) SumsPeeps() bool { return c.sums && len(c.Peeps) > 0 }

// Multipliers lists the per-unit weights that multiply a state, or a value that depends on one.
func (c *Cell) Multipliers() (list []int) {
	for k := range c.Peeps {
		if c.multiplier(k) {
			list = append(list, k)
		}
	}
	return list
}

// multiplier reports whether a product has per-unit weight k as one factor, and a state or what depends
// on one as the other.
func (c *Cell) multiplier(k int) bool {
	weights, states := map[Ref]bool{{Peep, k}: true}, map[Ref]bool{} // the weight and its multiples, and values that depend on states
	for s := range c.States {
		states[Ref{Prev, s}] = true
	}
	for _, in := range c.Inference {
		args := in.Args()
		isIn := func(set map[Ref]bool) bool { return slices.ContainsFunc(args, func(r Ref) bool { return set[r] }) }
		weight, state := isIn(weights), isIn(states)
		if in.Op == Mul && weight && state {
			return true
		}
		weights[in.Out] = weight && (in.Op == Mul || in.Op == Copy || in.Op == Neg)
		states[in.Out] = state
	}
	return false
}

// RecallsState reports whether the gradient of a step reads state s before or after it.
func (c *Cell) RecallsState(s int) bool {
	return slices.ContainsFunc(c.Backward, func(in Instr) bool {
		return slices.ContainsFunc(in.Args(), func(r Ref) bool { return (r.Kind == Prev || r.Kind == Next) && r.Index == s })
	})
}

// Start turns x, a draw, into a first value of state s: not near 0 where the state is Positive.
func (c *Cell) Start(s int, x float64) float64 {
	if slices.Contains(c.Positive, s) {
		return 0.5 + math.Abs(x)
	}
	return x
}

// Projects reports whether a layer of c can have a projection. Then only the recurrent product
// reads state 0 at the next step, and the other states carry on.
func (c *Cell) Projects() bool {
	reads := slices.ContainsFunc(c.Forward, func(in Instr) bool { return slices.Contains(in.Args(), Ref{Prev, 0}) })
	return c.Recurrent > 0 && c.Inner == 0 && c.Through == 0 && len(c.States) > 1 && !reads && !c.RecallsState(0) && !c.DirectPrev(0)
}

// Kinked reports whether c's gradient jumps somewhere, so that two answers that
// differ by rounding can have different gradients and both be right.
func (c *Cell) Kinked() bool {
	gradients := map[Ref]bool{} // temporaries that depend on one; others are values of the forward pass, computed again
	for _, in := range c.Backward {
		gradient := slices.ContainsFunc(in.Args(), func(a Ref) bool { return a.Kind >= DOut && a.Kind <= DPeep || a.Kind >= DInner || gradients[a] })
		if in.Op == ReLUGrad && gradient {
			return true
		}
		gradients[in.Out] = gradient
	}
	return false
}

// BuiltIn lists the cells that the program brings along, in the order of tables and legends. To add
// one, write its file and add its line here.
func BuiltIn() []*Cell {
	return []*Cell{RNNTanh, RNNReLU, GRU, LSTM, LSTMPeephole, LSTMC, GILR, SRU, QRNN, QRNN2, LSLSTM, MinGRU, RGLRU, SLSTM}
}

// All lists every cell: those that are built in, and then those that were registered.
func All() []*Cell {
	registered.Lock()
	defer registered.Unlock()
	return append(BuiltIn(), registered.cells...)
}

var registered struct {
	sync.Mutex
	cells []*Cell
}

// Register makes All, Lookup and Every know c. It returns the cell that has c's name already, if there
// is one, so that a cell of one name is one cell.
func Register(c *Cell) *Cell {
	if known := Lookup(c.Name); known != nil {
		return known
	}
	registered.Lock()
	defer registered.Unlock()
	registered.cells = append(registered.cells, c)
	return c
}

// New completes c from its forward program, which names each value once and keeps none.
func New(c Cell, forward Program) *Cell {
	return define(c, func(b *builder) { b.p = forward })
}

// Lookup returns the cell of that name, or nil.
func Lookup(name string) *Cell {
	all := All()
	if i := slices.IndexFunc(all, func(c *Cell) bool { return c.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Every lists the cells that schedules can hold: all cells, their parts, and the bare recurrence.
func Every() []*Cell {
	every := []*Cell{Linear}
	for _, c := range All() {
		if every = append(every, c); c.Surrogate != nil {
			every = append(every, c.Surrogate, c.Core)
		}
		if c.Scanned != nil {
			every = append(every, c.Scanned)
		}
		if c.Newton != nil {
			every = append(every, c.Newton.parts()...)
		}
		for _, whole := range slices.Compact([]*Cell{c, c.Norm()}) {
			if whole != nil && whole.First != nil {
				every = append(every, whole.First, whole.Second)
			}
		}
	}
	return every
}

// define completes c from its forward program.
func define(c Cell, forward func(b *builder)) *Cell {
	c.sums = true
	return complete(c, forward)
}

func complete(c Cell, forward func(b *builder)) *Cell {
	var b builder
	forward(&b)
	c.Window = max(1, c.Window)
	p, kept := keep(b.p, &c)
	if c.Inner > 0 {
		completeInner(&c, p)
		return &c
	}
	c.Saved = kept
	c.derive(p)
	inPlace := inPlace(&c)
	c.Recurrence = composed(&c, inPlace)
	if c.Recurrent == 0 {
		c.Serial = inPlace
	}
	c.Surrogate, c.Core = split(&c, b.p)
	if c.sums {
		c.Scanned = scanned(&c, b.p)
		c.Newton = newton(&c, b.p)
	}
	return &c
}

// derive sets the programs of c, given its forward program.
func (c *Cell) derive(p Program) {
	c.Forward, c.Inference = p.compact(), p.inference().compact()
	backward, splitGrad := gradient(p, c)
	c.Backward, c.SplitGrad = backward.compact(), splitGrad
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
func tanh(x float64) float64    { return math.Tanh(x) }
func relu(x float64) float64    { return max(x, 0) }

// softplus is log(1 + e^x), without overflow.
func softplus(x float64) float64 { return relu(x) + math.Log1p(math.Exp(-math.Abs(x))) }
