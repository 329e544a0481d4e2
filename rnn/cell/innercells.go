package cell

import "sync"

// Inners lists two cells with inner gates for tests, which are not in All. Package cells adds the
// published ones.
var Inners = sync.OnceValue(func() []*Cell { return []*Cell{tangled(), gated()} })

// tangled is a cell for tests. Its inner value needs a new state, and the rest of the step
// needs the inner value. Two gates have it multiplied, one gate multiplies a recurrent product, and
// both halves read a peephole.
func tangled() *Cell {
	return define(Cell{
		Name: "tangled", Doc: "a cell for tests: R multiplies c'∘h, which the output reads too",
		Gates: []string{"i", "a", "b", "x"}, Recurrent: 3, Inner: 2, States: []string{"h", "c"}, Peeps: []string{"p"},
		Value: func(x, r, p, prev []float64) float64 {
			i := sigmoid(x[0] + r[0])
			return (i*prev[1] + p[0]*prev[0]) * prev[0]
		},
		Equations: func(x, r, p, prev, next []float64) {
			i := sigmoid(x[0] + r[0])
			c := i*prev[1] + p[0]*prev[0]
			a := tanh(x[1] + i*r[1])
			next[1] = c
			next[0] = tanh(a*c*prev[0] + p[0]*sigmoid(x[2]+r[2])*tanh(x[3]) + prev[1])
		},
	}, func(b *builder) {
		i := b.do(Sigmoid, b.gate(0))
		c := b.next(1, b.add(b.mul(i, Ref{Prev, 1}), b.mul(Ref{Peep, 0}, Ref{Prev, 0})))
		v := b.inner(b.mul(c, Ref{Prev, 0}))
		r := b.recurrent(1)
		a := b.do(Tanh, b.add(b.input(1), b.mul(i, r)))
		g := b.do(Sigmoid, b.gate(2))
		x := b.do(Tanh, b.input(3))
		b.next(0, b.do(Tanh, b.add(b.add(b.mul(a, v), b.mul(Ref{Peep, 0}, b.mul(g, x))), Ref{Prev, 1})))
	})
}

// gated is a cell for tests whose only recurrent product is the inner one.
func gated() *Cell {
	return define(Cell{
		Name: "gated", Doc: "a cell for tests: h' = tanh(W·x + R·(i∘h) + b), where i depends on the input only",
		Gates: []string{"n", "i"}, Recurrent: 1, Inner: 1, States: []string{"h"},
		Value:     func(x, _, _, prev []float64) float64 { return sigmoid(x[1]) * prev[0] },
		Equations: func(x, r, _, _, next []float64) { next[0] = tanh(x[0] + r[0]) },
	}, func(b *builder) {
		b.inner(b.mul(b.do(Sigmoid, b.input(1)), Ref{Prev, 0}))
		b.next(0, b.do(Tanh, b.gate(0)))
	})
}
