// Package search finds the fastest of several candidates with few measurements.
//
// It knows candidates only by number and asks a Bench for one sample after another. So it can run on
// recorded samples as well as on a device.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"rnnbench/record"
)

// A Bench takes samples.
type Bench interface {
	// Measure takes one sample of an arm and returns the seconds (or joules) of one run. An arm
	// slower than limit is out of the race, so a rough sample will do; limit 0: none. An error
	// that wraps ErrOut says that the arm declined, failed or is wrong. Any other error ends the search.
	Measure(ctx context.Context, arm int, limit float64) (float64, error)

	// Leave is called when an arm will not be measured again, with the reason. An error that wraps
	// ErrOut says that the arm turned out to be wrong. Leave is not called
	// for Out.
	Leave(arm int, why Reason) error
}

// A Planner is a bench that is told the order in which arms start.
type Planner interface {
	Plan(order []int)
}

// ErrOut marks an arm that cannot be measured.
var ErrOut = errors.New("candidate cannot be measured")

// A Reason says why an arm is measured no more.
type Reason string

// What ends the measuring of an arm.
const (
	Finished Reason = "finished" // it stayed until the search was over
	Slower   Reason = "slower"   // others were faster
	Bounded  Reason = "bounded"  // its bound is slower than the best; it never ran
	Unlikely Reason = "unlikely" // it was expected to be slower than others; it never ran
	Spent    Reason = "spent"    // the budget was spent
	Out      Reason = "out"      // it cannot be measured
)

// An Arm is a candidate.
type Arm struct {
	Bound  float64 // least seconds of a run; 0: unknown
	Memory int64   // bytes; among equals, less is preferred
	Rank   int     // among equals with equal memory, the lower rank is preferred: it is simpler

	Predicted float64 // seconds of a run by a cost model, which orders the first round; 0: unknown

	Known  float64 // score from an earlier search, in seconds; 0: not measured yet
	Beaten bool    // it lost that earlier search

	Hinted bool // it won on another machine: it starts before those that did not

	// Expected is the log of its time over the fastest one's, as expected from other points, and
	// Doubt is the standard deviation of Expected; 0: no expectation.
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
	Dropped   int         // candidates that are no arms; their share of the samples goes to the arms
	Spent     func() bool // whether the time is spent; nil: never
	Longer    func() bool // whether rounds may go on after Rounds, while the winner is open; nil: never
	Tie       float64     // share by which equals may differ
	Incumbent int         // arm that wins unless one is faster by Margin; -1: none
	Margin    float64     // a share
}

// A Result is the outcome of a search. Arms are given by number.
type Result struct {
	Winner int // -1: no arm can be measured
	Second int // the fastest of the others, preferably one that stayed; -1: there is none
	// Lead is how much longer Second takes than Winner, as a share. It is from samples of the same
	// rounds, or from the scores if they share none. Lo and Hi are its interval; nil: too few rounds.
	Lead   float64
	Lo, Hi *float64

	Clear bool // Winner leads all others, or there are none: see record.Interval.Leads

	// Behind is how much longer the incumbent takes than Fastest, computed like Lead; 0: there is no
	// incumbent, or it is the fastest.
	Behind float64

	Fastest int   // the arm with the least score: the winner or one of its equals
	Ties    []int // other arms that cannot be told from the winner
	Kept    bool  // the incumbent won and was not the fastest

	// Medians has the median of each arm. An arm that did not run has its Known score, scaled to
	// today's speed; 0: unknown.
	Medians     []float64
	Samples     [][]float64
	Left        []Reason // why measuring each arm ended
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

// A state is a running search.
type state struct {
	arms  []Arm
	bench Bench
	o     Options
	rng   *rand.Rand

	champion int // the fastest arm of earlier searches; -1: none
	started  int // arms in the first round
	live     []int
	samples  [][]float64 // by arm; live arms have one per round
	left     []Reason    // by arm; "": live, or measured before
	evals    int
	done     int // rounds
}

// enter makes the new arms live and, to compare with, the fastest known one. Medians of another day
// cannot be compared with today's.
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

// draw keeps random arms: as many as the evaluations suffice for, or a fifth. The draw does not
// depend on what is known already.
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

// rounds takes samples in turns. After each round sift drops arms and reports whether to stop.
// rounds returns false if the budget was spent first.
func (s *state) rounds(ctx context.Context, sift func() (bool, error)) (bool, error) {
	for len(s.live) > 0 {
		order := slices.Clone(s.live)
		s.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if s.done == 0 { // the most promising first, so that the limit is low from the start
			first := func(i int) float64 {
				switch {
				case i == s.o.Incumbent || i == s.champion:
					return -2
				case s.arms[i].Hinted:
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
				if s.done >= s.o.Rounds { // only the extra rounds are cut short
					return true, s.leave(Finished, slices.Clone(s.live)...)
				}
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

// predicted orders arms by predicted time; arms without a prediction come last.
func (s *state) predicted(a, b int) int {
	x, y := s.arms[a].Predicted, s.arms[b].Predicted
	return cmp.Or(cmp.Compare(rank(x == 0), rank(y == 0)), cmp.Compare(x, y))
}

// hopeless is the limit of an arm's first sample as a multiple of the best median so far. Beyond it a
// rough sample will do.
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

// best is the least median of the live arms; 0: none has samples.
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
			switch err := s.bench.Leave(i, why); {
			case errors.Is(err, ErrOut):
				s.left[i] = Out
			case err != nil:
				return err
			}
		}
		if s.left[i] == Out { // it is compared with no other
			s.samples[i] = nil
		}
	}
	s.live = slices.DeleteFunc(s.live, func(i int) bool { return s.left[i] != "" })
	return nil
}

// all keeps every arm for all rounds.
func (s *state) all() (bool, error) { return s.enough(), nil }

// enough reports whether the rounds are over. While the winner is open, they go on as long as Longer
// allows.
func (s *state) enough() bool {
	return s.done >= s.o.Rounds && (s.o.Longer == nil || s.settled() || !s.o.Longer())
}

// settled reports whether more rounds of the live arms would not change who wins.
func (s *state) settled() bool {
	var samples [][]float64
	for _, i := range s.live {
		samples = append(samples, s.samples[i])
	}
	return record.Settled(samples)
}
