package cell

import "sync"

// Innermost lists two published cells with inner gates. They are not in All: tests of techniques run
// them.
var Innermost = sync.OnceValue(func() []*Cell { return []*Cell{gruBefore(), mgu()} })

// gruBefore is the GRU as first published (Cho et al. 2014): the reset gate multiplies the state,
// before the product.
func gruBefore() *Cell {
	return define(Cell{
		Name: "gru-before", Doc: "GRU, reset before the product: n = tanh(W·x + R·(r∘h) + b), h' = (1-z)∘n + z∘h (Cho et al. 2014)",
		Gates: []string{"r", "z", "n"}, Recurrent: 3, Inner: 1, States: []string{"h"},
		Value: func(x, r, _, prev []float64) float64 { return sigmoid(x[0]+r[0]) * prev[0] },
		Equations: func(x, r, _, prev, next []float64) {
			z, n := sigmoid(x[1]+r[1]), tanh(x[2]+r[2])
			next[0] = (1-z)*n + z*prev[0]
		},
	}, func(b *builder) {
		reset := b.save(b.do(Sigmoid, b.gate(0)))
		b.inner(b.mul(reset, Ref{Prev, 0}))
		z := b.save(b.do(Sigmoid, b.gate(1)))
		n := b.save(b.do(Tanh, b.gate(2)))
		b.next(0, b.add(b.mul(b.do(OneMinus, z), n), b.mul(z, Ref{Prev, 0})))
	})
}

// mgu is the minimal gated unit of Zhou et al. (2016).
func mgu() *Cell {
	return define(Cell{
		Name: "mgu", Doc: "minimal gated unit: n = tanh(W·x + R·(f∘h) + b), h' = (1-f)∘h + f∘n (Zhou et al. 2016)",
		Gates: []string{"f", "n"}, Recurrent: 2, Inner: 1, States: []string{"h"},
		Value: func(x, r, _, prev []float64) float64 { return sigmoid(x[0]+r[0]) * prev[0] },
		Equations: func(x, r, _, prev, next []float64) {
			f := sigmoid(x[0] + r[0])
			next[0] = (1-f)*prev[0] + f*tanh(x[1]+r[1])
		},
	}, func(b *builder) {
		f := b.save(b.do(Sigmoid, b.gate(0)))
		b.inner(b.mul(f, Ref{Prev, 0}))
		n := b.save(b.do(Tanh, b.gate(1)))
		b.next(0, b.add(b.mul(b.do(OneMinus, f), Ref{Prev, 0}), b.mul(f, n)))
	})
}
