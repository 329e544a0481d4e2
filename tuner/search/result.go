package search

import (
	"cmp"
	"slices"
)

// result names the winner among the finalists.
//
// The fastest is the arm with the least score. Arms within the share Tie of it are its equals, of
// which the preferred one wins. An incumbent wins within the share Margin.
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

// judge gives every arm its score, by which arms are compared, and its median, which is reported;
// 0: unknown. An arm of an earlier search has only its Known score. It is multiplied by how much
// slower the champion is today, if the champion ran again.
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

// finalists returns the arms that may win: those that ran in all rounds, and known ones that were not
// beaten.
func (s *state) finalists() (final []int) {
	for i, a := range s.arms {
		ran := (s.left[i] == Finished || s.left[i] == Spent) && len(s.samples[i]) > 0
		if ran || a.Known > 0 && !a.Beaten && s.left[i] == "" {
			final = append(final, i)
		}
	}
	return final
}

// behind is how much longer arm a took than b, as a share: the median over common rounds, or by
// their scores where they have none.
func (s *state) behind(a, b int, scores []float64) float64 {
	if v := s.ratio(b, a); v.Value > 0 {
		return v.Value - 1
	}
	if scores[a] > 0 {
		return scores[a]/scores[b] - 1
	}
	return 0
}

// runnerUp finds the fastest of the others, and the arms that cannot be told from the winner. An arm
// that left after a few rounds is second only if all others did, since few samples tell little.
func (s *state) runnerUp(r *Result, final []int, scores []float64) {
	least, known := 0.0, false // of the second: its lead, and whether it stayed
	for i, score := range scores {
		if i == r.Winner || score == 0 {
			continue
		}
		lead, ratio := s.behind(i, r.Winner, scores), s.ratio(r.Winner, i)
		stayed := slices.Contains(final, i) || len(s.samples[i]) >= decisive
		if stayed && (lead <= s.o.Tie || ratio.Known() && !ratio.Leads()) {
			r.Ties = append(r.Ties, i)
		}
		if r.Second >= 0 && (known && !stayed || known == stayed && lead >= least) {
			continue
		}
		r.Second, least, known, r.Lead, r.Lo, r.Hi = i, lead, stayed, lead, nil, nil
		if ratio.Known() {
			lo, hi := ratio.Lo-1, ratio.Hi-1
			r.Lo, r.Hi = &lo, &hi
		}
	}
	r.Clear = len(r.Ties) == 0 && (r.Second < 0 || r.Lo != nil)
}
