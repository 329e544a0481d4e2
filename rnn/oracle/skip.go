package oracle

import "rnnbench/rnn"

// A bypass adds what goes into modules of layers to what comes out of them: see rnn.ShortcutTo.
// Values are those of all rows; nil stands for zeros.
type bypass struct {
	p    rnn.Problem
	from []float64 // what goes into the present module
}

// next returns what layer l+1 reads, given what comes out of layer l. Layers come in order.
func (b *bypass) next(l int, out []float64) []float64 {
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
	if _, ok := rnn.ShortcutTo(r.p, l); ok {
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
