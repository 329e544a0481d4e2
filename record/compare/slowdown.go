package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"rnnbench/record"
)

// A Slowdown is by how much points are slower in one program than in another.
type Slowdown struct {
	Changes []*Change          // the slower points
	at      map[string]float64 // log of the ratio, by key of the point
	shifted bool               // all points are slower alike, so that none tells of the machine
}

// SlowdownOf returns the slowdown that a comparison shows; none: no point is slower.
func SlowdownOf(c *Comparison, o Options) Slowdown {
	s := Slowdown{at: map[string]float64{}, shifted: c.Shifted}
	for i := range c.Changes {
		if ch := &c.Changes[i]; ch.Verdict == Slower {
			s.Changes = append(s.Changes, ch)
			s.at[keyOf(ch.Record(), o)] = math.Log(ch.Ratio.Value)
		}
	}
	return s
}

// Share returns which share of the slowdown another program has, relative to the same base: 0 none, 1 all
// of it. Both sides ran in turns. The interval is Student's, between runs. What moved the other points of
// a run alike is left out, if there are enough of them.
func (s Slowdown) Share(base, other Side, o Options) (Interval, error) {
	key := func(r *record.Record) string { return keyOf(r, o) }
	before, err := index(base, key)
	if err != nil {
		return unknown(), err
	}
	after, err := index(other, key)
	if err != nil {
		return unknown(), err
	}
	whole := 0.0
	var of, rest []string
	for _, k := range before.keys {
		if !everywhere(before.at[k]) || !everywhere(after.at[k]) {
			continue
		}
		if size, slow := s.at[k]; slow {
			whole, of = whole+size, append(of, k)
		} else {
			rest = append(rest, k)
		}
	}
	if len(of) == 0 {
		return unknown(), nil
	}
	runs := func(p places, n int) (list []float64) {
		for run := range n {
			sum, moved := 0.0, []float64{}
			for _, k := range of {
				sum += p.at[k].runs[run]
			}
			for _, k := range rest {
				moved = append(moved, p.at[k].runs[run]-stat.Mean(before.at[k].runs, nil))
			}
			if len(rest) >= fewestPoints && !s.shifted {
				sum -= median(moved) * float64(len(of))
			}
			list = append(list, sum/whole)
		}
		return list
	}
	e := effectOf(runs(before, len(base.Runs)), runs(after, len(other.Runs)))
	v := Interval{Value: e.size, Lo: math.Inf(-1), Hi: math.Inf(1)}
	if e.freedom > 0 {
		half := quantile((1+o.Level)/2, e.freedom) * e.standard()
		v.Lo, v.Hi = e.size-half, e.size+half
	}
	return v, nil
}

// everywhere reports whether each run of a place has a time.
func everywhere(p *place) bool {
	return p != nil && !slices.ContainsFunc(p.runs, math.IsNaN)
}
