package cell

// Norm is the cell of layers of c that normalise their products: see rnn.Problem.Norm. It is nil where
// no such layer is published. Its name is that of c.
func (c *Cell) Norm() *Cell {
	switch c {
	case RNNTanh, GRU, lstmNorm:
		return c
	case LSTM:
		return lstmNorm
	}
	return nil
}

// lstmNorm is the LSTM whose output reads the memory cell as normalised over the units of the layer,
// by the inner gate n. The next step reads the memory cell itself (Ba, Kiros and Hinton 2016,
// equations 20 to 22).
var lstmNorm = define(Cell{
	Name: "lstm", Doc: "LSTM of normalised products: c' = f∘c + i∘g, h' = o∘tanh(norm(c'))",
	Gates: []string{"i", "f", "g", "o"}, Recurrent: 5, Inner: 1, Normalised: true, States: []string{"h", "c"},
	Value: lstmMemory,
	Equations: func(x, r, p, prev, next []float64) {
		next[1] = lstmMemory(x, r, p, prev)
		next[0] = sigmoid(x[3]+r[3]) * tanh(r[4])
	},
}, func(b *builder) {
	i := b.do(Sigmoid, b.gate(0))
	f := b.do(Sigmoid, b.gate(1))
	g := b.do(Tanh, b.gate(2))
	c := b.inner(b.add(b.mul(f, Ref{Prev, 1}), b.mul(i, g)))
	b.next(1, b.do(Copy, c))
	o := b.do(Sigmoid, b.gate(3))
	n := b.do(Tanh, b.recurrent(4))
	b.next(0, b.mul(o, n))
})

// lstmMemory is the memory cell of an LSTM after a step.
func lstmMemory(x, r, _, prev []float64) float64 {
	return sigmoid(x[1]+r[1])*prev[1] + sigmoid(x[0]+r[0])*tanh(x[2]+r[2])
}
