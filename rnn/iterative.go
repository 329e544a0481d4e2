package rnn

import (
	"fmt"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// An Iterative technique repeats itself until its answer no longer changes. How often that is depends on
// the data, so it is found by running: see oracle.Residual.
type Iterative interface {
	Technique

	// IterationsKnob names the knob that says how many iterations run; 0: the fewest that answers like p's
	// took. More than most are not worth a try.
	IterationsKnob(p Problem) (name string, fewest, most int)
}

// needsVerifying returns an error for an Iterative technique, unless k says how many iterations it takes.
// Whoever says so must look whether they were enough, after each run or now and then.
func needsVerifying(t Technique, p Problem, k knob.Params) error {
	if i, ok := t.(Iterative); ok {
		if name, _, _ := i.IterationsKnob(p); k[name] == 0 {
			return fmt.Errorf("%s: %w: only verifying each answer tells how many iterations it takes: use another technique", t.Name(), schedule.ErrUnsupported)
		}
	}
	return nil
}

// Fewest finds about the fewest iterations that are enough. It doubles few until they are, and narrows them
// down to an eighth. It returns 0 if most are not enough, or the first error of enough.
func Fewest(few, most int, enough func(iterations int) (bool, error)) (int, error) {
	n, tooFew := few, 0
	for {
		ok, err := enough(n)
		if err != nil {
			return 0, err
		}
		if ok {
			break
		}
		if n >= most {
			return 0, nil
		}
		tooFew, n = n, min(2*n, most)
	}
	for n-tooFew > max(1, n/8) {
		between := (n + tooFew) / 2
		ok, err := enough(between)
		if err != nil {
			return 0, err
		}
		if ok {
			n = between
		} else {
			tooFew = between
		}
	}
	return n, nil
}
