package equations

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"rnnbench/rnn/cell"
)

// check compares a cell's programs with its equations, over a few steps of one unit with random inputs:
// the states of the programs with those of the equations, and the gradient of the outputs with central
// differences. It returns an error if they differ.
//
// A state may be fixed only if the output does not depend on it. Then the gradient, which holds it
// fixed, is still right.
func check(d *definition, c *cell.Cell) error {
	for seed := range uint64(trials) {
		u := draw(c, rand.New(rand.NewPCG(seed, 4)))
		u.run()
		for t, states := range u.states[1:] {
			for s, want := range states {
				if got := u.programs[t][s]; !near(got, want, 1e-9, 1) {
					return fmt.Errorf("internal error: the program computes %v for state %s, and the equations say %v; please report the file", got, c.States[s], want)
				}
			}
		}
		if at, got, want := u.differs(); at != "" {
			var fixed []string
			for _, s := range c.Fixed {
				fixed = append(fixed, c.States[s])
			}
			if len(fixed) > 0 {
				return fmt.Errorf("%s is declared fixed, but the output depends on it: the gradient of %s would be %.6g, and is %.6g", fixed[0], at, got, want)
			}
			return fmt.Errorf("internal error: the derived gradient of %s is %v, and differences of the equations say %v; please report the file", at, got, want)
		}
	}
	return nil
}

const (
	trials = 4 // of random inputs
	length = 3 // steps of each
)

// huge is what differences say nothing about: values above it, as of a cell that explodes.
const huge = 1e6

// near reports whether got is want within a share of want or of scale. Huge values and those that are
// not finite are near anything: there is nothing to compare.
func near(got, want, share, scale float64) bool {
	if !(math.Abs(want) < huge && math.Abs(got) < huge) {
		return true
	}
	return math.Abs(got-want) <= share*max(scale, math.Abs(want))
}

// A run is a unit over a few steps: its inputs by step, and what is computed from them.
type run struct {
	cell     *cell.Cell
	x, r     [][]float64 // by step, with biases
	weights  []float64
	first    []float64   // states before the first step
	dout     []float64   // by step, the gradient of the output
	dinner   []float64   // by step, that of the inner value by its product
	states   [][]float64 // before the first step and after each, by the equations
	programs [][]float64 // after each step, by the program
	values   []map[cell.Ref]*float64
}

func draw(c *cell.Cell, rng *rand.Rand) *run {
	u := &run{cell: c}
	some := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = 2*rng.Float64() - 1
		}
		return v
	}
	for range length {
		u.x, u.r = append(u.x, some(len(c.Gates))), append(u.r, some(c.Recurrent))
	}
	u.weights, u.first, u.dout, u.dinner = some(len(c.Peeps)), some(len(c.States)), some(length), some(length)
	for s := range u.first {
		u.first[s] = c.Start(s, u.first[s])
	}
	return u
}

// loss runs the equations and weighs their outputs and inner values. size is that of the sum's terms.
func (u *run) loss() (sum, size float64) {
	u.states = [][]float64{u.first}
	for t := range length {
		next := make([]float64, len(u.first))
		u.cell.Equations(u.x[t], u.r[t], u.weights, u.states[t], next)
		u.states = append(u.states, next)
		sum += u.dout[t] * next[0]
		size += math.Abs(u.dout[t] * next[0])
		if u.cell.Value != nil {
			v := u.dinner[t] * u.cell.Value(u.x[t], u.r[t], u.weights, u.states[t])
			sum, size = sum+v, size+math.Abs(v)
		}
	}
	return sum, size
}

// run runs the equations and the forward program.
func (u *run) run() {
	u.loss()
	u.values, u.programs = nil, nil
	before := u.first
	for t := range length {
		v := map[cell.Ref]*float64{}
		set := func(k cell.Kind, values []float64) {
			for i := range values {
				x := values[i]
				v[cell.Ref{Kind: k, Index: i}] = &x
			}
		}
		set(cell.X, u.x[t])
		set(cell.R, u.r[t])
		set(cell.Peep, u.weights)
		set(cell.Prev, before)
		set(cell.DOut, u.dout[t:t+1])
		set(cell.DInner, u.dinner[t:t+1])
		u.values = append(u.values, v)
		u.cell.Forward.Eval(u.at(t))
		after := make([]float64, len(before))
		for s := range after {
			after[s] = *u.at(t)(cell.Ref{Kind: cell.Next, Index: s})
		}
		u.programs = append(u.programs, after)
		before = after
	}
}

// at is where the programs of step t find a value. Biases are 0.
func (u *run) at(t int) func(cell.Ref) *float64 {
	v := u.values[t]
	return func(r cell.Ref) *float64 {
		if v[r] == nil {
			v[r] = new(float64)
		}
		return v[r]
	}
}

// differs compares gradients after run. It returns the first input whose gradient differs; "": none.
func (u *run) differs() (at string, got, want float64) {
	c := u.cell
	carry := make([]float64, len(c.States))
	for t := length - 1; t >= 0; t-- {
		value := u.at(t)
		for s, g := range carry {
			*value(cell.Ref{Kind: cell.DNext, Index: s}) = g
		}
		for k := range c.Peeps {
			if t < length-1 {
				*value(cell.Ref{Kind: cell.DPeep, Index: k}) = *u.at(t + 1)(cell.Ref{Kind: cell.DPeep, Index: k})
			}
		}
		c.Backward.Eval(value)
		for s := range carry {
			carry[s] = *value(cell.Ref{Kind: cell.DPrev, Index: s})
		}
	}
	look := func(what string, of *float64, gradient float64) {
		if at != "" {
			return
		}
		for _, step := range []float64{1e-5, 1e-7} { // a kink may lie within the longer one
			slope, noise := u.slope(of, step)
			if want = slope; near(gradient, want, 1e-4, 1e-2) || math.Abs(gradient-want) <= noise {
				return
			}
		}
		at, got = what, gradient
	}
	for t := range length {
		for g, name := range c.Gates {
			look("gate "+name, &u.x[t][g], *u.at(t)(cell.Ref{Kind: cell.DX, Index: g}))
			if g < c.Recurrent {
				kind := cell.DX
				if c.SplitGrad {
					kind = cell.DR
				}
				look("the recurrent product of gate "+name, &u.r[t][g], *u.at(t)(cell.Ref{Kind: kind, Index: g}))
			}
		}
	}
	for k, name := range c.Peeps {
		look("weight "+name, &u.weights[k], *u.at(0)(cell.Ref{Kind: cell.DPeep, Index: k}))
	}
	for s, name := range c.States {
		if !slices.Contains(c.Fixed, s) {
			look("state "+name, &u.first[s], carry[s])
		}
	}
	return at, got, want
}

// slope is the derivative of the loss by one value, by a central difference, and what rounding may add
// to it.
func (u *run) slope(of *float64, step float64) (slope, noise float64) {
	was := *of
	*of = was + step
	up, size := u.loss()
	*of = was - step
	down, _ := u.loss()
	*of = was
	return (up - down) / (2 * step), 1e-14 * size / step
}
