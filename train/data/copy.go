package data

import (
	"fmt"
	"math/rand/v2"
)

// openCopy is the copying problem of Arjovsky et al., arXiv:1511.06464, section 4.1. Symbols to
// remember come first, then a delay of blanks that ends with a mark, then blanks while the symbols
// are asked for. Other steps ask for a blank. Steps that the task does not need are blanks in front.
func openCopy(s settings, o Options) (Source, error) {
	delay, err := s.whole("delay", 1, 1<<20)
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
		return nil, fmt.Errorf("it takes %d steps to see %d symbols, wait %d and repeat them, but there are %d: set steps to %d, or shorten delay or length", least, length, delay, o.Steps, least)
	}
	fill := func(rng *rand.Rand, o Options, x, target []float32) {
		blank, mark := float32(symbols), float32(symbols+1)
		for i := range x {
			x[i], target[i] = blank, blank
		}
		answer := o.Steps - length // the first step that asks for a symbol
		for b := range o.Batch {
			for k := range length {
				n := float32(rng.IntN(symbols))
				x[(answer-delay-length+k)*o.Batch+b] = n
				target[(answer+k)*o.Batch+b] = n
			}
			x[(answer-1)*o.Batch+b] = mark
		}
	}
	return &drawn{Options: o, shape: Shape{Input: symbols + 2, OneHot: true, Output: symbols + 1}, fill: fill}, nil
}
