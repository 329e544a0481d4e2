package cell

// LSTM is the four-gate long short-term memory without peepholes that
// Appleyard et al. (2016) measure in section 2.
var LSTM = define(Cell{
	Name: "lstm", Doc: "LSTM: c' = f∘c + i∘g, h' = o∘tanh(c')",
	Gates: []string{"i", "f", "g", "o"}, Recurrent: 4, States: []string{"h", "c"},
	Equations: func(x, r, _, prev, next []float64) {
		i, f := sigmoid(x[0]+r[0]), sigmoid(x[1]+r[1])
		g, o := tanh(x[2]+r[2]), sigmoid(x[3]+r[3])
		next[1] = f*prev[1] + i*g
		next[0] = o * tanh(next[1])
	},
}, func(b *builder) {
	i := b.do(Sigmoid, b.gate(0))
	f := b.do(Sigmoid, b.gate(1))
	g := b.do(Tanh, b.gate(2))
	o := b.do(Sigmoid, b.gate(3))
	c := b.next(1, b.add(b.mul(f, Ref{Prev, 1}), b.mul(i, g)))
	b.next(0, b.mul(o, b.do(Tanh, c)))
})

// LSTMPeephole is the LSTM whose gates also see the memory cell: the input and
// forget gates before the step, the output gate after it (Gers et al. 2002; the
// one that Hwang and Sung (2015) train).
var LSTMPeephole = define(Cell{
	Name: "lstm-peephole", Doc: "LSTM with peepholes: i, f += p∘c, o += p∘c'",
	Gates: []string{"i", "f", "g", "o"}, Recurrent: 4, States: []string{"h", "c"}, Peeps: []string{"i", "f", "o"},
	Equations: func(x, r, p, prev, next []float64) {
		i, f := sigmoid(x[0]+r[0]+p[0]*prev[1]), sigmoid(x[1]+r[1]+p[1]*prev[1])
		g := tanh(x[2] + r[2])
		next[1] = f*prev[1] + i*g
		o := sigmoid(x[3] + r[3] + p[2]*next[1])
		next[0] = o * tanh(next[1])
	},
}, func(b *builder) {
	see := func(gate, k int, c Ref) Ref { return b.add(b.gate(gate), b.mul(Ref{Peep, k}, c)) }
	i := b.do(Sigmoid, see(0, 0, Ref{Prev, 1}))
	f := b.do(Sigmoid, see(1, 1, Ref{Prev, 1}))
	g := b.do(Tanh, b.gate(2))
	c := b.next(1, b.add(b.mul(f, Ref{Prev, 1}), b.mul(i, g)))
	o := b.do(Sigmoid, see(3, 2, c))
	b.next(0, b.mul(o, b.do(Tanh, c)))
})

// LSTMC is LSTMPeephole whose output does not recur: the memory cell alone ties
// a step to the one before, through the forget gate and the peepholes. Hwang and
// Sung (2015) train it as a language model in section 4.
var LSTMC = define(Cell{
	Name: "lstm-c", Doc: "lstm-peephole whose cell recurs and whose output does not (Hwang & Sung 2015, 4)",
	Gates: []string{"i", "f", "g", "o"}, States: []string{"h", "c"}, Peeps: []string{"i", "f", "o"},
	Equations: func(x, _, p, prev, next []float64) {
		i, f := sigmoid(x[0]+p[0]*prev[1]), sigmoid(x[1]+p[1]*prev[1])
		next[1] = f*prev[1] + i*tanh(x[2])
		next[0] = sigmoid(x[3]+p[2]*next[1]) * tanh(next[1])
	},
}, func(b *builder) {
	see := func(gate, k int, c Ref) Ref { return b.add(b.input(gate), b.mul(Ref{Peep, k}, c)) }
	i := b.do(Sigmoid, see(0, 0, Ref{Prev, 1}))
	f := b.do(Sigmoid, see(1, 1, Ref{Prev, 1}))
	g := b.do(Tanh, b.input(2))
	c := b.next(1, b.add(b.mul(f, Ref{Prev, 1}), b.mul(i, g)))
	o := b.do(Sigmoid, see(3, 2, c))
	b.next(0, b.mul(o, b.do(Tanh, c)))
})
