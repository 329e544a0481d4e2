package compare

import (
	"math"
	"testing"

	"rnnbench/results"
)

// near reports whether got is want to so many digits that no other statistic is meant.
func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*math.Abs(want) }

// TestHolm corrects p-values as Holm's paper does: the smallest for all, the next for all but one, and
// none below one that was smaller before.
func TestHolm(t *testing.T) {
	for _, c := range []struct{ p, want []float64 }{
		{[]float64{0.04, 0.01, 0.03}, []float64{0.06, 0.03, 0.06}},
		{[]float64{0.01, 0.02, 0.03, 0.005}, []float64{0.03, 0.04, 0.04, 0.02}},
		{[]float64{0.6, 0.7}, []float64{1, 1}},
		{[]float64{0.2}, []float64{0.2}},
	} {
		list := make([]*Change, len(c.p))
		for i, p := range c.p {
			list[i] = &Change{P: p}
		}
		holm(list)
		for i, ch := range list {
			if !near(ch.P, c.want[i]) {
				t.Errorf("%v: the corrected value of %v is %v, want %v", c.p, c.p[i], ch.P, c.want[i])
			}
		}
	}
}

// TestEffect compares an effect with Student's test of two samples of equal variance, by hand and by a
// table of quantiles: t(0.975, 4) = 2.776445 and t(0.95, 4) = 2.131847.
func TestEffect(t *testing.T) {
	e := effectOf([]float64{1, 2, 3, math.NaN()}, []float64{2, 4, 6})
	standard := math.Sqrt(2.5 * (1./3 + 1./3))
	if !near(e.size, 2) || !near(e.sd, math.Sqrt(2.5)) || e.freedom != 4 || !near(e.standard(), standard) {
		t.Errorf("the effect is %+v with a standard error of %v, want 2, √2.5, 4 and %v", e, e.standard(), standard)
	}
	for level, quantile := range map[float64]float64{0.95: 2.776445, 0.9: 2.131847} {
		v := e.ratio(level)
		if !near(v.Value, math.Exp(2)) || !near(v.Lo, math.Exp(2-quantile*standard)) || !near(v.Hi, math.Exp(2+quantile*standard)) {
			t.Errorf("level %v: the interval is %v, want exp(2 ± %v)", level, v, quantile*standard)
		}
		// Test and interval agree: an effect that the interval just excludes has that p-value.
		edge := effect{size: quantile * standard, sd: e.sd, freedom: 4, n: 3, m: 3}
		if p := edge.p(); math.Abs(p-(1-level)) > 1e-6 {
			t.Errorf("level %v: an effect at the end of the interval has p = %v", level, p)
		}
		edge.margin, edge.size = 1, -edge.size-1
		if p := edge.p(); math.Abs(p-(1-level)) > 1e-6 {
			t.Errorf("level %v: beyond a margin, p = %v", level, p)
		}
	}
}

// TestEnough: so many runs are proposed that Student's test of them finds the change in four of five
// cases: (t(1-α/2, 2n-2) + 0.84) · sd · √(2/n) is at most the change.
func TestEnough(t *testing.T) {
	o := Options{Alpha: 0.05, MinEffect: 0.02, Level: 0.95}
	three := []float64{0, 0, 0}
	for _, c := range []struct {
		name   string
		sd     float64 // of a run
		change float64 // as a log
		tested int
		want   int
	}{
		{"a change of twice the spread", 0.05, 0.095, 1, 6}, // (2.228+0.84)·0.05·√(2/6) = 0.0886; with 5 runs 0.0995
		{"among ten points", 0.05, 0.095, 10, 10},           // α = 0.005: (3.197+0.84)·0.05·√(2/10) = 0.0903; with 9 runs 0.0965
		{"no change, and it should not matter", 0.01, 0, 10, 6},
		{"too small a change", 0.5, 0.03, 1, 0},
	} {
		ch := &Change{Ratio: Interval{Value: math.Exp(c.change)}, Spread: math.Expm1(c.sd), before: three, after: three, freedom: 4}
		if n := new(Comparison).enough(ch, o, c.tested, quantiles{}); n != c.want {
			t.Errorf("%s: %d runs, want %d", c.name, n, c.want)
		}
	}
}

// TestSpreadOfSingleRuns: of two single runs, the spread of a run is estimated by the median distance of
// the changes from their common shift, which is 1/1.4826 of a normal distribution's deviation, and a
// change is a difference of two runs.
func TestSpreadOfSingleRuns(t *testing.T) {
	var a, b results.Set
	a.Label, b.Label = "a", "b"
	const shift = 0.03
	for i, apart := range []float64{-0.08, -0.04, -0.02, -0.01, 0, 0.01, 0.02, 0.04, 0.08} {
		for s, factor := range map[*results.Set]float64{&a: 1, &b: math.Exp(shift + apart)} {
			r := newMachine(1).record(i+1, "naive", 1, 6)
			for k := range r.Samples.Wall {
				r.Samples.Wall[k] = factor
			}
			st, _ := results.Summarize(r.Samples.Wall, 0)
			r.Stats = &st
			s.Records = append(s.Records, r)
		}
	}
	list, err := compared(a, b, Usual())
	if err != nil {
		t.Fatal(err)
	}
	c := list[0]
	sd := 1.4826 * 0.02
	if !near(c.Shift.Value, math.Exp(shift)) || !near(c.Spread, math.Expm1(sd/math.Sqrt2)) {
		t.Errorf("the shift is %v and the spread %v, want %v and %v", c.Shift.Value, c.Spread, math.Exp(shift), math.Expm1(sd/math.Sqrt2))
	}
	// Of nine points, the largest that chance explains is at 1 - 0.05/2/9 of t with 8 degrees of freedom.
	if reach := math.Expm1(3.7586 * sd); math.Abs(c.Reach-reach) > 1e-3*reach {
		t.Errorf("a moment is said to cause %v at most, want %v", c.Reach, reach)
	}
}
