package rnn

import (
	"fmt"
	"math"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// An Iterative technique repeats itself until its answer no longer changes. How often that is depends on
// the data, so it is found by running: see oracle.Residual and LargestChange.
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

// keepChanges has runs keep by how much the last iterations of p's technique change its iterates.
func keepChanges(p *Plan) {
	if len(p.Iterates) == 0 {
		return
	}
	p.changes = p.Matrix("changes", len(p.Iterates), 2)
	for i, pair := range p.Iterates {
		p.Do(0, schedule.Change{A: pair[0], B: pair[1], Out: p.changes.All().Band(i, 1)})
	}
}

// LargestChange returns the largest difference of the last two iterations in all runs since it was called last,
// or since WriteConstants was: of the states of a layer, or of their gradients, over the largest of them. It is
// infinite where one is not finite, and 0 where the technique has no iterations. p is a plan of LayoutTraining or
// LayoutForward.
func LargestChange(p *Plan, mem Memory) (float64, error) {
	if p.changes == nil {
		return 0, nil
	}
	values := make([]float32, p.changes.Elements())
	if err := mem.Read(p.changes, values); err != nil {
		return 0, err
	}
	most := 0.0
	for i := 0; i < len(values); i += 2 {
		change, size := float64(values[i]), float64(values[i+1])
		if !(max(change, size) <= math.MaxFloat32) { // it may be no number
			most = math.Inf(1)
		} else if change > 0 {
			most = max(most, change/size)
		}
	}
	clear(values)
	return most, mem.Write(p.changes, values)
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
