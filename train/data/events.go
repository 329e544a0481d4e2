package data

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
)

// Symbols of the embedding: pixels, and one for a step without an event.
const (
	places   = pixels * pixels
	noEvent  = places
	noTarget = -1 // the class where nothing is asked for
)

// newForecast asks for the event some steps ahead, as Martin & Cundy 2017, section 4, do with
// N-MNIST. Each sequence is a random stretch of a random recording, padded if the recording is too
// short.
//
// As in the paper, the input is an embedding of the pixel, and beside it the polarity: 1 for a
// rise, -1 for a fall. The classes are two groups of pixels, falls and rises. The loss is that of
// the pixel, given the polarity. Nothing is asked for in the first steps, the burn-in, nor after a
// recording's end.
func newForecast(l *library, s settings, o Options) (Source, error) {
	ahead, err := s.whole("ahead", 1, 1<<20)
	if err != nil {
		return nil, err
	}
	burnin, err := s.whole("burnin", 0, 1<<20)
	if err != nil {
		return nil, err
	}
	dimension, err := s.whole("dimension", 1, 1<<16)
	if err != nil {
		return nil, err
	}
	if burnin >= o.Steps {
		return nil, fmt.Errorf("none of the %d steps comes after the burn-in of %d: set steps to %d, or lower burnin", o.Steps, burnin, burnin+1)
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
			stretch(l.all[i], o, ahead, burnin, where[b], x[2*b:], target[b:])
		}
	}
	shape := Shape{Input: dimension + 1, Symbols: places + 1, Embedding: dimension, Output: 2 * places, Groups: 2, Weighted: true}
	return &drawn{Options: o, shape: shape, fill: fill, prepare: l.loadAll}, nil
}

// stretch copies steps of a recording, from a random one on, to every Batch-th row.
func stretch(recording []uint16, o Options, ahead, burnin int, random uint64, x, target []float32) {
	start := 0
	if places := len(recording) - o.Steps - ahead + 1; places > 1 {
		start = int(random % uint64(places))
	}
	for t := range o.Steps {
		row := x[2*t*o.Batch:]
		row[0], row[1] = noEvent, 0
		if i := start + t; i < len(recording) {
			row[0], row[1] = float32(recording[i]%places), float32(2*(int(recording[i])/places)-1)
		}
		target[t*o.Batch] = noTarget
		if i := start + t + ahead; t >= burnin && i < len(recording) {
			target[t*o.Batch] = float32(recording[i])
		}
	}
}

// A library holds recordings as symbols. Each is formed when it is first needed.
type library struct {
	all  [][]uint16
	form func(i int) ([]Event, error)
}

func newLibrary(n int, form func(i int) ([]Event, error)) *library {
	return &library{all: make([][]uint16, n), form: form}
}

// loadAll forms all recordings that are missing.
func (l *library) loadAll() error {
	all := make([]int, len(l.all))
	for i := range all {
		all[i] = i
	}
	return l.load(all)
}

// load forms the missing ones of these recordings, side by side. It returns the first error in the
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

// openEvents has a camera record so many generated digits, which the seed decides. Held-out digits are others.
func openEvents(s settings, o Options) (Source, error) {
	n, err := s.whole("recordings", 1, 1<<20)
	if err != nil {
		return nil, err
	}
	threshold, err := s.whole("threshold", 1, fine*fine)
	if err != nil {
		return nil, err
	}
	digits := recordingStream
	if o.Held {
		digits |= heldOutStream
	}
	c := camera{int32(threshold)}
	return newForecast(newLibrary(n, func(i int) ([]Event, error) {
		return c.record(rand.New(rand.NewPCG(o.Seed, digits|uint64(i))))
	}), s, o)
}

// recordingStream separates the generators of recordings from those of minibatches.
const recordingStream uint64 = 1 << 62
