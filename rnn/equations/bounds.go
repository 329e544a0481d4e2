package equations

import "math"

// bounds are the least and the greatest value that an expression can have, as far as its operations tell.
type bounds struct{ least, most float64 }

// boundsOf returns the bounds of n, which reads nothing but equations so far.
func (p *lowering) boundsOf(n *node) bounds {
	switch n.form {
	case constant:
		return bounds{n.number, n.number}
	case value:
		return p.bounds[n.index]
	case after:
		return p.bounds[p.states[n.index].equation]
	case apply:
		return n.of.bounds(p.boundsOf(n.args[0]), p.boundsOf(n.args[len(n.args)-1]))
	}
	if n.span != anything {
		return bounds{0, math.Inf(1)}
	}
	return bounds{math.Inf(-1), math.Inf(1)}
}

// bounds returns those of f, which is monotonic in each operand; abs alone turns round, at 0. Divisors are above 0
// or constant.
func (f *function) bounds(a, b bounds) bounds {
	out := bounds{math.Inf(1), math.Inf(-1)}
	for _, x := range []float64{a.least, a.most} {
		for _, y := range []float64{b.least, b.most} {
			v := f.eval(x, y)
			if math.IsNaN(v) { // 0·∞, 0/0 and ∞/∞: 0 lies between the others or is one of them
				v = 0
			}
			out = bounds{min(out.least, v), max(out.most, v)}
		}
	}
	if f.span(anything, anything) == notNegative {
		out.least = 0
	}
	return out
}
