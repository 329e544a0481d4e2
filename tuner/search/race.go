package search

import (
	"cmp"
	"math"
	"slices"

	"rnnbench/results"
)

// A race starts with the arms that may win by what is expected of them, and drops
// arms after each round, so that rounds are for those that still may.
//
// What it believes of an arm is its score so far, drawn towards what is expected
// the more the less is known: a fast arm survives a disturbed sample, and a lucky
// one does not make a slow arm fast. By that belief so many arms go on that a race
// takes a fifth of the samples that all arms in all rounds would, at most. After
// some rounds an arm leaves as well that is not faster than the leader, as far as
// can be told, by more than near: which of such two wins does not matter, unless
// it is to be preferred among equals.
//
// The incumbent starts, and is not subject to the quota: it is to be beaten.

const (
	unlikely = 0.15   // how much longer than the best an arm may be expected to take and start, a log
	share    = 1. / 5 // of the samples that all arms in all rounds would take
	few      = 8      // arms that start whatever is expected
	least    = 4      // arms that go on while they cannot be told apart
	decisive = 8      // rounds before arms can be
	sure     = 2      // standard errors by which they are
	near     = 0.03   // share within which one arm is as good as another
)

// quota is how many of n arms, of which so many started, go on after a round of
// so many. It falls as 1/round, by which what a fast arm loses to disturbed
// samples is made up for by the rounds that those near it are given.
func quota(n, started, round, rounds int) int {
	harmonic := 0.0
	for r := 1; r < rounds; r++ {
		harmonic += 1 / float64(r)
	}
	each := max(0, (share*float64(n*rounds)-float64(started))/harmonic) // after the first round
	return max(least, int(each/float64(round)))
}

// passOver has arms leave that are not expected to win, but for the most promising
// few.
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

// race drops what cannot win any more and reports whether it is over.
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
		if place+1 >= places && i != s.o.Incumbent || s.done >= decisive && told {
			out = append(out, i)
		}
	}
	if err := s.leave(Slower, out...); err != nil {
		return false, err
	}
	return s.done >= s.o.Rounds || len(s.live) == 1 && s.done >= decisive, nil
}

// allowance is the share by which arm i may be slower than the leader and win.
func (s *state) allowance(i, leader int) float64 {
	switch {
	case i == s.o.Incumbent:
		return s.o.Margin
	case s.prefer(i, leader) < 0:
		return s.o.Tie
	}
	return 0
}

// A belief is what is thought of an arm: the log of its seconds.
type belief struct{ mean, variance float64 }

// beliefs are those of the arms that are left, by their numbers.
func (s *state) beliefs() map[int]belief {
	var samples [][]float64
	var beyond []float64
	for _, i := range s.live {
		samples = append(samples, s.samples[i])
		beyond = append(beyond, math.Log(Score(s.samples[i]))-s.arms[i].Expected)
	}
	level := median(beyond) // what the fastest is expected to take
	sigma := noise(samples)
	of := make(map[int]belief, len(s.live))
	for k, i := range s.live {
		a := s.arms[i]
		v := 1.4 * sigma * sigma / float64(len(samples[k])) // of a score: half of the samples count
		weight := 1.0
		if a.Doubt > 0 {
			weight = a.Doubt * a.Doubt / (a.Doubt*a.Doubt + v)
		}
		of[i] = belief{a.Expected + level + weight*(beyond[k]-level), weight * v}
	}
	return of
}

// ratio summarizes how much longer arm a takes than b, round by round.
func (s *state) ratio(a, b int) results.Stats {
	n := min(len(s.samples[a]), len(s.samples[b]))
	ratios := make([]float64, n)
	for k := range ratios {
		ratios[k] = s.samples[a][k] / s.samples[b][k]
	}
	st, _ := results.Summarize(ratios, 0)
	return st
}

// prefer orders arms that are as fast: first the incumbent, then less memory,
// then what is simpler.
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
