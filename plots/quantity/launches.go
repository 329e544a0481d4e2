package quantity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rnnbench/record"
)

// slowLaunch is how many times the median of its run a launch takes at least that is slow.
const slowLaunch = 1.25

// Launches says how long launches took just before the groups of records that took turns; "": it is unknown.
func Launches(recs []*record.Record) string {
	all := launched(recs)
	switch n := len(all); n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Just before the samples, it took %s.", SI(*all[0].Launch, "s"))
	default:
		return fmt.Sprintf("Just before each of %d groups that took turns, it took %s to %s, %s in the median.",
			n, SI(*all[0].Launch, "s"), SI(*all[n-1].Launch, "s"), SI(*all[(n-1)/2].Launch, "s"))
	}
}

// launched returns one record of each group before which a launch was timed, the shortest first.
func launched(recs []*record.Record) []*record.Record {
	type group struct {
		run, device string
		launch      float64
	}
	seen := map[group]bool{}
	var list []*record.Record
	for _, r := range recs {
		if r.Launch == nil {
			continue
		}
		if g := (group{r.Run, r.Device, *r.Launch}); !seen[g] {
			seen[g] = true
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b *record.Record) int { return cmp.Compare(*a.Launch, *b.Launch) })
	return list
}

// SlowLaunches returns a sentence for each run that names the groups before which launches were far slower than
// before the others. Then forms that launch each step are slower than those replayed as graphs, whatever they do.
func SlowLaunches(recs []*record.Record) (notes []string) {
	const least, most = 3, 5 // groups that have a usual time; groups that are named
	runs := map[[2]string][]*record.Record{}
	var order [][2]string
	for _, r := range launched(recs) {
		run := [2]string{r.Run, r.Device}
		if runs[run] == nil {
			order = append(order, run)
		}
		runs[run] = append(runs[run], r)
	}
	slices.SortFunc(order, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, run := range order {
		all := runs[run]
		usual := *all[(len(all)-1)/2].Launch
		first := slices.IndexFunc(all, func(r *record.Record) bool { return *r.Launch > slowLaunch*usual })
		if len(all) < least || first < 0 {
			continue
		}
		slow := slices.Clone(all[first:])
		slices.Reverse(slow)
		var names []string
		for _, r := range slow[:min(len(slow), most)] {
			names = append(names, SI(*r.Launch, "s")+before(all, r))
		}
		if n := len(slow) - len(names); n > 0 {
			names = append(names, fmt.Sprintf("less before %d more", n))
		}
		notes = append(notes, fmt.Sprintf("Launches took over %g times the usual %s before %d of %d groups: %s.", slowLaunch, SI(usual, "s"), len(slow), len(all), strings.Join(names, ", ")))
	}
	return notes
}

// before names the point of r, as all reports do; "": all have the same.
func before(all []*record.Record, r *record.Record) string {
	if !slices.ContainsFunc(all, func(o *record.Record) bool { return o.Point != r.Point }) {
		return ""
	}
	return " before " + r.Point.String()
}

// pointTags names the point of r by the axes on which the points of all differ.
func pointTags(all []*record.Record, r *record.Record) string {
	var tags []string
	for _, a := range Varying(all) {
		if a.Name != "impl" && a.Name != "streams" {
			tags = append(tags, a.Tag(r))
		}
	}
	return strings.Join(tags, " ")
}
