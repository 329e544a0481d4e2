package data

import (
	"fmt"
	"math/rand/v2"
)

// openCopy is the copying problem, as in Arjovsky et al., arXiv:1511.06464, section 4.1: some symbols to
// remember, blanks, a mark, and blanks while the symbols are to be repeated. Other steps ask for
// a blank.
func openCopy(s settings, o Options) (Source, error) {
	delay, err := s.whole("delay", 0, 1<<20)
	if err != nil {
		return nil, err
	}
	length, err := s.whole("length", 1, 1<<20)
	if err != nil {
		return nil, err
	}
	symbols, err := s.whole("symbols", 2, 1<<16)
	if err != nil {
		return nil, err
	}
	if least := 2*length + delay; o.Steps < least {
		return nil, fmt.Errorf("it takes %d steps to see %d symbols, wait %d and repeat them, and there are %d: set steps to %d, or shorten delay or length", least, length, delay, o.Steps, least)
	}
	fill := func(rng *rand.Rand, o Options, x, target []float32) {
		blank, mark := float32(symbols), float32(symbols+1)
		for i := range x {
			x[i], target[i] = blank, blank
		}
		answer := o.Steps - length // the first step of the answer, in which the mark is seen
		for b := range o.Batch {
			for k := range length {
				n := float32(rng.IntN(symbols))
				x[(answer-delay-length+k)*o.Batch+b] = n
				target[(answer+k)*o.Batch+b] = n
			}
			x[answer*o.Batch+b] = mark
		}
	}
	return &drawn{Options: o, shape: Shape{Input: symbols + 2, OneHot: true, Output: symbols + 1}, fill: fill}, nil
}
