package record

import (
	"math"
	"slices"
)

// LeastLead is the smallest ratio that counts as a lead. Where a program lies in memory changes its
// time by about as much.
const LeastLead = 1.01

// An Interval is an estimate with its confidence interval at the level Confidence or above. NaN:
// unknown.
type Interval struct {
	Value, Lo, Hi float64
}

// Known reports whether there is an interval and not just an estimate.
func (v Interval) Known() bool { return v.Lo <= v.Hi }

// Leads reports whether v, a ratio of Ratio or Paired, shows a lead: the interval excludes 1, and the
// ratio is at least LeastLead. Everything that names a fastest technique asks this. What does not lead
// is a tie if the interval is known.
func (v Interval) Leads() bool { return v.Lo > 1 && v.Value >= LeastLead }

// Equal reports whether v, a ratio, is certainly too close to 1 to be a lead in either direction.
func (v Interval) Equal() bool { return v.Lo > 1/LeastLead && v.Hi < LeastLead }

// Ratio says how many times as fast r is as rival, by their medians. paired tells how the interval
// was found.
//
// Records whose samples were taken in the same rounds are paired: what slowed a round slowed both, so
// the interval is that of the median of the ratios of single rounds. Other records have been measured
// at different moments. Their interval spans the extreme ratios of both intervals, so it errs on the
// wide side. It says nothing of how much the machine's speed varies from moment to moment.
func Ratio(r, rival *Record) (v Interval, paired bool) {
	a, b := r.Seconds(), rival.Seconds()
	if !(a > 0 && b > 0) || math.IsInf(a, 0) || math.IsInf(b, 0) {
		return Interval{math.NaN(), math.NaN(), math.NaN()}, false
	}
	v = Interval{b / a, math.NaN(), math.NaN()}
	if sameRounds(r, rival) {
		if p := Paired(r.Times(), rival.Times()); p.Known() {
			// Skewed samples may put the ratio of medians outside.
			v.Lo, v.Hi = min(p.Lo, v.Value), max(p.Hi, v.Value)
		}
		return v, true
	}
	if x, y := r.Stats, rival.Stats; x.Lo != nil && x.Hi != nil && y.Lo != nil && y.Hi != nil && *x.Lo > 0 && *y.Lo > 0 && *x.Lo <= a && a <= *x.Hi && *y.Lo <= b && b <= *y.Hi {
		v.Lo, v.Hi = *y.Lo / *x.Hi, *y.Hi / *x.Lo
	}
	return v, false
}

// Paired estimates how many times as fast as rival's times are, round by round: the median of
// the ratios, with the interval that Summarize gives a median. Samples of one index are of one round. If one of the two
// has fewer, only its rounds count.
func Paired(times, rival []float64) Interval {
	ratios := make([]float64, min(len(times), len(rival)))
	v := Interval{math.NaN(), math.NaN(), math.NaN()}
	for i := range ratios {
		ratios[i] = rival[i] / times[i]
		if !(ratios[i] > 0) || math.IsInf(ratios[i], 0) {
			return v
		}
	}
	if len(ratios) == 0 {
		return v
	}
	slices.Sort(ratios)
	v.Value = quantile(ratios, 0.5)
	if lo, hi, _, ok := around(ratios); ok {
		v.Lo, v.Hi = lo, hi
	}
	return v
}

// Settled reports whether more rounds would not change who wins: the fastest of the techniques whose
// samples these are leads every other, or is its equal, within LeastLead in either direction. Samples
// of one index are of one round.
func Settled(samples [][]float64) bool {
	var first []float64
	least := math.Inf(1)
	for _, s := range samples {
		if len(s) > 0 {
			if t := quantile(slices.Sorted(slices.Values(s)), 0.5); t < least {
				first, least = s, t
			}
		}
	}
	for _, s := range samples {
		if len(s) > 0 && &s[0] == &first[0] {
			continue
		}
		if v := Paired(first, s); !v.Leads() && !v.Equal() {
			return false
		}
	}
	return true
}

// sameRounds reports whether samples of the same index in a and b were taken in the same round.
//
// Techniques that take turns are recorded together after the last round. Others are measured one
// after another. So the later record shares rounds with the earlier one if it was being measured
// already when the earlier one was written: they are closer in time than measuring it took.
func sameRounds(a, b *Record) bool {
	if a.Run == "" || a.Run != b.Run || a.Device != b.Device || a.Mode.Order == "sequential" || a.Training != nil || b.Training != nil {
		return false
	}
	if a.place() != b.place() {
		return false
	}
	early, late := a, b
	if late.Time.Before(early.Time) {
		early, late = b, a
	}
	const resolution = 1e-3 // seconds, of Time
	return late.Time.Sub(early.Time).Seconds() < late.Cost.Measure-resolution
}

// place names the machine and the shard that measured r, if its run was divided.
func (r *Record) place() [2]string {
	switch {
	case r.Node == nil:
		return [2]string{}
	case r.Node.Shard == nil:
		return [2]string{r.Node.Name}
	}
	return [2]string{r.Node.Name, *r.Node.Shard}
}

// Times are the samples by the clock that Mode.Timer names, in the order of rounds.
func (r *Record) Times() []float64 {
	switch {
	case r.Samples == nil:
		return nil
	case r.Mode.Timer == "event":
		return r.Samples.Device
	}
	return r.Samples.Wall
}
