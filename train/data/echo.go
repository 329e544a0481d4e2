package data

import "math/rand/v2"

// openEcho asks for the symbol of the step before, 0 at first. The inputs are features: 1 for the
// symbol, 0 for all others.
func openEcho(s settings, o Options) (Source, error) {
	symbols, err := s.whole("symbols", 2, 1<<16)
	if err != nil {
		return nil, err
	}
	fill := func(rng *rand.Rand, o Options, x, target []float32) {
		before := make([]int, o.Batch)
		for i := range o.Steps * o.Batch {
			n := rng.IntN(symbols)
			x[i*symbols+n], target[i] = 1, float32(before[i%o.Batch])
			before[i%o.Batch] = n
		}
	}
	return &drawn{Options: o, shape: Shape{Input: symbols, Output: symbols}, fill: fill}, nil
}
