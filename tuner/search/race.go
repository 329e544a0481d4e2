package search

import (
	"slices"

	"rnnbench/results"
)

// A race drops arms after each round by three rules.
//
// An arm whose shortest sample is longer than the leader's median by the slack
// of the round is slower whatever disturbed it: noise makes runs longer. Slack
// shrinks as medians settle. Then halving: rounds are for those that may still
// win, so that of n arms at most n/4 go on after the first round, n/8 after the
// second, and so on. And once there are rounds enough for an interval, an arm
// leaves whose ratio to the leader in the same rounds is above 1 with it.
//
// The last two stay until it is clear by how much one leads, or to the last
// round. The incumbent is not subject to halving: it is to be beaten.

// decisive is the fewest rounds that give an interval of a median.
const decisive = 6

// slack is how far beyond the leader's median an arm's shortest sample may be
// after so many rounds.
func slack(rounds int) float64 {
	switch rounds {
	case 1:
		return 1.5
	case 2:
		return 1.25
	case 3:
		return 1.15
	}
	return 1.1
}

// quota is how many of n arms go on after so many rounds.
func quota(n, rounds int) int { return max(2, n>>min(rounds+1, 62)) }

// race drops what cannot win any more and reports whether it is over.
func (s *state) race() (bool, error) {
	if len(s.live) == 0 {
		return true, nil
	}
	slices.SortStableFunc(s.live, func(a, b int) int { return s.compare(a, b) })
	leader := s.live[0]
	best := median(s.samples[leader])
	var out []int
	for place, i := range s.live[1:] {
		switch {
		case slices.Min(s.samples[i]) > slack(s.done)*best:
			out = append(out, i)
		case place+1 >= quota(s.started, s.done) && i != s.o.Incumbent:
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

// decided reports whether every arm that is left either loses to the leader or
// equals it.
func (s *state) decided(leader int) bool {
	for _, i := range s.live {
		if i == leader {
			continue
		}
		r := s.ratio(i, leader)
		if r.Lo == nil || !(*r.Lo > 1 || *r.Lo >= 1-s.o.Tie && *r.Hi <= 1+s.o.Tie) {
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

// compare orders arms by their medians, equals by preference.
func (s *state) compare(a, b int) int {
	ma, mb := median(s.samples[a]), median(s.samples[b])
	switch {
	case ma < mb:
		return -1
	case ma > mb:
		return 1
	}
	return s.prefer(a, b)
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
