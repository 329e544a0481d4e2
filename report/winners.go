package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// winner is what a tune chose at a point; nil: unknown. It is nil for several runs, since they may have
// chosen differently.
func (b *builder) winner(p record.Point, device string) *record.Winner {
	if len(b.sets) != 1 {
		return nil
	}
	m := &b.sets[0].Manifest
	if len(m.Devices) > 0 && m.Devices[0].Key != device {
		return nil
	}
	i := slices.IndexFunc(m.Winners, func(w record.Winner) bool { return w.Point == p })
	if i < 0 {
		return nil
	}
	return &m.Winners[i]
}

// crown puts the choice of a tune first in each race. A choice that another run measured is only in
// the race's winner.
func (b *builder) crown(list []race) []race {
	for i := range list {
		x := &list[i]
		w := b.winner(x.entrants[0].Point, x.entrants[0].Device)
		if w == nil {
			continue
		}
		x.winner = w
		k := slices.IndexFunc(x.entrants, func(r *record.Record) bool { return r.Impl.Label == w.Label && r.Seconds() > 0 })
		if k > 0 {
			first := x.entrants[k]
			x.entrants = slices.Insert(slices.Delete(x.entrants, k, k+1), 0, first)
		}
		x.elsewhere = k < 0
	}
	return list
}

// chose names what a tune chose at how many points, ties included; "": there was no tune.
func chose(list []race) string {
	points := map[string]int{}
	var words []string
	for _, x := range list {
		if x.winner != nil {
			if points[x.winner.Label]++; points[x.winner.Label] == 1 {
				words = append(words, x.winner.Label)
			}
		}
	}
	if words == nil {
		return ""
	}
	for i, l := range words {
		words[i] = fmt.Sprintf("%s at %d", l, points[l])
	}
	return "Tune chose " + strings.Join(words, ", ") + "."
}

// knownBefore names what a tune chose at points without records in this run, since earlier runs had
// measured everything there; "": there are no such points.
func (b *builder) knownBefore() string {
	if len(b.sets) != 1 {
		return ""
	}
	var words []string
	for _, w := range b.sets[0].Manifest.Winners {
		if !slices.ContainsFunc(b.sets[0].Records, func(r record.Record) bool { return r.Point == w.Point }) {
			words = append(words, fmt.Sprintf("%s at %v, %s (run %s)", w.Label, w.Point, quantity.SI(w.Seconds, "s"), w.Run))
		}
	}
	if words == nil {
		return ""
	}
	return "Chosen from earlier runs: " + strings.Join(words, "; ") + "."
}

// mostLines is how many series of a figure can be told apart at a glance.
const mostLines = 8

// few keeps the records of the best settings of each technique for figures, if there are many
// settings. left is the number of settings that it leaves out.
func (b *builder) few(recs []*record.Record) (kept []*record.Record, left int) {
	settings := map[string][]string{} // of each technique
	var names []string
	for _, r := range recs {
		name := r.Impl.Name
		if settings[name] == nil {
			names = append(names, name)
		}
		if l := quantity.Label(r); !slices.Contains(settings[name], l) {
			settings[name] = append(settings[name], l)
			left++
		}
	}
	if left <= mostLines {
		return recs, 0
	}
	each := max(1, mostLines/len(names))
	keep := map[string]bool{}
	for _, name := range names {
		ranked := b.ranked(recs, name, settings[name])
		for _, l := range ranked[:min(each, len(ranked))] {
			keep[l] = true
		}
	}
	kept = slices.DeleteFunc(slices.Clone(recs), func(r *record.Record) bool { return !keep[quantity.Label(r)] })
	return kept, left - len(keep)
}

// ranked sorts the settings of a technique, the best first. The number of points at which a tune chose
// them counts most, then the number of points at which they are the technique's fastest. Ties are
// decided by how far they are behind elsewhere.
func (b *builder) ranked(recs []*record.Record, name string, labels []string) []string {
	best := map[record.Point]*record.Record{}
	for _, r := range recs {
		if s := r.Seconds(); r.Impl.Name == name && s > 0 && (best[r.Point] == nil || s < best[r.Point].Seconds()) {
			best[r.Point] = r
		}
	}
	won, behind := map[string]int{}, map[string]float64{}
	for _, r := range recs {
		l := quantity.Label(r)
		if r.Impl.Name != name {
			continue
		}
		if w := b.winner(r.Point, r.Device); w != nil && w.Label == r.Impl.Label {
			won[l] += len(recs) // outweighs any number of points
		}
		switch {
		case best[r.Point] == r:
			won[l]++
		case r.Seconds() > 0:
			behind[l] += math.Log(r.Seconds() / best[r.Point].Seconds())
		default:
			behind[l] += math.Log(10) // it does not run there
		}
	}
	slices.SortStableFunc(labels, func(x, y string) int {
		switch {
		case won[x] != won[y]:
			return won[y] - won[x]
		case behind[x] < behind[y]:
			return -1
		case behind[x] > behind[y]:
			return 1
		}
		return 0
	})
	return labels
}

// leftOutNote says how many settings the figures of a section leave out.
func leftOutNote(n int) string {
	return fmt.Sprintf("Figures show the best settings of each technique. The table of all measurements lists %s.", quantity.Plural(n, "other"))
}

// behindWinner leaves out records with a smaller median than the choice of a tune, so that a map of
// winners shows the choice. Such records cannot be told from the choice, or are not faster by the
// margin. If many, the records get their techniques' names as labels.
func (b *builder) behindWinner(recs []*record.Record, many bool) (list []*record.Record) {
	chosen := map[record.Point]*record.Record{}
	names := map[string]bool{}
	for _, r := range recs {
		names[r.Impl.Name] = true
		if w := b.winner(r.Point, r.Device); w != nil && w.Label == r.Impl.Label && r.Seconds() > 0 {
			chosen[r.Point] = r
		}
	}
	for _, r := range recs {
		if c := chosen[r.Point]; c != nil && c != r && r.Seconds() > 0 && r.Seconds() < c.Seconds() {
			continue
		}
		if many && len(names) > 1 {
			one := *r
			one.Impl.Label = one.Impl.Name
			r = &one
		}
		list = append(list, r)
	}
	return list
}
