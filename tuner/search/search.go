// Package search finds the fastest of several candidates with few measurements.
//
// It knows candidates by number and asks a Bench for one sample after another.
// It therefore runs on recorded samples as it does on a device.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Bench takes samples.
type Bench interface {
	// Measure takes one sample of an arm and returns the seconds of one run.
	// Beyond limit, where it is not 0, the arm is out of the race, so that a
	// rough sample will do. An error that wraps ErrOut says that the arm
	// declines, breaks or is wrong; any other ends the search.
	Measure(ctx context.Context, arm int, limit float64) (float64, error)

	// Leave says that an arm is measured no more, and why.
	Leave(arm int, why Reason) error
}

// A Planner is a bench that is told the arms in the order in which they start.
type Planner interface {
	Plan(order []int)
}

// ErrOut marks an arm that cannot be measured.
var ErrOut = errors.New("candidate cannot be measured")

// A Reason says why an arm is measured no more.
type Reason string

// What ends the measuring of an arm.
const (
	Finished Reason = "finished" // the search is over and it was still in it
	Slower   Reason = "slower"   // others were faster
	Bounded  Reason = "bounded"  // it cannot be as fast as others were, and never ran
	Unlikely Reason = "unlikely" // it is expected to be slower than others, and never ran
	Spent    Reason = "spent"    // so is the budget
	Out      Reason = "out"      // it cannot be measured
)

// An Arm is a candidate.
type Arm struct {
	Bound  float64 // seconds that a run takes at least; 0: unknown
	Memory int64   // bytes; of equals, the one with less is preferred
	Rank   int     // and then the lower one, which is simpler

	Predicted float64 // seconds of a run by a cost model; 0: unknown. The first round is in this order

	Known  float64 // seconds of a run, the score of before; 0: not measured yet
	Beaten bool    // it is known and lost when it was measured

	// Expected is how much longer than the fastest it should take, as a log, by what
	// was seen at other points, and Doubt the standard deviation of that; 0: nothing
	// is expected.
	Expected, Doubt float64
}

// Strategies names the ways to search, the default first.
func Strategies() []string { return []string{"racing", "exhaustive", "random"} }

// Options say how to search.
type Options struct {
	Strategy  string
	Seed      uint64
	Rounds    int         // samples of an arm that stays to the end
	MaxEvals  int         // samples in all; 0: any number
	Dropped   int         // candidates that are no arms: each leaves its share of the samples to them
	Spent     func() bool // whether the time is; nil: there is enough
	Tie       float64     // share by which tied candidates may differ
	Incumbent int         // arm that wins unless it is beaten by Margin; -1: none
	Margin    float64     // a share
}

// A Result is what came of a search.
type Result struct {
	Winner int // -1: no arm can be measured
	Second int // the fastest of the others, of those that stayed if any did; -1: there is none
	// Lead is how much longer Second takes, a share, from samples of the same
	// rounds, or from the scores where it ran in none. Lo and Hi are the ends of its interval, where there are rounds
	// enough for one.
	Lead   float64
	Lo, Hi *float64

	// Behind is how much longer the incumbent took than the fastest, a share, from
	// samples of the same rounds, or from the scores; 0 where there is none.
	Behind float64

	Fastest int   // by the score alone; the winner or one of its equals
	Ties    []int // others that cannot be told from the winner
	Kept    bool  // the incumbent won and was not the fastest

	Medians     []float64 // of every arm; the score of before in the seconds of today where it did not run, 0 where there is none
	Samples     [][]float64
	Left        []Reason // why each was measured no more
	Evaluations int      // samples taken
	Rounds      int
	Complete    bool // false: the budget was spent first
}

// Run searches arms on b.
func Run(ctx context.Context, arms []Arm, b Bench, o Options) (*Result, error) {
	s := &state{arms: arms, bench: b, o: o, rng: rand.New(rand.NewPCG(o.Seed, 0)), samples: make([][]float64, len(arms)), left: make([]Reason, len(arms))}
	s.enter()
	var err error
	complete := true
	switch o.Strategy {
	case "racing":
		if err = s.passOver(); err == nil {
			complete, err = s.rounds(ctx, s.race)
		}
	case "exhaustive":
		complete, err = s.rounds(ctx, s.all)
	case "random":
		s.draw()
		complete, err = s.rounds(ctx, s.all)
	default:
		return nil, fmt.Errorf("search: unknown strategy %q", o.Strategy)
	}
	if err != nil {
		return nil, err
	}
	r := s.result()
	r.Complete = complete
	return r, nil
}

// A state is a search that is under way.
type state struct {
	arms  []Arm
	bench Bench
	o     Options
	rng   *rand.Rand

	champion int // of those that were measured before; -1: none
	started  int // arms in the first round
	live     []int
	samples  [][]float64 // by arm; those in live have as many as there were rounds
	left     []Reason    // by arm; "": in live, or measured before
	evals    int
	done     int // rounds
}

// enter lets into the race what is new and, to compare with, the fastest of what
// is known: medians of other days are no rivals of today's.
func (s *state) enter() {
	s.champion = -1
	for i, a := range s.arms {
		switch {
		case a.Known == 0:
			s.live = append(s.live, i)
		case !a.Beaten && (s.champion < 0 || a.Known < s.arms[s.champion].Known):
			s.champion = i
		}
	}
	if len(s.live) > 0 && s.champion >= 0 {
		s.live = append(s.live, s.champion)
	}
	s.started = len(s.live)
}

// draw keeps a random part of the arms: as many as the evaluations are enough
// for, or a fifth. Which ones does not depend on what is known already.
func (s *state) draw() {
	n := (len(s.arms) + 4) / 5
	if s.o.MaxEvals > 0 {
		n = s.o.MaxEvals / max(1, s.o.Rounds)
	}
	drawn := s.rng.Perm(len(s.arms))[:min(max(n, 1), len(s.arms))]
	s.live = slices.DeleteFunc(s.live, func(i int) bool {
		if slices.Contains(drawn, i) || i == s.champion || i == s.o.Incumbent {
			return false
		}
		s.left[i] = Spent
		return true
	})
}

// rounds takes samples in turns until sift, which drops arms after each round,
// says that it is enough. It reports whether that was within the budget.
func (s *state) rounds(ctx context.Context, sift func() (bool, error)) (bool, error) {
	for len(s.live) > 0 {
		order := slices.Clone(s.live)
		s.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if s.done == 0 { // a good limit from the start
			first := func(i int) float64 {
				if i == s.o.Incumbent || i == s.champion {
					return -1
				}
				return s.arms[i].Expected
			}
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(first(a), first(b)), s.predicted(a, b)) })
			if b, ok := s.bench.(Planner); ok {
				b.Plan(slices.Clone(order))
			}
		}
		for _, i := range order {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if s.o.MaxEvals > 0 && s.evals >= s.o.MaxEvals || s.o.Spent != nil && s.o.Spent() {
				return false, s.leave(Spent, slices.Clone(s.live)...)
			}
			if err := s.sample(ctx, i); err != nil {
				return false, err
			}
		}
		s.done++
		enough, err := sift()
		if err != nil {
			return false, err
		}
		if enough {
			break
		}
	}
	return true, s.leave(Finished, slices.Clone(s.live)...)
}

// predicted orders arms by what a cost model expects; what is unknown comes last.
func (s *state) predicted(a, b int) int {
	x, y := s.arms[a].Predicted, s.arms[b].Predicted
	return cmp.Or(cmp.Compare(rank(x == 0), rank(y == 0)), cmp.Compare(x, y))
}

// hopeless is how many times as long as the best so far the first sample of an arm
// may be before a rough one will do.
const hopeless = 2

// sample takes one sample of arm i.
func (s *state) sample(ctx context.Context, i int) error {
	best := s.best()
	if s.done == 0 && best > 0 && s.arms[i].Bound > best {
		return s.leave(Bounded, i)
	}
	limit := 0.0
	if s.o.Strategy == "racing" && s.done == 0 {
		limit = best * hopeless
	}
	t, err := s.bench.Measure(ctx, i, limit)
	if errors.Is(err, ErrOut) {
		return s.leave(Out, i)
	}
	if err != nil {
		return err
	}
	s.evals++
	s.samples[i] = append(s.samples[i], t)
	return nil
}

// best is the least median of the arms that are in the race, 0 if none has one.
func (s *state) best() float64 {
	best := 0.0
	for _, i := range s.live {
		if m := median(s.samples[i]); m > 0 && (best == 0 || m < best) {
			best = m
		}
	}
	return best
}

// leave takes arms out of the race.
func (s *state) leave(why Reason, arms ...int) error {
	for _, i := range arms {
		s.left[i] = why
		if why != Out {
			if err := s.bench.Leave(i, why); err != nil {
				return err
			}
		}
	}
	s.live = slices.DeleteFunc(s.live, func(i int) bool { return s.left[i] != "" })
	return nil
}

// all keeps every arm for all rounds.
func (s *state) all() (bool, error) { return s.done >= s.o.Rounds, nil }
