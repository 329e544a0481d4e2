package cell

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// unit holds every vector of one unit.
type unit map[Ref]*float64

func (u unit) at(r Ref) *float64 {
	if u[r] == nil {
		u[r] = new(float64)
	}
	return u[r]
}

// random returns a unit with everything that a step reads.
func random(c *Cell, rng *rand.Rand) unit {
	u := unit{}
	for g := range max(len(c.Gates), c.Recurrent) {
		for _, k := range []Kind{X, R, BX, BR} {
			*u.at(Ref{k, g}) = 2*rng.Float64() - 1
		}
	}
	for k := range c.Peeps {
		*u.at(Ref{Peep, k}) = 2*rng.Float64() - 1
	}
	for s := range c.States {
		*u.at(Ref{Prev, s}) = c.Start(s, 2*rng.Float64()-1)
		*u.at(Ref{DNext, s}) = 2*rng.Float64() - 1
	}
	*u.at(Ref{DOut, 0}) = 2*rng.Float64() - 1
	return u
}

// equations runs c's equations on u and returns the next states.
func equations(c *Cell, u unit) []float64 {
	var x, r, peep, prev []float64
	for g := range c.Gates {
		x = append(x, *u.at(Ref{X, g})+*u.at(Ref{BX, g}))
	}
	for g := range c.Recurrent {
		r = append(r, *u.at(Ref{R, g})+*u.at(Ref{BR, g}))
	}
	for k := range c.Peeps {
		peep = append(peep, *u.at(Ref{Peep, k}))
	}
	for s := range c.States {
		prev = append(prev, *u.at(Ref{Prev, s}))
	}
	next := make([]float64, len(c.States))
	c.Equations(x, r, peep, prev, next)
	return next
}

func TestProgramsFollowEquations(t *testing.T) {
	for _, c := range All() {
		for seed := range uint64(50) {
			u := random(c, rand.New(rand.NewPCG(seed, 1)))
			want := equations(c, u)
			for _, p := range []Program{c.Inference, c.Forward} {
				p.Eval(u.at)
				for s, w := range want {
					if got := *u.at(Ref{Next, s}); math.Abs(got-w) > 1e-14 {
						t.Fatalf("%v: state %s is %v, want %v", c, c.States[s], got, w)
					}
				}
			}
		}
	}
}

// TestBackwardIsTheGradient compares the derived backward program with central
// differences of the equations.
func TestBackwardIsTheGradient(t *testing.T) {
	const step = 1e-6
	for _, c := range All() {
		for seed := range uint64(50) {
			u := random(c, rand.New(rand.NewPCG(seed, 2)))
			loss := func() float64 {
				next := equations(c, u)
				sum := *u.at(Ref{DOut, 0}) * next[0]
				for s, v := range next {
					sum += *u.at(Ref{DNext, s}) * v
				}
				return sum
			}
			c.Forward.Eval(u.at)
			settle(c, u)
			c.Backward.Eval(u.at)
			check := func(of, gradient Ref) {
				t.Helper()
				v := u.at(of)
				saved := *v
				*v = saved + step
				up := loss()
				*v = saved - step
				down := loss()
				*v = saved
				want := (up - down) / (2 * step)
				if got := *u.at(gradient); math.Abs(got-want) > 1e-8 {
					t.Fatalf("%v: seed %d: %v is %v, want %v", c, seed, gradient, got, want)
				}
			}
			for g := range c.Gates {
				check(Ref{X, g}, Ref{DX, g})
				check(Ref{BX, g}, Ref{DX, g})
				if g >= c.Recurrent {
					continue
				}
				if c.SplitGrad {
					check(Ref{R, g}, Ref{DR, g})
				} else {
					check(Ref{R, g}, Ref{DX, g})
				}
			}
			for k := range c.Peeps {
				check(Ref{Peep, k}, Ref{DPeep, k})
			}
			for s := range c.States {
				if c.DirectPrev(s) {
					check(Ref{Prev, s}, Ref{DPrev, s})
				}
			}
		}
	}
}

// settle sets the gradient of the next states that c's gradient holds fixed to what it is in every
// network. sLSTM's c and n are divided by exp(m), so the output does not change if m grows while c and
// n shrink: the gradient of m is that of c times c and that of n times n.
func settle(c *Cell, u unit) {
	for _, fixed := range c.Fixed {
		sum := 0.0
		for s := 1; s < len(c.States); s++ {
			if s != fixed {
				sum += *u.at(Ref{DNext, s}) * *u.at(Ref{Next, s})
			}
		}
		*u.at(Ref{DNext, fixed}) = sum
	}
}

// TestStatesMayShareGradients checks what lets a device keep the gradient of a
// state in one place for all steps: nothing reads DNext once DPrev is written.
func TestStatesMayShareGradients(t *testing.T) {
	crossed := define(Cell{ // each state takes the other's place
		Name: "crossed", Gates: []string{"x"}, States: []string{"h", "c"},
	}, func(b *builder) {
		b.next(1, b.add(b.input(0), Ref{Prev, 0}))
		b.next(0, b.do(Copy, Ref{Prev, 1}))
	})
	cells := []*Cell{crossed}
	for _, c := range append(All(), Inners()...) {
		cells = append(cells, slices.DeleteFunc([]*Cell{c, c.First, c.Second}, func(c *Cell) bool { return c == nil || c.Inner > 0 })...)
	}
	for _, c := range cells {
		written := map[int]bool{}
		for _, in := range c.Backward {
			for _, a := range in.Args() {
				if a.Kind == DNext && written[a.Index] {
					t.Errorf("%v: %v reads after dprev%d is written", c, in, a.Index)
				}
			}
			if in.Out.Kind == DPrev {
				written[in.Out.Index] = true
			}
		}
	}
}

func TestTemporariesAreFew(t *testing.T) {
	for _, c := range All() {
		for _, p := range []Program{c.Inference, c.Forward, c.Backward} {
			live := map[Ref]bool{}
			for _, in := range p {
				for _, a := range in.Args() {
					if a.Kind == Temp && !live[a] {
						t.Fatalf("%v: %v reads what nothing wrote", c, in)
					}
				}
				live[in.Out] = true
			}
			if n := p.Temps(); n > 8 {
				t.Errorf("%v: %d temporaries", c, n)
			}
		}
	}
}

func ExampleProgram() {
	for _, in := range GRU.Inference {
		fmt.Println(in)
	}
	// Output:
	// t0 = add x0 bx0
	// t1 = add r0 br0
	// t1 = add t0 t1
	// t1 = sigmoid t1
	// t0 = add x1 bx1
	// t2 = add r1 br1
	// t2 = add t0 t2
	// t2 = sigmoid t2
	// t0 = add r2 br2
	// t3 = add x2 bx2
	// t0 = mul t1 t0
	// t0 = add t3 t0
	// t0 = tanh t0
	// t3 = oneminus t2
	// t0 = mul t3 t0
	// t2 = mul t2 prev0
	// next0 = add t0 t2
}

// TestStart: states that others are divided by begin at 1/2 or more, and all others as drawn.
func TestStart(t *testing.T) {
	positive := 0
	for _, c := range All() {
		for s := range c.States {
			for _, x := range []float64{-0.5, -0.01, 0, 0.01, 0.5} {
				want := x
				if slices.Contains(c.Positive, s) {
					want = 0.5 + math.Abs(x)
					positive++
				}
				if got := c.Start(s, x); got != want {
					t.Errorf("%v: state %s begins at %v for a draw of %v, want %v", c, c.States[s], got, x, want)
				}
			}
		}
	}
	if positive == 0 {
		t.Error("no cell divides by a state")
	}
}
