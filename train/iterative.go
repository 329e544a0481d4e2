package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
)

// How many iterations of its own an iterative technique takes depends on the weights, which change. The first
// minibatch tells how many it begins with, and the last minibatch of each Step is checked. Where they were not
// enough, training goes back to where the Step began, and the technique takes twice as many from then on.

// ErrNotConverged says that the iterations of a technique do not lead to the answer.
var ErrNotConverged = errors.New("the states still change")

// A solver says how many iterations an iterative technique takes.
type solver struct {
	knob      string         // that says how many; "": the technique does not repeat itself
	few, most int            // the same where the user has said how many
	now       int            // as compiled
	taken     []record.Taken // empty: unknown yet
	residual  float64        // of the last minibatch that was checked
}

// solverOf returns a first guess for t, whose knobs are k.
func solverOf(t rnn.Technique, k knob.Params) solver {
	i, ok := t.(rnn.Iterative)
	if !ok {
		return solver{}
	}
	s := solver{}
	s.knob, s.few, s.most = i.IterationsKnob()
	if given := k[s.knob]; given > 0 {
		s.few, s.most, s.taken = given, given, []record.Taken{{Iterations: given}}
	}
	s.now = s.few
	return s
}

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
	return fmt.Errorf("after %d iterations on a minibatch %w by %.2g of the largest: lower the learning rate, or use another technique", n, ErrNotConverged, residual)
}

// Convergence says how many iterations t's technique takes; nil: it does not repeat itself.
func (t *Trainer) Convergence() *record.Convergence {
	if t.solver.knob == "" {
		return nil
	}
	return &record.Convergence{Residual: min(t.solver.residual, math.MaxFloat64), Taken: slices.Clone(t.solver.taken)}
}

// Settings are the knobs of t's technique as they are now.
func (t *Trainer) Settings() knob.Params { return t.solver.with(t.Knobs, t.solver.now) }

// A snapshot is what a training goes back to.
type snapshot struct {
	values     map[string][]float32 // as in a checkpoint
	position   []byte
	iterations int
}

func (t *Trainer) snapshot() (snapshot, error) {
	values, err := t.gatherAll()
	return snapshot{values, slices.Clone(t.position), t.iterations}, err
}

// back returns to a snapshot.
func (t *Trainer) back(to snapshot) error {
	t.iterations = to.iterations
	return errors.Join(t.scatter(to.values), t.seek(to.position))
}

// recompile compiles the network with n iterations of the technique. The caller writes what was learnt.
func (t *Trainer) recompile(n int) error {
	if n == t.solver.now {
		return nil
	}
	err := t.closeReplicas()
	t.replicas, t.solver.now = nil, n
	if err == nil {
		err = t.compile()
	}
	if err == nil {
		err = t.begin()
	}
	return err
}

// again is recompile, and goes back to a snapshot.
func (t *Trainer) again(n int, from snapshot) error {
	if err := t.recompile(n); err != nil {
		return err
	}
	return t.back(from)
}

// resume takes as many iterations as a checkpoint says.
func (t *Trainer) resume(taken []record.Taken) error {
	s := &t.solver
	if s.knob == "" || len(taken) == 0 || s.few == s.most {
		return nil
	}
	n := taken[len(taken)-1].Iterations
	if n < 1 || n > s.most {
		return fmt.Errorf("it is damaged: it says that %s takes %d iterations", t.Technique.Name(), n)
	}
	s.taken = taken
	return t.recompile(n)
}

// solved reports whether the iterations have converged for the last minibatch.
func (t *Trainer) solved() (bool, error) {
	t.solver.residual = 0
	for _, r := range t.replicas {
		residual, err := oracle.Residual(r.plan, r.program)
		if err != nil {
			return false, err
		}
		t.solver.residual = max(t.solver.residual, residual)
	}
	return t.solver.residual <= closeEnough(t.Problem), nil
}

// find finds how many iterations the next minibatch takes, unless that is known.
func (t *Trainer) find(ctx context.Context) error {
	s := &t.solver
	if s.knob == "" || len(s.taken) > 0 {
		return nil
	}
	from, err := t.snapshot()
	if err != nil {
		return err
	}
	n, err := rnn.Fewest(s.few, s.most, func(n int) (bool, error) {
		if err := t.again(n, from); err != nil {
			return false, err
		}
		if err := t.step(ctx, 1); err != nil {
			return false, errors.Join(err, t.back(from))
		}
		return t.solved()
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		return errors.Join(unsolved(s.most, s.residual), t.back(from))
	}
	s.taken = []record.Taken{{After: from.iterations, Iterations: n}}
	return t.again(n, from)
}

// solve is step, whose last minibatch is solved.
func (t *Trainer) solve(ctx context.Context, n int) error {
	from, err := t.snapshot()
	if err != nil {
		return err
	}
	s := &t.solver
	for {
		if err := t.step(ctx, n); err != nil {
			if ctx.Err() != nil {
				err = errors.Join(err, t.back(from))
			}
			return err
		}
		if ok, err := t.solved(); ok || err != nil {
			return err
		}
		if s.now >= s.most {
			err := fmt.Errorf("iteration %d: %w", t.iterations, unsolved(s.now, s.residual))
			return errors.Join(err, t.back(from))
		}
		if err := t.again(min(2*s.now, s.most), from); err != nil {
			return err
		}
		s.taken = append(s.taken, record.Taken{After: from.iterations, Iterations: s.now})
	}
}

// closeEnough is the largest residual of iterations that have converged: of the error that rounding explains, a
// tenth or, in 16 bits, all, since rounding moves states from one number to the next.
func closeEnough(p rnn.Problem) float64 {
	tolerance := oracle.Tolerance(p, false, 0)
	if p.Precision == rnn.BF16 || p.Precision == rnn.FP16 {
		return tolerance
	}
	return tolerance / 10
}
