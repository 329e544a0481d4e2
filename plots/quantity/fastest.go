package quantity

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/record"
)

// Fastest returns a line on the fastest technique: at one point how far it leads, at several how
// many points each technique wins. It returns "" for training, or if no two techniques have a time
// at the same point.
func Fastest(recs []*record.Record) string {
	if slices.ContainsFunc(recs, func(r *record.Record) bool { return r.Training != nil }) {
		return ""
	}
	var races []Lead
	for _, x := range Races(recs) {
		if l, ok := LeadOf(x); ok {
			races = append(races, l)
		}
	}
	switch len(races) {
	case 0:
		return ""
	case 1:
		return races[0].String()
	}
	wins, clear := map[string]int{}, 0
	var labels []string
	for _, x := range races {
		if !x.Clear() {
			continue
		}
		clear++
		l := OneLine(Label(x.First))
		if wins[l]++; wins[l] == 1 {
			labels = append(labels, l)
		}
	}
	if clear == 0 && len(races) == 1 {
		return "none is clearly the fastest"
	}
	if clear == 0 {
		return fmt.Sprintf("none is clearly the fastest at any of %d points", len(races))
	}
	slices.SortStableFunc(labels, func(x, y string) int { return wins[y] - wins[x] })
	const most = 4
	var words []string
	for i, l := range labels {
		if i == most {
			words = append(words, fmt.Sprintf("others at %d", clear-won(wins, labels[:most])))
			break
		}
		words = append(words, fmt.Sprintf("%s at %d", l, wins[l]))
	}
	if clear < len(races) {
		words = append(words, fmt.Sprintf("a tie or unsure at %d", len(races)-clear))
	}
	return fmt.Sprintf("fastest at %s: %s", Plural(len(races), "point"), strings.Join(words, ", "))
}

// won returns how many points labels won together.
func won(wins map[string]int, labels []string) (n int) {
	for _, l := range labels {
		n += wins[l]
	}
	return n
}

// String says how many times as fast First is as Next, and whether that is a lead.
func (l Lead) String() string {
	first, next, far := OneLine(Label(l.First)), OneLine(Label(l.Next)), Times(l.Ratio)
	var text string
	switch {
	case l.Clear():
		text = fmt.Sprintf("fastest: %s, %s as fast as %s", first, far, next)
	case !l.Tie():
		return fmt.Sprintf("unsure: %s was %s as fast as %s, in too few samples", first, far, next)
	case l.Ratio.Lo > 1:
		text = fmt.Sprintf("tie: %s and %s differ by less than 1 %%", first, next)
	default:
		text = fmt.Sprintf("tie: %s is %s as fast as %s", first, far, next)
	}
	if !l.Paired {
		text += "; they were not measured in turns"
	}
	return text
}
