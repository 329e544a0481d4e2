package cell

import "fmt"

// Linear is the bare recurrence of Martin and Cundy (2017), section 2.1, with both of its vectors
// given. If they come from a product, nothing keeps |a| below 1. So it is no layer of a network and
// not in All; devices are tested and measured with it.
var Linear = define(Cell{
	Name: "linear", Doc: "plain linear recurrence: h' = a∘h + x (Martin & Cundy 2017, 2.1)",
	Gates: []string{"a", "x"}, States: []string{"h"},
	Equations: func(x, _, _, prev, next []float64) { next[0] = x[0]*prev[0] + x[1] },
}, func(b *builder) {
	a := b.input(0)
	b.next(0, b.add(b.mul(a, Ref{Prev, 0}), b.input(1)))
})

// GILR is the gated impulse linear recurrence of Martin and Cundy (2017),
// section 3.1.
var GILR = define(Cell{
	Name: "gilr", Doc: "gated impulse linear recurrence: h' = g∘h + (1-g)∘i, where g and i depend on the input only (Martin & Cundy 2017, 3.1)",
	Gates: []string{"g", "i"}, States: []string{"h"},
	Equations: func(x, _, _, prev, next []float64) {
		g, i := sigmoid(x[0]), tanh(x[1])
		next[0] = g*prev[0] + (1-g)*i
	},
}, func(b *builder) {
	g := b.do(Sigmoid, b.input(0))
	i := b.do(Tanh, b.input(1))
	b.next(0, b.add(b.mul(g, Ref{Prev, 0}), b.mul(b.do(OneMinus, g), i)))
})

// SRU is the simple recurrent unit of Lei et al. (2017). Its highway is projected, as its authors
// do where input and layer differ in width. c' = f∘c + (1-f)∘z, h = r∘tanh(c') + (1-r)∘y, where all
// gates read the input alone.
var SRU = define(Cell{
	Name: "sru", Doc: "simple recurrent unit: c' = f∘c + (1-f)∘z, h = r∘tanh(c') + (1-r)∘y (Lei et al. 2017)",
	Gates: []string{"z", "f", "r", "y"}, States: []string{"h", "c"},
	Equations: func(x, _, _, prev, next []float64) {
		f, r := sigmoid(x[1]), sigmoid(x[2])
		next[1] = f*prev[1] + (1-f)*x[0]
		next[0] = r*tanh(next[1]) + (1-r)*x[3]
	},
}, func(b *builder) {
	z := b.input(0)
	f := b.do(Sigmoid, b.input(1))
	r := b.do(Sigmoid, b.input(2))
	y := b.input(3)
	c := b.next(1, b.add(b.mul(f, Ref{Prev, 1}), b.mul(b.do(OneMinus, f), z)))
	b.next(0, b.add(b.mul(r, b.do(Tanh, c)), b.mul(b.do(OneMinus, r), y)))
})

// QRNN is the quasi-recurrent network of Bradbury et al. (2016) with
// fo-pooling and a window of one step: c' = f∘c + (1-f)∘z, h = o∘c'.
var QRNN = qrnn("qrnn", 1)

// QRNN2 is the same with a window of two steps, as its authors use it: each gate
// has weights for x of the step and weights for x of the step before, which is 0
// before the first step.
var QRNN2 = qrnn("qrnn2", 2)

func qrnn(name string, window int) *Cell {
	return define(Cell{
		Name: name, Doc: fmt.Sprintf("quasi-recurrent network, window %d, fo-pooling: c' = f∘c + (1-f)∘z, h = o∘c' (Bradbury et al. 2016)", window),
		Gates: []string{"z", "f", "o"}, Window: window, States: []string{"h", "c"},
		Equations: func(x, _, _, prev, next []float64) {
			z, f, o := tanh(x[0]), sigmoid(x[1]), sigmoid(x[2])
			next[1] = f*prev[1] + (1-f)*z
			next[0] = o * next[1]
		},
	}, func(b *builder) {
		z := b.do(Tanh, b.input(0))
		f := b.do(Sigmoid, b.input(1))
		o := b.do(Sigmoid, b.input(2))
		c := b.next(1, b.add(b.mul(f, Ref{Prev, 1}), b.mul(b.do(OneMinus, f), z)))
		b.next(0, b.mul(o, c))
	})
}

// LSLSTM is the linear surrogate LSTM of Martin and Cundy (2017), section 3.2:
// an LSTM whose gates see, in place of its output, a GILR of the input.
var LSLSTM = define(Cell{
	Name: "ls-lstm", Doc: "linear surrogate LSTM: an LSTM whose gates read a GILR of the input instead of h (Martin & Cundy 2017, 3.2)",
	Gates: []string{"f", "i", "o", "z", "g", "w"}, Recurrent: 4, Through: 2, States: []string{"h", "c", "s"},
	Equations: func(x, r, _, prev, next []float64) {
		f, i, o := sigmoid(x[0]+r[0]), sigmoid(x[1]+r[1]), sigmoid(x[2]+r[2])
		next[1] = f*prev[1] + i*tanh(x[3]+r[3])
		next[0] = o * next[1]
		g := sigmoid(x[4])
		next[2] = g*prev[2] + (1-g)*tanh(x[5])
	},
}, func(b *builder) {
	g := b.do(Sigmoid, b.input(4))
	w := b.do(Tanh, b.input(5))
	b.next(2, b.add(b.mul(g, Ref{Prev, 2}), b.mul(b.do(OneMinus, g), w)))
	i := b.do(Sigmoid, b.gate(1))
	z := b.do(Tanh, b.gate(3))
	iz := b.mul(i, z)
	f := b.do(Sigmoid, b.gate(0))
	c := b.next(1, b.add(b.mul(f, Ref{Prev, 1}), iz))
	o := b.do(Sigmoid, b.gate(2))
	b.next(0, b.mul(o, c))
})
