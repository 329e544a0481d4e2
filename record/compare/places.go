package compare

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/record"
)

// ok reports whether r has a time.
func ok(r *record.Record) bool { return r.Seconds() > 0 }

// skipped reports whether p was declined. Then nothing is lost if the other side lacks it.
func skipped(p *place) bool { return p.record.Status == record.Skipped }

func reason(r *record.Record) string {
	s := string(r.Status)
	if r.Reason != nil && *r.Reason != "" {
		s += ": " + *r.Reason
	}
	return s
}

// places holds the places of a side, in order of appearance.
type places struct {
	keys []string
	at   map[string]*place
}

// A place is one technique at one point in all runs of a side.
type place struct {
	record *record.Record // with the samples of all runs; if one run has no result, that run's record
	all    []*record.Record
	runs   []float64 // logarithm of the median in each run; NaN: no result
}

func (s Side) records() []record.Record {
	var list []record.Record
	for _, run := range s.Runs {
		list = append(list, run.Records...)
	}
	return list
}

// index collects the places of a side. key tells places apart.
func index(s Side, key func(*record.Record) string) (places, error) {
	p := places{at: map[string]*place{}}
	for n, run := range s.Runs {
		for i := range run.Records {
			r := &run.Records[i]
			if r.Passing() {
				continue // counts as not measured
			}
			name := key(r)
			at := p.at[name]
			switch {
			case at == nil:
				at = &place{record: r, runs: slices.Repeat([]float64{math.NaN()}, len(s.Runs))}
				p.keys = append(p.keys, name)
				p.at[name] = at
			case at.record.Device != r.Device:
				return p, fmt.Errorf("compare: %s measured on %s and on %s: choose the records of one device", s.Label, at.record.Device, r.Device)
			case ok(at.record) && !ok(r):
				at.record = r // a failure in one run is a failure of the side
			}
			if ok(r) {
				at.all = append(at.all, r)
				at.runs[n] = math.Log(r.Seconds())
			}
		}
	}
	for _, at := range p.at {
		if ok(at.record) && len(at.all) > 1 {
			at.record = join(at.all)
		}
	}
	return p, nil
}

// join returns the first record with the samples and warnings of all.
func join(all []*record.Record) *record.Record {
	j := *all[0]
	var times []float64
	j.Warnings = nil
	for _, r := range all {
		times = append(times, r.Times()...)
		for _, w := range r.Warnings {
			if !slices.Contains(j.Warnings, w) {
				j.Warnings = append(j.Warnings, w)
			}
		}
	}
	j.Samples = &record.Samples{Wall: times, Device: times}
	st, _ := record.Summarize(times, 0)
	j.Stats = &st
	return &j
}

// keyOf is the key that two records must share to be compared. It includes how the point was measured,
// but not the order of samples or the seed.
func keyOf(r *record.Record, o Options) string {
	q := *r
	if o.Across {
		q.Device = ""
	}
	return q.Key() + modeOf(r)
}

// modeOf is how a point was measured.
func modeOf(r *record.Record) string {
	return fmt.Sprintf("|%s|%t|%s|%s", r.Mode.Cache, r.Mode.Graph, r.Mode.Timer, r.Mode.Data)
}

// logs returns the sorted logarithms of r's times. Times without a finite logarithm are left out.
func logs(r *record.Record) []float64 {
	var list []float64
	for _, s := range r.Times() {
		if l := math.Log(s); !math.IsNaN(l) && !math.IsInf(l, 0) {
			list = append(list, l)
		}
	}
	slices.Sort(list)
	return list
}
