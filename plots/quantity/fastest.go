package quantity

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/results"
)

// Fastest returns a line on the fastest technique: at one point how far it leads, at several how
// many points each technique wins. It returns "" for training, or if no two techniques have a time
// at the same point.
func Fastest(recs []*results.Record) string {
	if slices.ContainsFunc(recs, func(r *results.Record) bool { return r.Training != nil }) {
		return ""
	}
	races := slices.DeleteFunc(Races(recs), func(x []*results.Record) bool { return len(x) < 2 || x[1].Seconds() <= 0 })
	switch len(races) {
	case 0:
		return ""
	case 1:
		return "fastest: " + lead(races[0][0], races[0][1])
	}
	wins, clear := map[string]int{}, 0
	var labels []string
	for _, x := range races {
		l := OneLine(Label(x[0]))
		if wins[l]++; wins[l] == 1 {
			labels = append(labels, l)
		}
		if Clear(x[0], x[1]) {
			clear++
		}
	}
	slices.SortStableFunc(labels, func(x, y string) int { return wins[y] - wins[x] })
	const most = 4
	var words []string
	for i, l := range labels {
		if i == most {
			words = append(words, fmt.Sprintf("others at %d", len(races)-won(wins, labels[:most])))
			break
		}
		words = append(words, fmt.Sprintf("%s at %d", l, wins[l]))
	}
	return fmt.Sprintf("fastest at %d points: %s; the lead is clear at %d", len(races), strings.Join(words, ", "), clear)
}

// won returns how many points labels won together.
func won(wins map[string]int, labels []string) (n int) {
	for _, l := range labels {
		n += wins[l]
	}
	return n
}

// lead formats how much longer next takes than first, and whether the lead is clear.
func lead(first, next *results.Record) string {
	f := next.Seconds() / first.Seconds()
	far := fmt.Sprintf("%.1f %% longer", 100*(f-1))
	if f >= 2 {
		far = Factor(f) + " as long"
	}
	text := fmt.Sprintf("%s; the next, %s, takes %s", OneLine(Label(first)), OneLine(Label(next)), far)
	a, _ := Time(first)
	b, _ := Time(next)
	switch {
	case Clear(first, next):
		return text
	case f < leastLead:
		return text + ", which is too little to matter"
	case !a.Known() || !b.Known():
		return text + ", by too few samples to be sure"
	}
	return text + ", but their confidence intervals overlap"
}
