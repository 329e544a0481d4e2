package cell

// RNNTanh is the Elman unit, h' = tanh(W·x + R·h + b).
var RNNTanh = define(Cell{
	Name: "rnn-tanh", Doc: "Elman unit: h' = tanh(W·x + R·h + b)",
	Gates: []string{"h"}, Recurrent: 1, States: []string{"h"},
	Equations: func(x, r, _, _, next []float64) { next[0] = tanh(x[0] + r[0]) },
}, func(b *builder) {
	b.next(0, b.do(Tanh, b.gate(0)))
})

// RNNReLU is the simple recurrent unit of Diamos et al. (2016), section 3.
var RNNReLU = define(Cell{
	Name: "rnn-relu", Doc: "simple unit: h' = max(W·x + R·h + b, 0)",
	Gates: []string{"h"}, Recurrent: 1, States: []string{"h"},
	Equations: func(x, r, _, _, next []float64) { next[0] = relu(x[0] + r[0]) },
}, func(b *builder) {
	b.next(0, b.do(ReLU, b.gate(0)))
})
