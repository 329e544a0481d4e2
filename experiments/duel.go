package experiments

import (
	"fmt"
	"math"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// A duel holds how many times as fast rnnbench is as a rival, at several points.
type duel []estimate

// add adds a point; what is missing adds nothing.
func (d *duel) add(rival, own *record.Record) {
	if e := timesAsFast(rival, own); e.known() {
		*d = append(*d, e)
	}
}

// brief spells the mean, such as "2.78× as fast as cuDNN (2.75 to 2.81)".
func (d duel) brief(rival string) string {
	mean := meanOf(d)
	s := fmt.Sprintf("%.2f× as fast as %s", mean.at, rival)
	if ends := mean.ends("%.2f"); ends != "" {
		s += " (" + ends + ")"
	}
	return s
}

// full spells the mean with its interval and the range of the points. things are what the points are,
// in the singular.
func (d duel) full(rival, things string) string {
	mean := meanOf(d)
	lo, hi := math.Inf(1), 0.0
	var slower votes
	for _, e := range d {
		lo, hi = min(lo, e.at), max(hi, e.at)
		slower.add(below(1).holds(e))
	}
	words := []string{"geometric mean of " + quantity.Plural(len(d), things)}
	if ends := mean.ends("%.2f"); ends != "" {
		words[0] += ", " + ends
	}
	words = append(words, fmt.Sprintf("range %.2f× to %.2f×", lo, hi), fmt.Sprintf("clearly slower at %d", slower.yes))
	if slower.open > 0 {
		words = append(words, fmt.Sprintf("even within intervals at %d", slower.open))
	}
	return fmt.Sprintf("%.2f× as fast as %s (%s)", mean.at, rival, strings.Join(words, "; "))
}

// leader returns the fastest of several labels at a point, and whether it is clear that all others
// there are slower. It is nil if none is ok.
func leader(recs []record.Record, labels []string, at func(record.Point) bool) (best *record.Record, alone bool) {
	best = fastest(recs, labels, at)
	if best == nil {
		return nil, false
	}
	for _, l := range labels {
		if r := find(recs, l, at); r != nil && r.Impl.Label != best.Impl.Label && above(1).holds(timesAsFast(r, best)) != yes {
			return best, false
		}
	}
	return best, true
}

// A score counts at how many points each technique is clearly the fastest.
type score struct {
	won   map[string]int
	tied  int
	total int
}

func (s *score) add(best *record.Record, clear bool) {
	if s.won == nil {
		s.won = map[string]int{}
	}
	s.total++
	if clear {
		s.won[best.Impl.Label]++
	} else {
		s.tied++
	}
}

// text is such as "naive at 1, persistent at 3; without a clear lead at 2", in the order of names.
func (s score) text(names []string) string {
	var parts []string
	for _, n := range names {
		if s.won[n] > 0 {
			parts = append(parts, fmt.Sprintf("%s at %d", n, s.won[n]))
		}
	}
	text := strings.Join(parts, ", ")
	switch {
	case s.tied > 0 && text == "":
		return fmt.Sprintf("without a clear lead at %d", s.tied)
	case s.tied > 0:
		text += fmt.Sprintf("; without a clear lead at %d", s.tied)
	}
	return text
}
