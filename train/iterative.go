package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
)

// How many iterations of its own an iterative technique takes depends on the weights, which change. The first
// minibatch tells how many it begins with. Each Step ends with a look at how much the last iterations changed in
// all of its minibatches. Where they were not enough, training goes back to where the Step began, and the
// technique takes twice as many from then on.

// ErrNotConverged says that the iterations of a technique do not lead to the answer.
var ErrNotConverged = errors.New("the states still change")

// A solver says how many iterations an iterative technique takes.
type solver struct {
	of        *Trainer
	knob      string         // that says how many; "": the technique does not repeat itself
	few, most int            // the same where the user has said how many
	limit     int            // of the knob
	now       int            // as compiled
	taken     []record.Taken // empty: unknown yet
	residual  float64        // the largest of the last Step
}

// newSolver returns a first guess for t.
func newSolver(t *Trainer) solver {
	s := solver{of: t}
	i, ok := t.Technique.(rnn.Iterative)
	if !ok {
		return s
	}
	s.knob, s.few, s.most = i.IterationsKnob(t.Problem)
	for _, k := range t.Technique.Knobs(t.Problem) {
		if k.Name == s.knob {
			s.limit = k.Max
		}
	}
	if given := t.Knobs[s.knob]; given > 0 {
		s.few, s.most, s.taken = given, given, []record.Taken{{Iterations: given}}
	}
	s.now = s.few
	return s
}

// heldOut is how many iterations held-out data take: one more than training, whose pass ends with a plain step.
func (s solver) heldOut() int { return min(s.now+1, s.limit) }

// with is k with n iterations of the technique.
func (s solver) with(k knob.Params, n int) knob.Params {
	if s.knob == "" {
		return k
	}
	k = maps.Clone(k)
	if k == nil {
		k = knob.Params{}
	}
	k[s.knob] = n
	return k
}

// unsolved is the error of a minibatch whose iterations have not converged.
func unsolved(n int, residual float64) error {
	return fmt.Errorf("after %s on a minibatch %w by %.2g of the largest: lower the learning rate, or use another technique", quantity.Plural(n, "iteration"), ErrNotConverged, residual)
}

// Convergence says how many iterations t's technique takes; nil: it does not repeat itself.
func Convergence(t *Trainer) *record.Convergence {
	if t.solver.knob == "" {
		return nil
	}
	return &record.Convergence{Residual: min(t.solver.residual, math.MaxFloat64), Taken: slices.Clone(t.solver.taken)}
}

// Settings are the knobs of t's technique as they are now.
func Settings(t *Trainer) knob.Params { return t.solver.with(t.Knobs, t.solver.now) }

// A snapshot is what a training goes back to.
type snapshot struct {
	values     map[string][]float32 // as in a checkpoint
	position   []byte
	iterations int
}

func (s *solver) snapshot() (snapshot, error) {
	t := s.of
	values, err := gatherAll(t)
	return snapshot{values, slices.Clone(t.position), t.iterations}, err
}

// back returns to a snapshot.
func (s *solver) back(to snapshot) error {
	s.of.iterations = to.iterations
	return errors.Join(s.of.scatter(to.values), seek(s.of, to.position))
}

// recompile compiles the network with n iterations of the technique. The caller writes what was learnt.
func (s *solver) recompile(n int) error {
	if n == s.now {
		return nil
	}
	t := s.of
	err := t.closeReplicas()
	t.replicas, s.now = nil, n
	if err == nil {
		err = t.compile()
	}
	if err == nil {
		err = t.begin()
	}
	return err
}

// again is recompile, and goes back to a snapshot.
func (s *solver) again(n int, from snapshot) error {
	if err := s.recompile(n); err != nil {
		return err
	}
	return s.back(from)
}

// resume takes as many iterations as a checkpoint says.
func (s *solver) resume(taken []record.Taken) error {
	if s.knob == "" || len(taken) == 0 || s.few == s.most {
		return nil
	}
	n := taken[len(taken)-1].Iterations
	if n < 1 || n > s.most {
		return fmt.Errorf("it is damaged: it says that %s takes %d iterations", s.of.Technique.Name(), n)
	}
	s.taken = taken
	return s.recompile(n)
}

// solved reports whether the iterations have converged for all minibatches since it was called last.
func (s *solver) solved() (bool, error) {
	s.residual = 0
	for _, r := range s.of.replicas {
		residual, err := rnn.LargestChange(r.plan, r.program)
		if err != nil {
			return false, err
		}
		s.residual = max(s.residual, residual)
	}
	return s.residual <= closeEnough(s.of.Problem), nil
}

// find finds how many iterations the next minibatch takes, unless that is known.
func (s *solver) find(ctx context.Context) error {
	if s.knob == "" || len(s.taken) > 0 {
		return nil
	}
	from, err := s.snapshot()
	if err != nil {
		return err
	}
	n, err := rnn.Fewest(s.few, s.most, func(n int) (bool, error) {
		if err := s.again(n, from); err != nil {
			return false, err
		}
		if err := iterate(ctx, s.of, 1); err != nil {
			return false, errors.Join(err, s.back(from))
		}
		return s.solved()
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		return errors.Join(unsolved(s.most, s.residual), s.back(from))
	}
	s.taken = []record.Taken{{After: from.iterations, Iterations: n}}
	return s.again(n, from)
}

// solve is iterate, whose minibatches are solved.
func (s *solver) solve(ctx context.Context, n int) error {
	from, err := s.snapshot()
	if err != nil {
		return err
	}
	for {
		if err := iterate(ctx, s.of, n); err != nil {
			if ctx.Err() != nil {
				err = errors.Join(err, s.back(from))
			}
			return err
		}
		if ok, err := s.solved(); ok || err != nil {
			return err
		}
		if s.now >= s.most {
			err := fmt.Errorf("iteration %d: %w", s.of.iterations, unsolved(s.now, s.residual))
			return errors.Join(err, s.back(from))
		}
		if err := s.again(min(2*s.now, s.most), from); err != nil {
			return err
		}
		s.taken = append(s.taken, record.Taken{After: from.iterations, Iterations: s.now})
	}
}

// closeEnough is the largest residual of iterations that have converged: of the error that rounding explains, a
// tenth or, in 16 bits, a quarter, since rounding moves states from one number to the next: by up to an eighth.
func closeEnough(p rnn.Problem) float64 {
	tolerance := oracle.Tolerance(p, false, 0)
	if p.Precision == rnn.BF16 || p.Precision == rnn.FP16 {
		return tolerance / 4
	}
	return tolerance / 10
}
