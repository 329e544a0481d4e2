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
	r := &Result{Winner: -1, Second: -1, Fastest: -1, Medians: make([]float64, len(s.arms)), Samples: s.samples, Left: s.left, Evaluations: s.evals, Rounds: s.done}
	for i := range s.arms {
		r.Medians[i] = median(s.samples[i])
	}
	s.recall(r.Medians)
	final, scores := s.finalists(r.Medians)
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
		r.Behind = s.behind(k, r.Fastest, r.Medians)
	}
	s.runnerUp(r, final)
	return r
}

// finalists are the arms that may win, with their scores: those that ran to the
// end, in the same rounds, and what is known from before.
func (s *state) finalists(medians []float64) (final []int, scores []float64) {
	scores = slices.Clone(medians)
	for i, a := range s.arms {
		switch {
		case (s.left[i] == Finished || s.left[i] == Spent) && len(s.samples[i]) > 0:
			final, scores[i] = append(final, i), Score(s.samples[i])
		case a.Known > 0 && !a.Beaten && s.left[i] == "":
			final = append(final, i)
		}
	}
	return final, scores
}

// behind is how much longer arm a took than b, a share.
func (s *state) behind(a, b int, medians []float64) float64 {
	if ratio := s.ratio(a, b); ratio.N > 0 {
		return ratio.Median - 1
	}
	if medians[a] > 0 {
		return medians[a]/medians[b] - 1
	}
	return 0
}

// recall fills in the scores of what was measured before, in the seconds of today:
// by as much as the champion has become slower since, if it ran again.
func (s *state) recall(medians []float64) {
	today := 1.0
	if s.champion >= 0 && len(s.samples[s.champion]) > 0 {
		today = Score(s.samples[s.champion]) / s.arms[s.champion].Known
	}
	for i, a := range s.arms {
		if medians[i] == 0 && a.Known > 0 {
			medians[i] = a.Known * today
		}
	}
}

// runnerUp finds the fastest of the others and what cannot be told from the
// winner. An arm that left after a few rounds, which say little where there is noise,
// is second only if all others did.
func (s *state) runnerUp(r *Result, final []int) {
	least, known := 0.0, false // of the second
	for i, m := range r.Medians {
		if i == r.Winner || m == 0 {
			continue
		}
		lead, ratio := s.behind(i, r.Winner, r.Medians), s.ratio(i, r.Winner)
		stayed := slices.Contains(final, i) || len(s.samples[i]) >= decisive
		if stayed && (m <= (1+s.o.Tie)*r.Medians[r.Winner] || ratio.Lo != nil && *ratio.Lo <= 1) {
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
