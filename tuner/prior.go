package tuner

import (
	"math"

	"rnnbench/record"
	"rnnbench/rnn/axis"
	"rnnbench/tuner/search"
)

// A Prior holds how candidates did at the points tuned before. A search starts with those that did
// well nearby. Candidates are known by their labels, which name the knobs that differ from the defaults.
type Prior struct{ seen map[string][]sighting }

// A sighting is the result of a candidate at one point.
type sighting struct {
	at     record.Point
	behind float64 // log of its time over the winner's
	weight float64 // up to 1: low for few samples
}

const (
	reach   = 1.5 // octaves over which a sighting loses two thirds of its weight
	reserve = 0.3 // weight of the guess that a candidate is the fastest
	spread  = 0.2 // standard deviation of the log of times, without sightings
	steady  = 8   // samples that give a sighting half of the full weight
)

// Add adds the results of a tuned point.
func (f *Prior) Add(v *Verdict) {
	if v.Winner < 0 {
		return
	}
	if f.seen == nil {
		f.seen = map[string][]sighting{}
	}
	best := v.samples(v.Winner)
	for i, r := range v.Records {
		mine := v.samples(i)
		n := min(len(mine), len(best))
		if n == 0 {
			continue
		}
		behind := math.Log(search.Score(mine[:n]) / search.Score(best[:n]))
		f.seen[r.Impl.Label] = append(f.seen[r.Impl.Label], sighting{v.Point, max(0, behind), float64(n) / float64(n+steady)})
	}
}

// Begun adds the samples that the candidates of a point had before it was interrupted.
func (f *Prior) Begun(p record.Point, recs []*record.Record) {
	var best *record.Record
	for _, r := range recs {
		if best == nil || search.Score(search.Samples(r)) < search.Score(search.Samples(best)) {
			best = r
		}
	}
	if len(recs) < 2 {
		return // a single record has no rivals
	}
	if f.seen == nil {
		f.seen = map[string][]sighting{}
	}
	for _, r := range recs {
		n := min(len(search.Samples(r)), len(search.Samples(best)))
		behind := math.Log(search.Score(search.Samples(r)[:n]) / search.Score(search.Samples(best)[:n]))
		f.seen[r.Impl.Label] = append(f.seen[r.Impl.Label], sighting{p, max(0, behind), float64(n) / float64(n+steady)})
	}
}

// Expect is the expected log of a candidate's time at p over the fastest one's, and its standard
// deviation. It is the mean of the sightings, nearer ones weighted more, and of a guess that the
// candidate is the fastest.
func (f *Prior) Expect(p record.Point, label string) (behind, doubt float64) {
	sum, weight := 0.0, reserve
	for _, s := range f.seen[label] {
		w := s.weight * math.Exp(-apart(p, s.at)/reach)
		sum, weight = sum+w*s.behind, weight+w
	}
	return sum / weight, spread * math.Sqrt(reserve/weight)
}

// apart is the distance of two points in octaves. Each differing axis that is not a size adds one.
func apart(p, q record.Point) float64 {
	octaves, others := axis.Distance(p, q)
	return octaves + float64(others)
}

// samples returns the samples by which candidate i was judged; nil: none.
func (v *Verdict) samples(i int) []float64 {
	switch {
	case len(v.Samples[i]) > 0:
		return v.Samples[i]
	case v.Left[i] == "" && v.Records[i] != nil: // known before
		return costsOf(v.Records[i], v.Objective)
	}
	return nil
}
