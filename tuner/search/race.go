package search

import (
	"cmp"
	"math"
	"slices"

	"rnnbench/record"
)

// A race starts with the arms that are expected to be fast enough to win. It drops arms after each
// round, so that later rounds measure only arms that may still win.
//
// The belief about an arm is its score so far, drawn towards its expectation. The fewer samples
// there are, the stronger the pull: a fast arm survives a disturbed sample, and a lucky sample does
// not make a slow arm fast. A quota by belief keeps a race within a fifth of the samples that all
// arms in all rounds would take. After some rounds, arms also leave that are surely not faster than
// the leader by more than near. Which of two such arms wins does not matter, unless one is preferred
// among equals.
//
// The incumbent always starts and is exempt from the quota, since others have to beat it.

const (
	unlikely = 0.15   // an arm starts if its Expected is at most this much above the least
	share    = 1. / 5 // of the samples that all arms in all rounds would take
	few      = 8      // most promising arms, which always start
	least    = 4      // arms that go on while they cannot be told apart
	decisive = 8      // rounds before arms can be told apart
	sure     = 2      // standard errors by which arms are told apart
	near     = 0.03   // share within which one arm is as good as another
)

// quota is how many of n arms, of which started ran in the first round, go on after that round of
// rounds. It falls as 1/round, so that a fast arm with disturbed samples stays long enough to recover.
func quota(n, started, round, rounds int) int {
	harmonic := 0.0
	for r := 1; r < rounds; r++ {
		harmonic += 1 / float64(r)
	}
	each := max(0, (share*float64(n*rounds)-float64(started))/harmonic) // after the first round
	return max(least, int(each/float64(round)))
}

// passOver drops arms that are not expected to win, except the most promising few.
func (s *state) passOver() error {
	order := slices.Clone(s.live)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.arms[a].Expected, s.arms[b].Expected) })
	var out []int
	for place, i := range order {
		if place >= few && s.arms[i].Expected-s.arms[order[0]].Expected > unlikely && i != s.o.Incumbent && i != s.champion {
			out = append(out, i)
		}
	}
	if err := s.leave(Unlikely, out...); err != nil {
		return err
	}
	s.started = len(s.live)
	return nil
}

// race drops arms that can no longer win and reports whether the race is over.
func (s *state) race() (bool, error) {
	if len(s.live) == 0 {
		return true, nil
	}
	beliefs := s.beliefs()
	order := slices.Clone(s.live)
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(beliefs[a].mean, beliefs[b].mean), s.prefer(a, b)) })
	first := order[0]
	leader := beliefs[first]
	places := quota(len(s.arms)+s.o.Dropped, s.started, s.done, s.o.Rounds)
	var out []int
	for place, i := range order[1:] {
		b := beliefs[i]
		told := b.mean-leader.mean > max(sure*math.Sqrt(b.variance+leader.variance)-near, math.Log1p(s.allowance(i, first)))
		if s.o.Longer != nil && told { // there is time to be sure
			told = s.ratio(first, i).Leads()
		}
		if place+1 >= places && i != s.o.Incumbent || s.done >= decisive && told {
			out = append(out, i)
		}
	}
	if err := s.leave(Slower, out...); err != nil {
		return false, err
	}
	return s.enough() || len(s.live) == 1 && s.done >= decisive, nil
}

// allowance is the share by which arm i may be slower than the leader and still win.
func (s *state) allowance(i, leader int) float64 {
	switch {
	case i == s.o.Incumbent:
		return s.o.Margin
	case s.prefer(i, leader) < 0:
		return s.o.Tie
	}
	return 0
}

// A belief is the estimate of the log of an arm's seconds.
type belief struct{ mean, variance float64 }

// beliefs returns the beliefs of the live arms, by number.
func (s *state) beliefs() map[int]belief {
	var samples [][]float64
	var beyond []float64
	for _, i := range s.live {
		samples = append(samples, s.samples[i])
		beyond = append(beyond, math.Log(Score(s.samples[i]))-s.arms[i].Expected)
	}
	level := median(beyond) // log of the seconds that the fastest should take
	sigma := noise(samples)
	of := make(map[int]belief, len(s.live))
	for k, i := range s.live {
		a := s.arms[i]
		v := 1.4 * sigma * sigma / float64(len(samples[k])) // variance of a score, which uses half of the samples
		weight := 1.0
		if a.Doubt > 0 {
			weight = a.Doubt * a.Doubt / (a.Doubt*a.Doubt + v)
		}
		of[i] = belief{a.Expected + level + weight*(beyond[k]-level), weight * v}
	}
	return of
}

// ratio says how many times as fast arm a is as b, round by round.
func (s *state) ratio(a, b int) record.Interval {
	return record.Paired(s.samples[a], s.samples[b])
}

// prefer orders equally fast arms: first the incumbent, then less memory, then the simpler one.
func (s *state) prefer(a, b int) int {
	for _, d := range []int64{
		rank(b == s.o.Incumbent) - rank(a == s.o.Incumbent),
		s.arms[a].Memory - s.arms[b].Memory,
		int64(s.arms[a].Rank - s.arms[b].Rank),
		int64(a - b),
	} {
		if d != 0 {
			return int(max(-1, min(1, d)))
		}
	}
	return 0
}

func rank(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
