package graph

import (
	"math"
	"math/rand/v2"
)

// Draw draws parameters, inputs, classes, gradients and initial activations for
// g. They fit into single precision, so that a device can be given the same.
func (g *Graph) Draw(s Size, rng *rand.Rand) Values {
	v := Values{}
	fill := func(name string, n int, value func() float64) {
		list := make([]float64, n)
		for i := range list {
			list[i] = float64(float32(value()))
		}
		v[name] = list
	}
	for _, p := range g.Params() {
		bound := 1 / math.Sqrt(float64(p.Cols))
		if p.Rows == 1 {
			bound = 0.5
		}
		fill(p.Name, p.Rows*p.Cols, func() float64 { return bound * (2*rng.Float64() - 1) })
	}
	for k, l := range g.Layers {
		symbol := func() float64 { return float64(rng.IntN(l.Size)) }
		all, fresh := s.Frames()*s.Batch, s.Steps*s.Batch
		switch {
		case l.Input == Symbols:
			fill(l.Given, all, symbol)
		case l.Input == Dense:
			fill(l.Given, all*l.Size, rng.NormFloat64)
		case l.Activation == Softmax:
			fill(l.Given, fresh, symbol)
		case l.Given != "":
			fill(l.Given, fresh*l.Size, rng.NormFloat64)
		}
		if l.Initial != "" {
			fill(l.Initial, max(1, g.Delay(k))*s.Batch*l.Size, func() float64 { return rng.Float64() - 0.5 })
		}
	}
	return v
}
