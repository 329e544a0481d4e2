package compare

import (
	"math"
	"testing"

	"rnnbench/record"
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
		{"a change of twice the spread", 0.05, 0.0975, 1, 6}, // (2.228+0.84)·0.05·√(2/6) = 0.0886; with 5 runs 0.0995
		{"among ten points", 0.05, 0.095, 10, 10},            // α = 0.005: (3.197+0.84)·0.05·√(2/10) = 0.0903; with 9 runs 0.0965
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
	var a, b record.Set
	a.Label, b.Label = "a", "b"
	const shift = 0.03
	for i, apart := range []float64{-0.08, -0.04, -0.02, -0.01, 0, 0.01, 0.02, 0.04, 0.08} {
		for s, factor := range map[*record.Set]float64{&a: 1, &b: math.Exp(shift + apart)} {
			r := newMachine(1).record(i+1, "naive", 1, 6)
			for k := range r.Samples.Wall {
				r.Samples.Wall[k] = factor
			}
			st, _ := record.Summarize(r.Samples.Wall, 0)
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

// TestIndependent: points whose residuals are alike count as one, and points without correlation each.
func TestIndependent(t *testing.T) {
	a, b := []float64{-0.01, 0, 0.01}, []float64{0.01, -0.02, 0.01}
	point := func(before, after []float64) *Change {
		return &Change{before: before, after: after, unshifted: [2][]float64{before, after}}
	}
	for _, c := range []struct {
		name string
		list []*Change
		want float64
	}{
		{"one", []*Change{point(a, b)}, 1},
		{"two alike", []*Change{point(a, b), point(a, b)}, 1},
		{"two without correlation", []*Change{point(a, b), point(b, a)}, 2},
		// Of four degrees of freedom, a squared correlation of 1/2 is 1/3 of the way from chance to alike.
		{"two half alike", []*Change{point(a, []float64{0, 0, 0}), point([]float64{-0.01, 0, 0.01}, a)}, 1.5},
	} {
		if got := independent(c.list); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v points, want %v", c.name, got, c.want)
		}
	}
}

// TestSteady: points stay the same only if the whole interval of their common shift is too small to
// matter.
func TestSteady(t *testing.T) {
	o := Options{MinEffect: 0.02}
	for _, c := range []struct {
		name string
		c    Comparison
		want bool
	}{
		{"no shift", Comparison{Shift: Interval{Value: 1, Lo: 0.99, Hi: 1.01}}, true},
		{"perhaps slower", Comparison{Shift: Interval{Value: 1, Lo: 0.99, Hi: 1.03}}, false},
		{"perhaps faster", Comparison{Shift: Interval{Value: 1, Lo: 0.97, Hi: 1.01}}, false},
		{"single runs", Comparison{Single: true, Shift: Interval{Value: 1.01, Lo: math.NaN(), Hi: math.NaN()}}, true},
		{"single runs apart", Comparison{Single: true, Shift: Interval{Value: 0.97, Lo: math.NaN(), Hi: math.NaN()}}, false},
		{"part of every ratio", Comparison{Shifted: true, Shift: Interval{Value: 1.5, Lo: 1.4, Hi: 1.6}}, true},
		{"unknown", Comparison{Shift: unknown()}, true},
	} {
		if got := c.c.steady(o); got != c.want {
			t.Errorf("%s: steady is %t", c.name, got)
		}
	}
}

// moved makes up points of three runs a side. All points of a run move by the same, and besides each
// point by apart times a pattern of its own.
func moved(by, apart float64) (list []*Change) {
	run := []float64{-0.01, 0, 0.01}
	patterns := [][]float64{{1, -1, 0}, {0, 1, -1}, {-1, 0, 1}, {1, 0, -1}, {-1, 1, 0}, {0, -1, 1}, {1, -2, 1}, {-1, 2, -1}, {0, 0, 0}}
	for i, p := range patterns {
		ch := &Change{}
		for k, shift := range run {
			ch.before = append(ch.before, float64(i)+shift+apart*p[k])
			ch.after = append(ch.after, float64(i)+shift+apart*p[(k+1)%3]+by)
		}
		list = append(list, ch)
	}
	return list
}

// TestSharedShift: where all points moved together by more than runs differ, each ratio includes that
// shift, and its interval that of the shift: with t(0.975, 4) = 2.776445, ± 2.776·0.01·√(2/3).
func TestSharedShift(t *testing.T) {
	var c Comparison
	list := moved(0.3, 0)
	c.several(list, Usual(), 1)
	wide := 2.776445 * 0.01 * math.Sqrt(2./3)
	if !c.Shifted || math.Abs(math.Log(c.Shift.Lo)-(0.3-wide)) > 1e-6 || math.Abs(math.Log(c.Shift.Hi)-(0.3+wide)) > 1e-6 {
		t.Fatalf("the common shift is %v, told %t, want exp(0.3 ± %v)", c.Shift, c.Shifted, wide)
	}
	for _, ch := range list {
		lo, hi := math.Log(ch.Ratio.Lo), math.Log(ch.Ratio.Hi)
		if math.Abs(math.Log(ch.Ratio.Value)-0.3) > 1e-9 || lo > 0.3-wide || lo < 0.3-1.1*wide || hi < 0.3+wide || hi > 0.3+1.1*wide {
			t.Errorf("a ratio is exp of %v from %v to %v, want 0.3 ± %v or a little more", math.Log(ch.Ratio.Value), lo, hi, wide)
		}
	}
}

// TestLevelOfPoints: the test of the common shift takes 2 % of the level, so the points have 98 % of it.
// Each point's p-value is then Student's, divided by 0.98.
func TestLevelOfPoints(t *testing.T) {
	var c Comparison
	list := moved(0, 0.003)
	for i, ch := range list {
		ch.after[0] += 0.001 * float64(i-4)
	}
	c.several(list, Usual(), 1)
	for i, ch := range list {
		e := effect{size: math.Log(ch.Ratio.Value), sd: math.Log1p(ch.Spread), freedom: ch.freedom, n: 3, m: 3}
		if want := min(1, e.p()/0.98); c.Shifted || math.Abs(ch.P-want) > 1e-9 {
			t.Errorf("point %d: p is %v, want %v", i, ch.P, want)
		}
	}
}

// TestEnoughForMost: the number of runs settles nine of ten ambiguous points.
func TestEnoughForMost(t *testing.T) {
	with := func(each ...int) *Comparison {
		c := &Comparison{Changes: []Change{{Verdict: Same, Enough: 77}}}
		for _, n := range each {
			c.Changes = append(c.Changes, Change{Verdict: Ambiguous, Enough: n})
		}
		return c
	}
	for _, c := range []struct {
		each []int // 0: more runs than are worth proposing
		want int
	}{{nil, 0}, {[]int{7}, 7}, {[]int{3, 4, 5, 6, 7, 8, 9, 10, 11, 0}, 11}, {[]int{3, 4, 5, 6, 7, 8, 9, 10, 0, 0}, 0}, {[]int{0}, 0}} {
		if n := with(c.each...).Enough(); n != c.want {
			t.Errorf("%v: %d runs, want %d", c.each, n, c.want)
		}
	}
}

// TestReachOfWideSamples: where samples of a point spread widely, a moment may explain three standard
// deviations of them. Half of a normal distribution lies within ± 0.6745 of these.
func TestReachOfWideSamples(t *testing.T) {
	newRecord := func(spread float64) *record.Record {
		r := newMachine(1).record(1, "naive", 1, 8)
		for i := range r.Samples.Wall {
			r.Samples.Wall[i] = math.Exp(spread * float64(i-4))
		}
		return &r
	}
	c := &Comparison{Reach: 0.05}
	narrow, wide := newRecord(0.0001), newRecord(0.1)
	for _, ch := range []*Change{{Base: narrow, New: wide}, {Base: wide, New: narrow}} {
		ch.Ratio.Value = 1.1
		if got, want := c.reach(ch), math.Expm1(3*0.4/1.349); !near(got, want) { // from the third to the seventh of eight
			t.Errorf("a moment may cause %v, want %v", got, want)
		}
	}
	if got := c.reach(&Change{Base: narrow, New: narrow, Ratio: Interval{Value: 1.1}}); !near(got, 0.05) {
		t.Errorf("of narrow samples, a moment may cause %v, want that of the run", got)
	}
}

// TestManyPairs: for many samples the normal approximation stands for the exact distribution of Mann and
// Whitney's test.
func TestManyPairs(t *testing.T) {
	const n = 60
	about, exactly := tails{n: n, m: n}, tails{n, n, count(n, n)}
	for _, u := range []int{1200, 1400, 1424, 1600, 1800} {
		if a, b := about.upTo(u), exactly.upTo(u); math.Abs(a-b) > 7e-4 {
			t.Errorf("at most %d pairs: a probability of %v, exactly %v", u, a, b)
		}
	}
}
