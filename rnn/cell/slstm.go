package cell

import "math"

// SLSTM is the scalar LSTM of Beck et al. (2024), xLSTM, arXiv:2405.04517, equations 8 to 17: an
// LSTM whose input gate is an exponential, and whose output is divided by the sum n of what the
// gates let in. The forget gate is a sigmoid. The state m keeps both gates' logarithms near 0: c and
// n are those of the paper's equations 8 and 9 over exp(m), so that h does not depend on m.
//
// So the gradient holds m fixed, as the authors' programs do. Up to rounding that is exact for
// everything that h depends on. It also has no kink where the maximum changes sides.
var SLSTM = define(Cell{
	Name: "slstm", Doc: "sLSTM: m' = max(log f + m, i), c' = f'∘c + i'∘z, n' = f'∘n + i', h' = o∘c'/n', where i' = exp(i-m'), f' = f∘exp(m-m') (Beck et al. 2024)",
	Gates: []string{"i", "f", "z", "o"}, Recurrent: 4, States: []string{"h", "c", "n", "m"}, Positive: []int{2}, Fixed: []int{3},
	Equations: func(x, r, _, prev, next []float64) {
		i, forget := x[0]+r[0], prev[3]-softplus(-(x[1]+r[1]))
		m := max(forget, i)
		in, f := math.Exp(i-m), math.Exp(forget-m)
		next[1] = f*prev[1] + in*tanh(x[2]+r[2])
		next[2] = f*prev[2] + in
		next[3] = m
		next[0] = sigmoid(x[3]+r[3]) * next[1] / next[2]
	},
}, func(b *builder) {
	i := b.gate(0)
	s := b.do(Softplus, b.do(Neg, b.gate(1))) // -log f
	z := b.do(Tanh, b.gate(2))
	o := b.do(Sigmoid, b.gate(3))
	forget := b.do(Sub, Ref{Prev, 3}, s)
	m := b.next(3, b.add(forget, b.do(ReLU, b.do(Sub, i, forget))))
	in := b.do(Exp, b.do(Sub, i, m))
	f := b.do(Exp, b.do(Sub, forget, m))
	c := b.next(1, b.add(b.mul(f, Ref{Prev, 1}), b.mul(in, z)))
	n := b.next(2, b.add(b.mul(f, Ref{Prev, 2}), in))
	b.next(0, b.mul(o, b.do(Div, c, n)))
})
