package quantity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rnnbench/record"
)

// A kind of disturbance, with what is said of it.
type disturbance struct {
	happened func(d *record.Disturbance, onGPU bool) bool
	amount   func(d *record.Disturbance) float64
	text     func(d *record.Disturbance, upTo string) string // of the worst
}

var disturbances = []disturbance{
	{
		(*record.Disturbance).Crowded,
		func(d *record.Disturbance) float64 { return *d.Others },
		func(d *record.Disturbance, upTo string) string {
			return fmt.Sprintf("Other programs used %s%.1f of %s", upTo, *d.Others, Plural(d.Processors, "processor"))
		},
	},
	{
		func(d *record.Disturbance, _ bool) bool { return d.Robbed() },
		func(d *record.Disturbance) float64 { return *d.Stolen },
		func(d *record.Disturbance, upTo string) string {
			return fmt.Sprintf("The hypervisor took away %s%.1f of %s", upTo, *d.Stolen, Plural(d.Processors, "processor"))
		},
	},
	{
		func(d *record.Disturbance, _ bool) bool { return d.Held() },
		func(d *record.Disturbance) float64 { return *d.Stopped },
		func(d *record.Disturbance, upTo string) string {
			return fmt.Sprintf("The control group's quota (%.4g processors) stopped the program for %s%.0f %% of the time", *d.Quota, upTo, 100**d.Stopped)
		},
	},
	{
		func(d *record.Disturbance, onGPU bool) bool { return d.Hot() && !onGPU },
		func(d *record.Disturbance) float64 { return float64(*d.Heat) },
		func(d *record.Disturbance, upTo string) string {
			return fmt.Sprintf("Heat slowed processors down %s%s", upTo, Plural(int(*d.Heat), "time"))
		},
	},
}

// Disturbed returns a sentence for each kind of disturbance while records were measured. It says how
// many points it disturbed, and which most. Techniques that took turns at a point count once.
func Disturbed(recs []*record.Record) []string {
	points := onePerPoint(recs)
	var notes []string
	for _, k := range disturbances {
		var hit []*record.Record
		for _, r := range points {
			if k.happened(r.Disturbance, record.OnGPU(r.Device)) {
				hit = append(hit, r)
			}
		}
		if len(hit) == 0 {
			continue
		}
		slices.SortStableFunc(hit, func(a, b *record.Record) int { return cmp.Compare(k.amount(b.Disturbance), k.amount(a.Disturbance)) })
		upTo := "up to "
		if len(hit) == 1 {
			upTo = ""
		}
		s := k.text(hit[0].Disturbance, upTo)
		if len(points) > 1 {
			s += fmt.Sprintf(" at %d of %d points", len(hit), len(points)) + worst(points, hit)
		}
		notes = append(notes, s+"."+runs(hit))
	}
	return notes
}

// onePerPoint returns one record of each measurement of a point: the one with the longest time between the
// readings, since a tune reads once more for each candidate. Points without a time do not count.
func onePerPoint(recs []*record.Record) []*record.Record {
	type point struct {
		run, device string
		at          record.Point
	}
	index := map[point]int{}
	var list []*record.Record
	for _, r := range recs {
		if r.Seconds() <= 0 {
			continue
		}
		p := point{r.Run, r.Device, r.Point}
		i, seen := index[p]
		switch {
		case !seen:
			index[p] = len(list)
			list = append(list, r)
		case list[i].Disturbance == nil || r.Disturbance != nil && r.Disturbance.Seconds > list[i].Disturbance.Seconds:
			list[i] = r
		}
	}
	return list
}

// worst names up to three points of hit, the first ones, by the axes on which points differ; "": they
// are all the same.
func worst(points, hit []*record.Record) string {
	const most = 3
	var names []string
	for _, r := range hit[:min(len(hit), most)] {
		if name := pointTags(points, r); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case names == nil:
		return ""
	case len(hit) > 1:
		return ", most at " + strings.Join(names, ", ")
	}
	return ": " + names[0]
}

// runs names the other runs of rnnbench that disturbed records; "": none is known.
func runs(recs []*record.Record) string {
	var pids []int
	for _, r := range recs {
		pids = append(pids, r.Disturbance.Runs...)
	}
	slices.Sort(pids)
	pids = slices.Compact(pids)
	switch len(pids) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" Another run of rnnbench was among them (process %d).", pids[0])
	}
	return fmt.Sprintf(" Other runs of rnnbench were among them (%d, the first was process %d).", len(pids), pids[0])
}
