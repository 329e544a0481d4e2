package equations

import "sync"

// A step of the interpreter computes one value from others, by their places.
type step struct {
	eval      func(a, b float64) float64
	out, a, b int
}

// interpreters returns the equations as cell.Cell has them, in double precision, for one unit: those of
// a step, and that of the inner value, which is nil if there is none.
//
// Values have places: the gates' products x and r, the weights, the states before and after the step,
// and then constants and results.
func (d *definition) interpreters() (equations func(x, r, weights, prev, next []float64), inner func(x, r, weights, prev []float64) float64) {
	gates, states := len(d.gates), len(d.states)
	recurrent := gates
	unit := 2 * gates
	prevAt := unit + len(d.weights)
	nextAt := prevAt + states
	initial := make([]float64, nextAt+states)
	fresh := func(v float64) int {
		initial = append(initial, v)
		return len(initial) - 1
	}
	var steps []step
	rows, results := d.rows(), make([]int, len(d.equations))
	innerAt, innerSteps := -1, 0 // where the inner value is, and how many steps compute it
	var walk func(n *node) int
	walk = func(n *node) int {
		switch n.form {
		case constant:
			return fresh(n.number)
		case value:
			return results[n.index]
		case before:
			return prevAt + n.index
		case after:
			return nextAt + n.index
		case weight:
			return unit + n.index
		case fromInput:
			return rows[n.index]
		case fromState:
			if d.gates[n.index].inner && innerAt < 0 {
				innerAt = walk(d.inner)
				innerSteps = len(steps)
			}
			return recurrent + rows[n.index]
		}
		a := walk(n.args[0])
		b := a
		if len(n.args) > 1 {
			b = walk(n.args[1])
		}
		s := step{n.of.eval, fresh(0), a, b}
		steps = append(steps, s)
		return s.out
	}
	for i, e := range d.equations {
		if results[i] = walk(e.expr); e.next >= 0 {
			steps = append(steps, step{func(a, _ float64) float64 { return a }, nextAt + e.next, results[i], results[i]})
		}
	}
	pool := sync.Pool{New: func() any {
		values := append([]float64(nil), initial...)
		return &values
	}}
	run := func(steps []step, x, r, weights, prev []float64, result func(v []float64)) {
		at := pool.Get().(*[]float64)
		v := *at
		copy(v, x)
		copy(v[recurrent:], r)
		copy(v[unit:], weights)
		copy(v[prevAt:], prev)
		for _, s := range steps {
			v[s.out] = s.eval(v[s.a], v[s.b])
		}
		result(v)
		pool.Put(at)
	}
	equations = func(x, r, weights, prev, next []float64) {
		run(steps, x, r, weights, prev, func(v []float64) { copy(next, v[nextAt:nextAt+states]) })
	}
	if innerAt >= 0 {
		inner = func(x, r, weights, prev []float64) (value float64) {
			run(steps[:innerSteps], x, r, weights, prev, func(v []float64) { value = v[innerAt] })
			return value
		}
	}
	return equations, inner
}
