package oracle

import "rnnbench/rnn"

// A bypass adds what goes into modules of layers to what comes out of them, after any row convolution: see
// rnn.ShortcutTo. Values are those of all rows; nil stands for zeros.
type bypass struct {
	p    rnn.Problem
	from []float64 // what goes into the present module

	ahead func(l int, out []float64) []float64 // the row convolution behind layer l
}

// next returns what layer l+1 reads, given what comes out of layer l. Layers come in order.
func (b *bypass) next(l int, out []float64) []float64 {
	if out != nil && rnn.LooksAhead(b.p, l) {
		out = b.ahead(l, out)
	}
	if _, ok := rnn.ShortcutTo(b.p, l); ok {
		out = plus(out, b.from)
	}
	if b.p.Skip > 0 && (l+1)%b.p.Skip == 0 {
		b.from = out
	}
	return out
}

// plus is the sum of two lists of values, which it leaves as they are.
func plus(a, b []float64) []float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := make([]float64, len(a))
	for i, v := range a {
		out[i] = v + b[i]
	}
	return out
}

// outputOf is the output of layer l: the states of its ways side by side, and what a
// shortcut adds. pass has the input of the module.
func outputOf(r *reference, pass *bypass, l int) []float64 {
	out := pass.next(l, r.outputs(l))
	if _, ok := rnn.ShortcutTo(r.p, l); ok || rnn.LooksAhead(r.p, l) {
		out = r.layers[0].existing(out, r.p.Out())
		pass.from = out
		r.lossy.single(out)
		r.lossy.store(out)
	}
	return out
}

// passedBy is the gradient of the input of layer l: that of the layer itself and, if a shortcut begins
// there, what passes by.
func passedBy(r *reference, l int, own, by []float64) []float64 {
	if _, ok := rnn.ShortcutFrom(r.p, l); !ok {
		return own
	}
	sum := plus(own, r.layers[0].existing(by, r.p.Out()))
	r.lossy.single(sum)
	r.lossy.store(sum)
	return sum
}

// aheadBy returns the row convolutions of r by functions of their weights.
func aheadBy(r *reference, of func(w []float32) []float32) func(l int, out []float64) []float64 {
	return func(l int, out []float64) []float64 {
		return convolve(out, of(aheadOf(r.Data, l)), r.Distinct*r.p.Out(), r.p.Out())
	}
}

// asTheyAre leaves weights as they are.
func asTheyAre(w []float32) []float32 { return w }
