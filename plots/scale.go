package plots

import (
	"math"
	"slices"

	"gonum.org/v1/plot"

	"rnnbench/plots/quantity"
)

// A Scale says how an axis spaces values.
type Scale int

const (
	Auto Scale = iota // logarithmic if all values are positive and span more than a factor of 12, else linear
	Linear
	Log
)

// An Axis describes an axis of a figure.
type Axis struct {
	Title       string // with the unit
	Scale       Scale
	Places      []float64            // preferred values for ticks, such as the sizes of a sweep
	Format      func(float64) string // formats a tick; nil: with SI prefixes
	FormatValue func(float64) string // formats a value; nil: with SI prefixes
	// Zero keeps 0 on a linear scale, so that lengths from 0 can be compared.
	Zero bool
}

// A scaling is the range of an axis.
type scaling struct {
	min, max float64
	log      bool
	strip    float64 // share of the axis below the data, for crosses of missing values
}

// at returns the place of v between 0 and 1. On a logarithmic scale, it returns -Inf for v <= 0.
//
// Note: gonum's own axes always run from 0 to 1 here, and get places instead of values. Its
// LogScale panics at 0, and it centres titles by value.
func (s scaling) at(v float64) float64 {
	if !s.log {
		return s.strip + (1-s.strip)*(v-s.min)/(s.max-s.min)
	}
	if !(v > 0) {
		return math.Inf(-1)
	}
	return s.strip + (1-s.strip)*math.Log(v/s.min)/math.Log(s.max/s.min)
}

// of returns the range of a panel, and the axis with the places within it. The range is all, or a
// narrower one if the panel's data cover only a part of all.
func (a Axis) of(p Panel, all scaling) (scaling, Axis) {
	xs, _, _ := p.values()
	own := a
	if all.log {
		own.Scale = Log
	} else {
		own.Scale = Linear
	}
	s := own.fit(xs, edge, edge)
	const much = 0.65 // of the range of all
	if len(xs) == 0 || all.at(s.max)-all.at(s.min) > much {
		return all, a
	}
	own.Places = slices.DeleteFunc(slices.Clone(a.Places), func(v float64) bool { return v < s.min || v > s.max })
	return s, own
}

// on returns the ticks with their values replaced by places between 0 and 1.
func (s scaling) on(t plot.ConstantTicks) plot.ConstantTicks {
	out := slices.Clone(t)
	for i := range out {
		out[i].Value = s.at(out[i].Value)
	}
	return out
}

// fit returns the range of an axis around values. below and above are the free space at each end,
// as shares of the values' span. fit ignores values that the scale cannot show.
func (a Axis) fit(values []float64, below, above float64) scaling {
	positive := math.Inf(1)
	lo, hi := math.Inf(1), math.Inf(-1)
	whole := true
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		lo, hi = min(lo, v), max(hi, v)
		if v > 0 {
			positive = min(positive, v)
		} else {
			whole = false
		}
	}
	s := scaling{log: a.Scale == Log || a.Scale == Auto && whole && hi/lo > 12}
	if s.log && math.IsInf(positive, 1) {
		s.log = false // nothing to take the logarithm of
	}
	if math.IsInf(lo, 1) {
		lo, hi = 0, 1
	}
	if s.log {
		lo = positive
		if lo == hi {
			s.min, s.max = lo/2, hi*2
			return s
		}
		span := math.Log(hi / lo)
		s.min, s.max = lo*math.Exp(-below*span), hi*math.Exp(above*span)
		return s
	}
	if a.Zero && lo > 0 {
		lo, below = 0, 0
	}
	if lo == hi {
		d := math.Max(math.Abs(lo)/2, 0.5)
		lo, hi = lo-d, hi+d
	}
	s.min, s.max = lo-below*(hi-lo), hi+above*(hi-lo)
	return s
}

// ticks returns ticks at a.Places if there are at most 24, else at round numbers. room returns the
// share of the axis that a label takes; ticks whose labels do not fit have none.
func (a Axis) ticks(s scaling, room func(label string) float64) plot.ConstantTicks {
	format := a.Format
	if format == nil {
		format = quantity.Tick
	}
	if len(a.Places) > 0 {
		places := slices.Clone(a.Places)
		slices.Sort(places)
		places = slices.Compact(places)
		if len(places) <= 24 {
			return labelTicks(places, s, format, room)
		}
	}
	var marks []float64
	var minor []float64
	if s.log {
		marks, minor = logTicks(s.min, s.max)
	} else {
		marks = linearTicks(s.min, s.max, 6)
	}
	t := labelTicks(marks, s, format, room)
	for _, m := range minor {
		t = append(t, plot.Tick{Value: m})
	}
	return t
}

// labelTicks returns a tick for every place, and labels as many as there is room for: all, or every
// second one, or every third one, and so on.
func labelTicks(places []float64, s scaling, format func(float64) string, room func(string) float64) plot.ConstantTicks {
	// If there is no room for all, it first tries to label only powers of two.
	for pass := range 2 {
		keep := places
		if pass == 1 {
			keep = slices.DeleteFunc(slices.Clone(places), func(v float64) bool { f, _ := math.Frexp(v); return f != 0.5 })
			if len(keep) < 3 {
				break
			}
		}
		if fits(keep, s, format, room) {
			return label(places, keep, format)
		}
	}
	for step := 2; step < len(places); step++ {
		var keep []float64
		for i := 0; i < len(places); i += step {
			keep = append(keep, places[i])
		}
		if fits(keep, s, format, room) {
			return label(places, keep, format)
		}
	}
	return label(places, places[:min(1, len(places))], format)
}

func fits(places []float64, s scaling, format func(float64) string, room func(string) float64) bool {
	for i := 1; i < len(places); i++ {
		gap := s.at(places[i]) - s.at(places[i-1])
		if gap < (room(format(places[i]))+room(format(places[i-1])))/2 {
			return false
		}
	}
	return true
}

func label(places, keep []float64, format func(float64) string) plot.ConstantTicks {
	var t plot.ConstantTicks
	for _, p := range places {
		if slices.Contains(keep, p) {
			t = append(t, plot.Tick{Value: p, Label: format(p)})
		} else {
			t = append(t, plot.Tick{Value: p})
		}
	}
	return t
}

// linearTicks returns about n round numbers from lo to hi.
func linearTicks(lo, hi float64, n int) []float64 {
	raw := (hi - lo) / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*power >= raw*0.999 {
			step = m * power
			break
		}
	}
	var out []float64
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi*(1+1e-12)+1e-9*step && len(out) < 100; i++ {
		out = append(out, i*step)
	}
	return out
}

// logTicks returns powers of ten as major ticks, also their multiples by 2 and 5 if there are few
// decades. Other multiples are minor ticks.
func logTicks(lo, hi float64) (major, minor []float64) {
	decades := math.Log10(hi / lo)
	first, last := int(math.Floor(math.Log10(lo))), int(math.Ceil(math.Log10(hi)))
	stride := 1 + int(decades/8)
	for e := first; e <= last; e++ {
		power := math.Pow10(e)
		for m := 1; m <= 9; m++ {
			v := float64(m) * power
			switch {
			case v < lo*(1-1e-9) || v > hi*(1+1e-9):
			case m == 1 && ((e-first)%stride == 0 || decades < 2), decades < 3.2 && (m == 2 || m == 5):
				major = append(major, v)
			case decades < 8 && m > 1, m == 1:
				minor = append(minor, v)
			}
		}
	}
	if len(major) < 3 {
		return linearTicks(lo, hi, 5), nil
	}
	return major, minor
}
