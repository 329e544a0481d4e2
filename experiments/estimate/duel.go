package estimate

import (
	"fmt"
	"math"
	"strings"

	"rnnbench/experiments/pick"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// A Duel holds how many times as fast rnnbench is as a rival, at several points.
type Duel []Estimate

// Add adds a point; what is missing adds nothing.
func (d *Duel) Add(rival, own *record.Record) {
	if e := TimesAsFast(rival, own); e.Known() {
		*d = append(*d, e)
	}
}

// Brief spells the mean, such as "2.78× as fast as cuDNN (2.75 to 2.81)".
func (d Duel) Brief(rival string) string {
	mean := Mean(d)
	s := fmt.Sprintf("%s× as fast as %s", quantity.Ratio(mean.At), rival)
	if ends := mean.ends(quantity.Ratio); ends != "" {
		s += " (" + ends + ")"
	}
	return s
}

// Full spells the mean with its interval and the range of the points. things are what the points are,
// in the singular.
func (d Duel) Full(rival, things string) string {
	mean := Mean(d)
	lo, hi := math.Inf(1), 0.0
	var slower Votes
	for _, e := range d {
		lo, hi = min(lo, e.At), max(hi, e.At)
		slower.Add(Below(1).Holds(e))
	}
	words := []string{"geometric mean of " + quantity.Plural(len(d), things)}
	if len(d) == 1 {
		words[0] = "at the one " + things
	}
	if ends := mean.ends(quantity.Ratio); ends != "" {
		words[0] += ", " + ends
	}
	if len(d) > 1 {
		words = append(words, fmt.Sprintf("range %s× to %s×", quantity.Ratio(lo), quantity.Ratio(hi)), fmt.Sprintf("clearly slower at %d", slower.Yes))
		if slower.Open > 0 {
			words = append(words, fmt.Sprintf("even within intervals at %d", slower.Open))
		}
	}
	return fmt.Sprintf("%s× as fast as %s (%s)", quantity.Ratio(mean.At), rival, strings.Join(words, "; "))
}

// Leader returns the fastest of several labels at a point, and whether it is clear that all others
// there are slower. It is nil if none is ok.
func Leader(recs []record.Record, labels []string, at func(record.Point) bool) (best *record.Record, alone bool) {
	best = pick.Fastest(recs, labels, at)
	if best == nil {
		return nil, false
	}
	for _, l := range labels {
		if r := pick.Find(recs, l, at); r != nil && r.Impl.Label != best.Impl.Label && Above(1).Holds(TimesAsFast(r, best)) != Yes {
			return best, false
		}
	}
	return best, true
}

// A Score counts at how many points each technique is clearly the fastest.
type Score struct {
	won   map[string]int
	tied  int
	Total int
}

// Add counts a point, with its fastest record and whether that leads clearly.
func (s *Score) Add(best *record.Record, clear bool) {
	if s.won == nil {
		s.won = map[string]int{}
	}
	s.Total++
	if clear {
		s.won[best.Impl.Label]++
	} else {
		s.tied++
	}
}

// Text is such as "naive at 1, persistent at 3; without a clear lead at 2", in the order of names.
func (s Score) Text(names []string) string {
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
