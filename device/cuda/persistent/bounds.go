package persistent

import (
	"math"

	"rnnbench/rnn/cell"
)

// within says whether the state of c that is multiplied by weights stays within ±1. 0: not known.
// 1: always, because of the last operations that form it. 2: if it was within ±1 before the step,
// since it is a mean of that state and of a value within ±1.
func within(c *cell.Cell) int {
	switch through := (cell.Ref{Kind: cell.Next, Index: c.Through}); {
	case limits(c, math.Inf(1))[through].most <= 1:
		return 1
	case limits(c, 1)[through].most <= 1:
		return 2
	}
	return 0
}

// A limit bounds a value. whole and rest say whether it is a share of a mean: a factor times a
// sigmoid, or times 1 minus that sigmoid.
type limit struct {
	most   float64
	whole  int  // identifies the sigmoid; 0: none
	rest   bool // it is 1 minus the sigmoid
	factor float64
}

// limits bounds the values that c computes if the state that is multiplied by weights is within
// ±before.
func limits(c *cell.Cell, before float64) map[cell.Ref]limit {
	known := map[cell.Ref]limit{{Kind: cell.Prev, Index: c.Through}: {most: before}}
	of := func(r cell.Ref) limit {
		if v, ok := known[r]; ok {
			return v
		}
		return limit{most: math.Inf(1)}
	}
	for i, in := range c.Inference {
		a, b := of(in.A), of(in.B)
		out := limit{most: math.Inf(1)}
		switch in.Op {
		case cell.Zero:
			out.most = 0
		case cell.Const:
			out.most = math.Abs(float64(in.Value))
		case cell.Tanh:
			out.most = 1
		case cell.Sigmoid:
			out = limit{most: 1, whole: i + 1, rest: false, factor: 1}
		case cell.OneMinus:
			if a.whole > 0 && a.factor == 1 {
				out = limit{most: 1, whole: a.whole, rest: !a.rest, factor: 1}
			}
		case cell.Copy, cell.Neg:
			out.most = a.most
		case cell.Mul:
			if b.whole > 0 {
				a, b = b, a
			}
			out = limit{most: a.most * b.most, whole: a.whole, rest: a.rest, factor: a.factor * b.most}
		case cell.Add, cell.Sub:
			out.most = a.most + b.most
			if a.whole > 0 && a.whole == b.whole && a.rest != b.rest { // a mean
				out.most = max(a.factor, b.factor)
			}
		}
		known[in.Out] = out
	}
	return known
}
