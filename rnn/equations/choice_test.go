package equations

import (
	"math"
	"testing"

	"rnnbench/rnn/cell"
)

// TestChoices: min and max have the value of one operand, whatever the other is, and the whole gradient goes to that
// operand. Where the operands are equal it is the first.
func TestChoices(t *testing.T) {
	c, err := Parse("choices.cell", "choices", "state h, c\nweight u\ngate z = W x + b\nh' = min(z, u)\nc' = max(z, u)")
	if err != nil {
		t.Fatal(err)
	}
	inf := math.Inf(1)
	numbers := []float64{0, 1, math.Nextafter(1, 2), -1, 1e30, -1e30, 1e300, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, inf, -inf, math.NaN()}
	for _, a := range numbers {
		for _, b := range numbers {
			least, most := a, a
			var ofLeast, ofMost [2]float64 // gradients of a and b
			ofLeast[0], ofMost[0] = 3, 5
			if b < a {
				least, ofLeast = b, [2]float64{0, 3}
			}
			if b > a {
				most, ofMost = b, [2]float64{0, 5}
			}
			values := map[cell.Ref]*float64{}
			value := func(r cell.Ref) *float64 {
				if values[r] == nil {
					values[r] = new(float64)
				}
				return values[r]
			}
			*value(cell.Ref{Kind: cell.X}), *value(cell.Ref{Kind: cell.Peep}) = a, b
			*value(cell.Ref{Kind: cell.DOut}), *value(cell.Ref{Kind: cell.DNext, Index: 1}) = 3, 5
			c.Forward.Eval(value)
			c.Backward.Eval(value)
			equations := make([]float64, 2)
			c.Equations([]float64{a}, nil, []float64{b}, []float64{0, 0}, equations)
			for _, got := range [][2]float64{
				{*value(cell.Ref{Kind: cell.Next}), least}, {*value(cell.Ref{Kind: cell.Next, Index: 1}), most},
				{*value(cell.Ref{Kind: cell.DX}), ofLeast[0] + ofMost[0]}, {*value(cell.Ref{Kind: cell.DPeep}), ofLeast[1] + ofMost[1]},
				{equations[0], least}, {equations[1], most},
			} {
				if got[0] != got[1] && !(math.IsNaN(got[0]) && math.IsNaN(got[1])) {
					t.Errorf("min and max of %v and %v are %v and %v with gradients %v and %v, the equations say %v: want %v and %v, %v and %v", a, b,
						*value(cell.Ref{Kind: cell.Next}), *value(cell.Ref{Kind: cell.Next, Index: 1}), *value(cell.Ref{Kind: cell.DX}), *value(cell.Ref{Kind: cell.DPeep}),
						equations, least, most, ofLeast[0]+ofMost[0], ofLeast[1]+ofMost[1])
					break
				}
			}
		}
	}
}
