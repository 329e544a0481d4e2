package data

import (
	"math/rand/v2"
	"runtime"
	"sync"
)

// noEvent is the symbol, and the class, of a step without an event.
const noEvent = 2 * pixels * pixels

// newForecast asks for events some way ahead, as Martin & Cundy 2017, section 4, do with N-MNIST.
// Each sequence is a random stretch of a random recording. A recording that is too short is
// padded with noEvent.
//
// The paper embeds the pixel in 40 dimensions, adds the polarity as a 41st input, and applies one
// softmax over pixels for each polarity. A problem has one table of symbols and one softmax.
// Here an input is one of 2 · 34² symbols and an output one of 2 · 34² classes: a pixel with a
// polarity. The loss therefore includes that of the polarity.
//
// No step can be left out of the loss. During the burn-in, and after the end of a short recording,
// the class is noEvent. It is easily learned and lowers the mean.
func newForecast(l *library, s settings, o Options) (Source, error) {
	ahead, err := s.whole("ahead", 1, 1<<20)
	if err != nil {
		return nil, err
	}
	burnin, err := s.whole("burnin", 0, 1<<20)
	if err != nil {
		return nil, err
	}
	fill := func(rng *rand.Rand, o Options, x, target []float32) {
		which, where := make([]int, o.Batch), make([]uint64, o.Batch)
		for b := range which {
			which[b], where[b] = rng.IntN(len(l.all)), rng.Uint64()
		}
		if err := l.load(which); err != nil {
			panic(err) // the camera only fails if Go's fonts are broken
		}
		for b, i := range which {
			stretch(l.all[i], o, ahead, burnin, where[b], x[b:], target[b:])
		}
	}
	return &drawn{Options: o, shape: Shape{Input: noEvent + 1, OneHot: true, Output: noEvent + 1}, fill: fill}, nil
}

// stretch copies steps of a recording, from a random one on, to every Batch-th place.
func stretch(recording []uint16, o Options, ahead, burnin int, random uint64, x, target []float32) {
	start := 0
	if places := len(recording) - o.Steps - ahead + 1; places > 1 {
		start = int(random % uint64(places))
	}
	at := func(i int) float32 {
		if i < len(recording) {
			return float32(recording[i])
		}
		return noEvent
	}
	for t := range o.Steps {
		x[t*o.Batch] = at(start + t)
		if target[t*o.Batch] = noEvent; t >= burnin {
			target[t*o.Batch] = at(start + t + ahead)
		}
	}
}

// A library holds recordings as symbols. Each is formed when it is first asked for.
type library struct {
	all  [][]uint16
	form func(i int) ([]Event, error)
}

func newLibrary(n int, form func(i int) ([]Event, error)) *library {
	return &library{all: make([][]uint16, n), form: form}
}

// load forms the recordings that are missing, side by side, and returns the first's error in the
// order asked for.
func (l *library) load(which []int) error {
	var missing []int
	asked := map[int]bool{}
	for _, i := range which {
		if l.all[i] == nil && !asked[i] {
			asked[i] = true
			missing = append(missing, i)
		}
	}
	errs := make([]error, len(missing))
	var group sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(missing))
	for w := range workers {
		group.Go(func() {
			for k := w; k < len(missing); k += workers {
				events, err := l.form(missing[k])
				errs[k] = err
				symbols := make([]uint16, len(events))
				for i, e := range events {
					symbols[i] = e.symbol()
				}
				if err == nil {
					l.all[missing[k]] = symbols
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// openEvents has a camera record so many generated digits, which seed decides. Held-out ones are others.
func openEvents(s settings, o Options) (Source, error) {
	n, err := s.whole("recordings", 1, 1<<20)
	if err != nil {
		return nil, err
	}
	threshold, err := s.whole("threshold", 1, fine*fine)
	if err != nil {
		return nil, err
	}
	digits := recorded
	if o.Held {
		digits |= apart
	}
	c := camera{threshold}
	return newForecast(newLibrary(n, func(i int) ([]Event, error) {
		return c.record(rand.New(rand.NewPCG(o.Seed, digits|uint64(i))))
	}), s, o)
}

// recorded keeps the generators of recordings from those of minibatches.
const recorded uint64 = 1 << 62
