package cell

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// A network of one unit, whose inner gates have these weights.
func weight(c *Cell, g int) float64 { return 0.7 - 0.4*float64(g-c.Recurrent+c.Inner) }

// runInner runs a forward program of such a network.
func runInner(c *Cell, p Program, u unit) {
	first, _ := c.ForwardParts(p)
	first.Eval(u.at)
	products(c, u, *u.at(Ref{Inner, 0}))
	p.Eval(u.at)
}

func products(c *Cell, u unit, v float64) {
	for g := c.Recurrent - c.Inner; g < c.Recurrent; g++ {
		*u.at(Ref{R, g}) = weight(c, g) * v
	}
}

// innerEquations runs the equations of such a network.
func innerEquations(c *Cell, u unit) []float64 {
	var value float64
	d := *c
	d.Equations = func(x, r, peep, prev, _ []float64) { value = c.Value(x, r, peep, prev) }
	for g := c.Recurrent - c.Inner; g < c.Recurrent; g++ {
		*u.at(Ref{R, g}) = math.NaN()
	}
	equations(&d, u)
	products(c, u, value)
	return equations(c, u)
}

func TestInnerProgramsFollowEquations(t *testing.T) {
	for _, c := range append(Inners(), lstmNorm) {
		for seed := range uint64(50) {
			u := random(c, rand.New(rand.NewPCG(seed, 1)))
			want := innerEquations(c, u)
			for _, p := range []Program{c.Inference, c.Forward} {
				runInner(c, p, u)
				for s, w := range want {
					if got := *u.at(Ref{Next, s}); !(math.Abs(got-w) <= 1e-14) {
						t.Fatalf("%v: state %s is %v, want %v", c, c.States[s], got, w)
					}
				}
			}
		}
	}
}

// TestInnerBackwardIsTheGradient compares the backward program, with the product between its parts,
// with central differences of the equations.
func TestInnerBackwardIsTheGradient(t *testing.T) {
	const step = 1e-6
	for _, c := range append(Inners(), lstmNorm) {
		for seed := range uint64(50) {
			u := random(c, rand.New(rand.NewPCG(seed, 2)))
			loss := func() float64 {
				next := innerEquations(c, u)
				sum := *u.at(Ref{DOut, 0}) * next[0]
				for s, v := range next {
					sum += *u.at(Ref{DNext, s}) * v
				}
				return sum
			}
			runInner(c, c.Forward, u)
			kind := DX
			if c.SplitGrad {
				kind = DR
			}
			first, second := c.BackwardParts()
			first.Eval(u.at)
			for g := c.Recurrent - c.Inner; g < c.Recurrent; g++ {
				*u.at(Ref{DInner, 0}) += weight(c, g) * *u.at(Ref{kind, g})
			}
			second.Eval(u.at)
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
				if got := *u.at(gradient); !(math.Abs(got-want) <= 1e-8) {
					t.Fatalf("%v: seed %d: %v is %v, want %v", c, seed, gradient, got, want)
				}
			}
			for g := range c.Gates {
				check(Ref{X, g}, Ref{DX, g})
				check(Ref{BX, g}, Ref{DX, g})
				if g < c.Recurrent {
					check(Ref{BR, g}, Ref{kind, g})
				}
			}
			for k := range c.Peeps {
				check(Ref{Peep, k}, Ref{DPeep, k})
			}
			for s := range c.States {
				check(Ref{Prev, s}, Ref{DPrev, s})
			}
		}
	}
}

// TestHalves runs the two halves as devices do, and compares all they write with the whole.
func TestHalves(t *testing.T) {
	for _, c := range append(Inners(), lstmNorm) {
		u := random(c, rand.New(rand.NewPCG(1, 3)))
		innerEquations(c, u)
		runInner(c, c.Forward, u)
		n, own := len(c.States), c.First.Saved
		first := func(r Ref) *float64 {
			switch {
			case r.Kind == Next && r.Index >= n:
				return u.at(Ref{Saved, own + r.Index - n})
			case r.Kind == Next:
				return u.at(Ref{Inner, 0})
			}
			return u.at(r)
		}
		second := func(r Ref) *float64 {
			switch {
			case r.Kind == Prev && r.Index >= n:
				return u.at(Ref{Saved, own + r.Index - n})
			case r.Kind == Saved:
				return u.at(Ref{Saved, own + c.Passed() + r.Index})
			}
			return u.at(r)
		}
		whole := map[Ref]float64{}
		for r, v := range u {
			if whole[r] = *v; r.Kind == Next || r.Kind == Saved || r.Kind == Inner {
				*v = math.NaN()
			}
		}
		c.First.Forward.Eval(first)
		c.Second.Forward.Eval(second)
		for r, v := range u {
			if r.Kind != Temp && *v != whole[r] {
				t.Errorf("%v: %v is %v, and %v in the whole", c, r, *v, whole[r])
			}
		}
		for s := range n {
			if c.First.Uses(Ref{Next, s}) && s > 0 {
				t.Errorf("%v: the first half uses state %s after the step", c, c.States[s])
			}
		}
	}
}

// TestFewArePassed: a value that is used once only stays in one half.
func TestFewArePassed(t *testing.T) {
	for i, want := range []int{3, 0} {
		if c := Inners()[i]; c.Passed() != want {
			t.Errorf("%v passes %d values, want %d", c, c.Passed(), want)
		}
	}
}

// TestNotDivided: a program that cannot be cut is refused.
func TestNotDivided(t *testing.T) {
	for want, forward := range map[string]func(b *builder){
		"needs as many": func(b *builder) { b.next(0, b.gate(0)) },
		"its own product": func(b *builder) {
			b.inner(b.mul(b.gate(1), Ref{Prev, 0}))
			b.next(0, b.gate(0))
		},
		"both before and after": func(b *builder) {
			b.inner(b.mul(b.gate(0), Ref{Prev, 0}))
			b.next(0, b.add(b.gate(1), b.gate(0)))
		},
	} {
		func() {
			defer func() {
				if err, _ := recover().(string); !strings.Contains(err, want) {
					t.Errorf("%q, want %q", err, want)
				}
			}()
			define(Cell{Name: "c", Gates: []string{"a", "b"}, Recurrent: 2, Inner: 1, States: []string{"h"}}, forward)
		}()
	}
}
