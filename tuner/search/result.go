package search

import (
	"cmp"
	"slices"
)

// result names the winner of those that stayed to the end.
//
// The fastest is the one with the least score. Arms within the share Tie of it
// are its equals, of which the preferred one wins; an incumbent wins within the
// share Margin.
func (s *state) result() *Result {
	scores, medians := s.judge()
	r := &Result{Winner: -1, Second: -1, Fastest: -1, Medians: medians, Samples: s.samples, Left: s.left, Evaluations: s.evals, Rounds: s.done}
	final := s.finalists()
	if len(final) == 0 {
		return r
	}
	slices.SortFunc(final, func(a, b int) int { return cmp.Or(cmp.Compare(scores[a], scores[b]), s.prefer(a, b)) })
	r.Fastest, r.Winner = final[0], final[0]
	least := scores[r.Fastest]
	for _, i := range final[1:] {
		if scores[i] <= (1+s.o.Tie)*least && s.prefer(i, r.Winner) < 0 {
			r.Winner = i
		}
	}
	if k := s.o.Incumbent; k >= 0 && slices.Contains(final, k) && scores[k] <= (1+s.o.Margin)*least {
		r.Winner = k
	}
	r.Kept = r.Winner == s.o.Incumbent && r.Winner != r.Fastest
	if k := s.o.Incumbent; k >= 0 && k != r.Fastest {
		r.Behind = s.behind(k, r.Fastest, scores)
	}
	s.runnerUp(r, final, scores)
	return r
}

// judge gives every arm its score, by which all are compared, and its median, which
// is for people: 0 where nothing is known of it. What was measured before has but a
// score, which is put in the seconds of today: as much longer as the champion has
// become slower since, if it ran again.
func (s *state) judge() (scores, medians []float64) {
	today := 1.0
	if s.champion >= 0 && len(s.samples[s.champion]) > 0 {
		today = Score(s.samples[s.champion]) / s.arms[s.champion].Known
	}
	scores, medians = make([]float64, len(s.arms)), make([]float64, len(s.arms))
	for i, a := range s.arms {
		if scores[i], medians[i] = Score(s.samples[i]), median(s.samples[i]); len(s.samples[i]) == 0 {
			scores[i], medians[i] = a.Known*today, a.Known*today
		}
	}
	return scores, medians
}

// finalists are the arms that may win: those that ran to the end, in the same
// rounds, and what is known from before.
func (s *state) finalists() (final []int) {
	for i, a := range s.arms {
		ran := (s.left[i] == Finished || s.left[i] == Spent) && len(s.samples[i]) > 0
		if ran || a.Known > 0 && !a.Beaten && s.left[i] == "" {
			final = append(final, i)
		}
	}
	return final
}

// behind is how much longer arm a took than b, a share: round by round, or by their
// scores where they had no rounds together.
func (s *state) behind(a, b int, scores []float64) float64 {
	if ratio := s.ratio(a, b); ratio.N > 0 {
		return ratio.Median - 1
	}
	if scores[a] > 0 {
		return scores[a]/scores[b] - 1
	}
	return 0
}

// runnerUp finds the fastest of the others and what cannot be told from the
// winner. An arm that left after a few rounds, which say little where there is noise,
// is second only if all others did.
func (s *state) runnerUp(r *Result, final []int, scores []float64) {
	least, known := 0.0, false // of the second
	for i, score := range scores {
		if i == r.Winner || score == 0 {
			continue
		}
		lead, ratio := s.behind(i, r.Winner, scores), s.ratio(i, r.Winner)
		stayed := slices.Contains(final, i) || len(s.samples[i]) >= decisive
		if stayed && (lead <= s.o.Tie || ratio.Lo != nil && *ratio.Lo <= 1) {
			r.Ties = append(r.Ties, i)
		}
		if r.Second >= 0 && (known && !stayed || known == stayed && lead >= least) {
			continue
		}
		r.Second, least, known, r.Lead, r.Lo, r.Hi = i, lead, stayed, lead, nil, nil
		if ratio.Lo != nil {
			lo, hi := *ratio.Lo-1, *ratio.Hi-1
			r.Lo, r.Hi = &lo, &hi
		}
	}
}
