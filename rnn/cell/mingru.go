package cell

// MinGRU is the minimal GRU of Feng et al. (2024): both gates read the input alone. Its candidate g
// is positive, as the logarithmic form of their appendix B requires: x + 1/2 from 0 on and the
// sigmoid of x below, which is max(x, 0) + σ(min(x, 0)).
var MinGRU = define(Cell{
	Name: "mingru", Doc: "minimal GRU: h' = (1-z)∘h + z∘g(x), g(x) = max(x, 0) + σ(min(x, 0)) (Feng et al. 2024)",
	Gates: []string{"z", "x"}, States: []string{"h"},
	Equations: func(x, _, _, prev, next []float64) {
		z, g := sigmoid(x[0]), x[1]+0.5
		if x[1] < 0 {
			g = sigmoid(x[1])
		}
		next[0] = (1-z)*prev[0] + z*g
	},
}, func(b *builder) {
	z := b.do(Sigmoid, b.input(0))
	x := b.input(1)
	above := b.do(ReLU, x)
	g := b.add(above, b.do(Sigmoid, b.add(x, b.do(Neg, above))))
	b.next(0, b.add(b.mul(b.do(OneMinus, z), Ref{Prev, 0}), b.mul(z, g)))
})
