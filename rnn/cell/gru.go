package cell

// GRU is the gated recurrent unit in the form of cuDNN and PyTorch: the reset
// gate multiplies the recurrent product with its bias, not the state.
var GRU = define(Cell{
	Name: "gru", Doc: "GRU, reset after the product: n = tanh(W·x + r∘(R·h + b)), h' = (1-z)∘n + z∘h",
	Gates: []string{"r", "z", "n"}, Recurrent: 3, States: []string{"h"},
	Equations: func(x, r, _, prev, next []float64) {
		reset, z := sigmoid(x[0]+r[0]), sigmoid(x[1]+r[1])
		n := tanh(x[2] + reset*r[2])
		next[0] = (1-z)*n + z*prev[0]
	},
}, func(b *builder) {
	reset := b.do(Sigmoid, b.gate(0))
	z := b.do(Sigmoid, b.gate(1))
	rn := b.recurrent(2)
	n := b.do(Tanh, b.add(b.input(2), b.mul(reset, rn)))
	b.next(0, b.add(b.mul(b.do(OneMinus, z), n), b.mul(z, Ref{Prev, 0})))
})
