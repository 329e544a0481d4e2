package equations

import (
	"math"
	"testing"

	"rnnbench/rnn/cell"
)

// TestRootsBelowZero: a root is 0 below 0, and so is its gradient, also where no random input of the check comes.
func TestRootsBelowZero(t *testing.T) {
	for _, text := range []string{
		"gate n = sqrt(W x + R h + 3 + b)\nh' = tanh(n)",
		"gate n = tanh(W x + R h + b)\nh' = tanh(n + sqrt(h))", // h is below 0 in the check, too
	} {
		c, err := Parse("root.cell", "root", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, at := range []float64{-5, -1e-3} {
			values := map[cell.Ref]*float64{}
			value := func(r cell.Ref) *float64 {
				if values[r] == nil {
					values[r] = new(float64)
				}
				return values[r]
			}
			*value(cell.Ref{Kind: cell.X}), *value(cell.Ref{Kind: cell.Prev}), *value(cell.Ref{Kind: cell.DOut}) = at-3, at, 1
			c.Forward.Eval(value)
			c.Backward.Eval(value)
			for _, r := range []cell.Ref{{Kind: cell.DX}, {Kind: cell.DPrev}} {
				if g := *value(r); math.Abs(g) > 1 {
					t.Errorf("%s: with the root of %v, %v is %v", text, at, r, g)
				}
			}
		}
	}
}

// TestBounds: a root of what cannot be below 0 takes one operation, and any other two.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		under string
		takes bool
	}{
		{"1 - n * n", false}, {"sigmoid(n)", false}, {"abs(n)", false}, {"abs(n) - 1", true}, {"2 - exp(-softplus(h))", false},
		{"n", true}, {"h", true}, {"h * h", true}, {"1 - 2 * n * n", true}, {"max(n, 0.5)", false}, {"min(n, 0.5)", true},
		{"min(softplus(n), 0.5)", false}, {"1 / (1 + exp(h))", false}, {"n / 3 + 0.5", false}, {"n / -3 + 0.25", true},
		{"softplus(h) - softplus(n)", true}, {"exp(h) * sigmoid(h)", false}, {"3 * n + 4", false}, {"sqrt(h) - 0.1", true}, {"-n", true},
	} {
		rectifiers := func(function string) (n int) {
			made, err := Parse("b.cell", "b", "gate n = tanh(W x + R h + b)\nt = "+function+"("+c.under+")\nh' = tanh(t + n + h)")
			if err != nil {
				t.Errorf("%s(%s): %v", function, c.under, err)
				return 0
			}
			for _, in := range made.Inference {
				if in.Op == cell.ReLU {
					n++
				}
			}
			return n
		}
		takes := rectifiers("sqrt") > rectifiers("tanh")
		if takes != c.takes {
			t.Errorf("sqrt(%s) has an operation more: %v", c.under, takes)
		}
	}
}
