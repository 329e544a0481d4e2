package tuner

import (
	"math"

	"rnnbench/results"
	"rnnbench/tuner/search"
	"rnnbench/tuner/wisdom"
)

// A Prior is how candidates did at the points tuned before, by which a search
// starts with those that did well nearby. It knows them by their labels, which
// name what differs from the defaults.
type Prior struct{ seen map[string][]sighting }

// A sighting is what was seen of a candidate at one point.
type sighting struct {
	at     results.Point
	behind float64 // how much longer than the winner it took, a log
	weight float64 // up to 1: few samples tell little
}

const (
	reach   = 1.5 // octaves over which a sighting loses two thirds of its weight
	reserve = 0.3 // weight of the guess that a candidate is the fastest
	spread  = 0.2 // standard deviation of what candidates take, a log, where none was seen
	steady  = 8   // samples that tell half of what any number does
)

// Add takes in what came of a point.
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

// Begun takes in what the candidates of a point showed before it was interrupted.
func (f *Prior) Begun(p results.Point, recs []*results.Record) {
	var best *results.Record
	for _, r := range recs {
		if best == nil || search.Score(search.Samples(r)) < search.Score(search.Samples(best)) {
			best = r
		}
	}
	if len(recs) < 2 {
		return // one alone has no rivals
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

// Expect is how much longer than the fastest a candidate should take at p, as a
// log, and the standard deviation of that: the mean of what was seen, the more
// the nearer, and of a guess that it is the fastest.
func (f *Prior) Expect(p results.Point, label string) (behind, doubt float64) {
	sum, weight := 0.0, reserve
	for _, s := range f.seen[label] {
		w := s.weight * math.Exp(-apart(p, s.at)/reach)
		sum, weight = sum+w*s.behind, weight+w
	}
	return sum / weight, spread * math.Sqrt(reserve/weight)
}

// apart is how far one point is from another: an octave for each thing that is
// not a size.
func apart(p, q results.Point) float64 {
	d := wisdom.Distance(p, q)
	for _, differs := range []bool{
		p.Cell != q.Cell, p.Pass != q.Pass, p.Precision != q.Precision, p.OneHot != q.OneHot, (p.Output > 0) != (q.Output > 0),
		p.Streams != q.Streams, p.History != q.History, (p.Calls > 0) != (q.Calls > 0), (p.Symbols > 0) != (q.Symbols > 0), p.Groups != q.Groups, p.Heads != q.Heads, p.Projection != q.Projection, p.Weighted != q.Weighted, p.Direction != q.Direction, p.Lengths != q.Lengths, p.Resets != q.Resets,
	} {
		if differs {
			d++
		}
	}
	return d
}

// samples are those that the verdict on candidate i is by.
func (v *Verdict) samples(i int) []float64 {
	switch {
	case len(v.Samples[i]) > 0:
		return v.Samples[i]
	case v.Left[i] == "" && v.Records[i] != nil: // known before
		return costsOf(v.Records[i], v.Objective)
	}
	return nil
}
