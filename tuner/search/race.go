package search

import (
	"cmp"
	"math"
	"slices"

	"rnnbench/results"
)

// A race drops arms after each round by three rules, all of which compare samples
// of the same rounds.
//
// An arm whose best sample is longer than the leader's usual ones by the slack of
// the round is slower whatever disturbed it: noise makes runs longer. Slack
// shrinks as medians settle. Then rounds are for those that may still win: after
// each, so many go on that a race takes a sixth of the samples that all arms in
// all rounds would. And once there are rounds enough for an interval, an arm
// leaves whose ratio to the leader is above 1 with it.
//
// The last two stay until neither may be faster than the leader by more than
// equals may differ, or to the last round. The incumbent is not subject to the
// second rule: it is to be beaten.

// decisive is the fewest rounds that give an interval of a median.
const decisive = 6

// slack is how far beyond the leader's median an arm's shortest sample may be
// after so many rounds.
func slack(rounds int) float64 {
	switch rounds {
	case 1:
		return 2
	case 2:
		return 1.4
	case 3:
		return 1.2
	}
	return 1.12
}

// quota is how many of n arms go on after a round of so many. It falls as 1/round,
// by which what a fast arm loses to a disturbed sample is made up for by the
// rounds that those near it are given.
func quota(n, round, rounds int) int {
	const share = 1. / 6
	harmonic := 0.0
	for r := 1; r < rounds; r++ {
		harmonic += 1 / float64(r)
	}
	least := 2
	if round < rounds/3 {
		least = 4
	}
	each := max(0, (share*float64(rounds)-1)/harmonic) // after the first round, in which all n run
	return max(least, int(math.Ceil(float64(n)*each/float64(round))))
}

// race drops what cannot win any more and reports whether it is over.
func (s *state) race() (bool, error) {
	if len(s.live) == 0 {
		return true, nil
	}
	order, best := s.standings()
	leader := order[0]
	var out []int
	for place, i := range order[1:] {
		switch {
		case slices.Min(relative(s.samples[i], s.typical)) > slack(s.done)*best:
			out = append(out, i)
		case place+1 >= quota(s.started, s.done, s.o.Rounds) && i != s.o.Incumbent:
			out = append(out, i)
		case s.done >= decisive && place > 0:
			if r := s.ratio(i, leader); r.Lo != nil && *r.Lo > 1 {
				out = append(out, i)
			}
		}
	}
	if n := len(s.live) - len(out); n == 1 && s.done < decisive && len(out) > 0 {
		out = out[1:] // the runner-up stays, to say by how much it is slower
	}
	if err := s.leave(Slower, out...); err != nil {
		return false, err
	}
	return s.done >= s.o.Rounds || s.done >= decisive && s.decided(leader), nil
}

// standings sorts the arms that are left by their scores, and returns the least.
// typical is what the scores are relative to.
func (s *state) standings() (order []int, best float64) {
	samples := make([][]float64, len(s.live))
	for k, i := range s.live {
		samples[k] = s.samples[i]
	}
	s.typical = typical(samples)
	scores := map[int]float64{}
	for _, i := range s.live {
		scores[i] = median(relative(s.samples[i], s.typical))
	}
	order = slices.Clone(s.live)
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(scores[a], scores[b]), s.prefer(a, b)) })
	return order, scores[order[0]]
}

// decided reports whether no arm that is left can be faster than the leader by
// more than equals may differ.
func (s *state) decided(leader int) bool {
	for _, i := range s.live {
		if i == leader {
			continue
		}
		if r := s.ratio(i, leader); r.Lo == nil || *r.Lo < 1-s.o.Tie {
			return false
		}
	}
	return true
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
