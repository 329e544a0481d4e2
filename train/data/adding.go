package data

import (
	"errors"
	"math/rand/v2"
)

// openAdding is the adding problem of Hochreiter & Schmidhuber 1997, section 5.4, with values from
// 0 to 1. Two values are marked, one in each half. The last step asks for their sum, as one of
// equal intervals between 0 and 2. All other steps ask for one further class.
func openAdding(s settings, o Options) (Source, error) {
	classes, err := s.whole("classes", 2, 1<<16)
	if err != nil {
		return nil, err
	}
	if o.Steps < 2 {
		return nil, errors.New("two values are added, but there is 1 step: set steps to 2 or more")
	}
	fill := func(rng *rand.Rand, o Options, x, target []float32) {
		for i := range o.Steps * o.Batch {
			x[2*i], target[i] = rng.Float32(), float32(classes)
		}
		for b := range o.Batch {
			first := rng.IntN(o.Steps/2)*o.Batch + b
			second := (o.Steps/2+rng.IntN(o.Steps-o.Steps/2))*o.Batch + b
			x[2*first+1], x[2*second+1] = 1, 1
			sum := float64(x[2*first]) + float64(x[2*second])
			target[(o.Steps-1)*o.Batch+b] = float32(min(int(sum/2*float64(classes)), classes-1))
		}
	}
	return &drawn{Options: o, shape: Shape{Input: 2, Output: classes + 1}, fill: fill}, nil
}
