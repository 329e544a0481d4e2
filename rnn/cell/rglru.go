package cell

import "math"

// RGLRU is the real-gated linear recurrent unit of De et al. (2024), section 2.4. Each unit
// has a weight L of its own, which says how long it remembers. The paper's layer is as wide as its
// input, which i gates; here x is a product, as in sru, so that widths may differ.
var RGLRU = define(Cell{
	Name: "rg-lru", Doc: "real-gated linear recurrent unit: h' = a∘h + √(1-a²)∘(i∘x), a = exp(-8·softplus(L)∘r) (De et al. 2024, 2.4)",
	Gates: []string{"r", "i", "x"}, States: []string{"h"}, Peeps: []string{"L"},
	Equations: func(x, _, p, prev, next []float64) {
		a := math.Exp(-8 * softplus(p[0]) * sigmoid(x[0]))
		next[0] = a*prev[0] + math.Sqrt(1-a*a)*sigmoid(x[1])*x[2]
	},
}, func(b *builder) {
	r := b.do(Sigmoid, b.input(0))
	i := b.do(Sigmoid, b.input(1))
	x := b.input(2)
	rate := b.do(Softplus, Ref{Peep, 0})
	for range 3 {
		rate = b.add(rate, rate)
	}
	a := b.do(Exp, b.do(Neg, b.mul(rate, r)))
	fresh := b.do(Sqrt, b.do(OneMinus, b.mul(a, a)))
	b.next(0, b.add(b.mul(a, Ref{Prev, 0}), b.mul(fresh, b.mul(i, x))))
})
