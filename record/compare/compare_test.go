package compare

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/perf/benchmath"

	"rnnbench/record"
)

// A machine makes up runs with known noise.
type machine struct{ rng *rand.Rand }

func newMachine(seed uint64) machine { return machine{rand.New(rand.NewPCG(seed, 1))} }

// record is a point with n samples around t. As in real times, the noise is skewed to the right, and
// now and then a sample is slow.
func (m machine) record(hidden int, name string, t float64, n int) record.Record {
	r := record.Record{
		Schema: record.Schema,
		Point:  record.Point{Cell: "lstm", Pass: "forward", Hidden: hidden, Input: hidden, Batch: 8, Steps: 10, Layers: 1, Precision: "fp32"},
		Impl:   record.Impl{Name: name, Label: name}, Device: "machine",
		Mode: record.Mode{Cache: "hot", Timer: "wall", Data: "normal"}, Status: record.OK,
		Samples: &record.Samples{},
	}
	for range n {
		s := t * math.Exp(0.01*math.Abs(m.rng.NormFloat64())+0.005*m.rng.NormFloat64())
		if m.rng.IntN(20) == 0 {
			s *= 1 + m.rng.Float64()
		}
		r.Samples.Wall = append(r.Samples.Wall, s)
	}
	st, _ := record.Summarize(r.Samples.Wall, 0)
	r.Stats = &st
	return r
}

// run has one technique at so many points. slow gives the factor by which each point is slower.
func (m machine) run(label string, points, n int, slow func(i int) float64) record.Set {
	s := record.Set{Label: label}
	for i := range points {
		s.Records = append(s.Records, m.record(i+1, "naive", 1e-3*slow(i), n))
	}
	return s
}

func flat(int) float64 { return 1 }

// compared compares two runs.
func compared(a, b record.Set, o Options) ([]Comparison, error) {
	return Runs(Side{a.Label, []record.Set{a}}, []Side{{b.Label, []record.Set{b}}}, o)
}

// TestShift compares the test with another library's, and its interval with the true shift.
func TestShift(t *testing.T) {
	m := newMachine(1)
	tab := tables{}
	for _, size := range [][2]int{{1, 1}, {4, 4}, {6, 9}, {20, 17}, {40, 45}, {60, 70}} {
		covered, all := 0, 0
		for range 200 {
			draw := func(n int, by float64) []float64 {
				list := make([]float64, n)
				for i := range list {
					list[i] = by + m.rng.ExpFloat64()
				}
				slices.Sort(list)
				return list
			}
			a, b := draw(size[0], 0), draw(size[1], 0.3)
			v, p := tab.shift(a, b, 0.95)
			ref := benchmath.AssumeNothing.Compare(benchmath.NewSample(a, &benchmath.DefaultThresholds), benchmath.NewSample(b, &benchmath.DefaultThresholds))
			if math.Abs(p-ref.P) > 1e-9 && size[0]*size[1] <= exact || math.Abs(p-ref.P) > 0.01 {
				t.Fatalf("%v samples: p = %v, want %v", size, p, ref.P)
			}
			if !v.Known() {
				continue
			}
			if !(v.Lo <= v.Value && v.Value <= v.Hi) || (p < 0.05) != (v.Lo > 0 || v.Hi < 0) {
				t.Errorf("%v samples: interval %v and p = %v contradict each other", size, v, p)
			}
			all++
			if v.Lo <= 0.3 && 0.3 <= v.Hi {
				covered++
			}
		}
		if all > 0 && float64(covered) < 0.91*float64(all) {
			t.Errorf("%v samples: %d of %d intervals cover the shift", size, covered, all)
		}
		if (all > 0) != (size[0] >= 4) {
			t.Errorf("%v samples: %d intervals", size, all)
		}
	}
	// Ties do not make a difference rarer, and only ties are no difference.
	if _, p := tab.shift([]float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, 0.95); p != 1 {
		t.Errorf("equal samples: p = %v", p)
	}
	if v, p := tab.shift(nil, []float64{1}, 0.95); p != 1 || v.Known() {
		t.Errorf("no samples: %v, p = %v", v, p)
	}
}

// TestUnchangedRunsAreNotCalledChanged draws runs that do not differ, so every point called faster or slower
// is an error. Of 40 comparisons of 250 points, hardly one may have such a point.
func TestUnchangedRunsAreNotCalledChanged(t *testing.T) {
	wrong := 0
	comparisons, points := 40, 250
	if testing.Short() {
		comparisons = 10
	}
	settled := 0
	for seed := range comparisons {
		m := newMachine(uint64(seed))
		list, err := compared(m.run("a", points, 15, flat), m.run("b", points, 15, flat), Options{Alpha: 0.05, MinEffect: 0.001, Level: 0.95})
		if err != nil {
			t.Fatal(err)
		}
		if c := &list[0]; c.Count(Faster)+c.Count(Slower) > 0 {
			wrong++
		}
		list, err = compared(m.run("a", points, 15, flat), m.run("b", points, 15, flat), Usual())
		if err != nil {
			t.Fatal(err)
		}
		settled += list[0].Count(Same)
		if n := list[0].Count(Same) + list[0].Count(Ambiguous); n != points {
			t.Errorf("%d of %d points are the same or ambiguous", n, points)
		}
	}
	// Without a minimum effect, one comparison in twenty may err. 7 of 40 would be a chance
	// of one in 300.
	if wrong > 6 {
		t.Errorf("%d of %d comparisons call something faster or slower that is not", wrong, comparisons)
	}
	if settled < comparisons*points*3/4 {
		t.Errorf("%d of %d points are told to be the same", settled, comparisons*points)
	}
}

// TestChangesAreFound draws changes: these are found, and no others.
func TestChangesAreFound(t *testing.T) {
	m := newMachine(3)
	slow := func(i int) float64 {
		switch {
		case i < 20:
			return 1.10
		case i < 40:
			return 1 / 1.10
		}
		return 1
	}
	var a, b Side
	for range 3 {
		a.Runs, b.Runs = append(a.Runs, m.run("a", 200, 9, flat)), append(b.Runs, m.run("b", 200, 9, slow))
	}
	list, err := Runs(a, []Side{b}, Usual())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i, c := range list[0].Changes {
		want := map[Verdict]Verdict{Slower: Slower, Faster: Faster}
		switch {
		case i < 20:
			if c.Verdict == want[Slower] {
				found++
			} else if c.Verdict != Ambiguous {
				t.Errorf("point %d is %s", i, c.Verdict)
			}
		case i < 40:
			if c.Verdict == want[Faster] {
				found++
			} else if c.Verdict != Ambiguous {
				t.Errorf("point %d is %s", i, c.Verdict)
			}
		case c.Verdict == Faster || c.Verdict == Slower:
			t.Errorf("point %d did not change and is %s", i, c.Verdict)
		}
	}
	if found < 36 {
		t.Errorf("%d of 40 changes of 10 %% were found", found)
	}
	worst := list[0].Worst(5)
	if len(worst) != 5 || worst[0].Ratio.Value < worst[4].Ratio.Value {
		t.Errorf("worst: %v", worst)
	}
	g, n := list[0].Geomean(0.95, func(c *Change) bool { return c.New.Point.Hidden <= 20 })
	if n != 20 || !(g.Lo < 1.10 && 1.10 < g.Hi) || g.Hi-g.Lo > 0.02 {
		t.Errorf("geometric mean of %d: %v", n, g)
	}
	if g, _ := list[0].Geomean(0.95, nil); !(g.Lo < 1 && 1 < g.Hi) {
		t.Errorf("geometric mean of all: %v", g)
	}
}

// TestMoments simulates a machine that is half as fast for a while. Two runs cannot tell this from a
// change, but several runs in turns can.
func TestMoments(t *testing.T) {
	m := newMachine(4)
	moment := func(from, to int, real float64) func(int) float64 {
		return func(i int) float64 {
			f := 1.0
			if i >= from && i < to {
				f = 2
			}
			if i >= 190 {
				f *= real
			}
			return f
		}
	}
	base := []record.Set{m.run("a", 200, 6, moment(0, 0, 1)), m.run("a", 200, 6, moment(30, 60, 1)), m.run("a", 200, 6, moment(0, 0, 1))}
	now := []record.Set{m.run("b", 200, 6, moment(50, 120, 1.3)), m.run("b", 200, 6, moment(0, 0, 1.3)), m.run("b", 200, 6, moment(150, 160, 1.3))}
	list, err := Runs(Sides(base)[0], Sides(now), Usual())
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range list[0].Changes {
		if want := i >= 190; (c.Verdict == Slower) != want || c.Verdict == Faster {
			t.Errorf("point %d is %s (%s), p = %v, %v", i, c.Verdict, c.Why, c.P, c.Ratio)
		}
		if n := c.New.Stats.N; n != 18 {
			t.Errorf("point %d has %d samples of three runs", i, n)
		}
	}
	// A point that fails in one of the runs is broken.
	now[1].Records[0] = fail(now[1].Records[0], record.Failed, record.ReasonError, "no")
	list, err = Runs(Sides(base)[0], Sides(now), Usual())
	if err != nil || list[0].Changes[0].Verdict != Broken {
		t.Errorf("%v: %v", list[0].Changes[0].Verdict, err)
	}
	// Points that move in both directions hide changes of the same size.
	jitter := m.run("b", 200, 15, func(i int) float64 { return 1 + 0.05*math.Sin(float64(i)) })
	list, err = compared(m.run("a", 200, 15, flat), jitter, Usual())
	if err != nil || list[0].Reach < 0.05 || list[0].Count(Slower)+list[0].Count(Faster) > 0 {
		t.Errorf("reach %v, %d slower, %d faster: %v", list[0].Reach, list[0].Count(Slower), list[0].Count(Faster), err)
	}
}

func fail(r record.Record, s record.Status, code, why string) record.Record {
	r.Status, r.ReasonCode, r.Reason, r.Samples, r.Stats = s, &code, &why, nil, nil
	return r
}

func TestVerdicts(t *testing.T) {
	m := newMachine(5)
	good := func(h int) record.Record { return m.record(h, "naive", 1e-3, 12) }
	bad := func(h int) record.Record {
		return fail(good(h), record.Incorrect, record.ReasonMismatch, "h is off by 3")
	}
	lost := func(h int) record.Record {
		return fail(good(h), record.Failed, record.ReasonLost, "the worker was killed")
	}
	declined := func(h int) record.Record {
		return fail(good(h), record.Skipped, record.ReasonShape, "it is not made for this")
	}
	slower := m.record(1, "naive", 1.5e-3, 12)
	slower.Warnings = []string{record.WarnDrift}
	base := record.Set{Label: "base", Records: []record.Record{good(1), good(2), bad(3), bad(4), good(5), good(7), good(8), lost(9), declined(10)}}
	run := record.Set{Label: "run", Records: []record.Record{
		slower, bad(2), good(3), bad(4), good(6),
		fail(good(7), record.Failed, record.ReasonInterrupted, "interrupted"),
		lost(8), good(9), declined(11),
	}}
	list, err := compared(base, run, Usual())
	if err != nil {
		t.Fatal(err)
	}
	c := list[0]
	want := map[int]Verdict{1: Slower, 2: Broken, 3: Fixed, 5: Gone, 6: New, 7: Gone, 8: Gone, 9: New}
	for i := range c.Changes {
		ch := &c.Changes[i]
		h := ch.Record().Point.Hidden
		if ch.Verdict != want[h] {
			t.Errorf("H=%d is %s, want %s", h, ch.Verdict, want[h])
		}
		delete(want, h)
		switch ch.Verdict {
		case Broken, Fixed:
			if !strings.Contains(ch.Why, "h is off by 3") {
				t.Errorf("%s without a reason: %q", ch.Verdict, ch.Why)
			}
		case Slower:
			if !strings.Contains(ch.Why, "drift") {
				t.Errorf("the noise is not told: %q", ch.Why)
			}
		}
	}
	if len(want) > 0 || c.Unknown != 3 {
		t.Errorf("missing: %v, unknown %d", want, c.Unknown)
	}
}

// TestFewSamples checks the verdicts from few samples.
func TestFewSamples(t *testing.T) {
	m := newMachine(6)
	double := func(i int) float64 {
		if i == 0 {
			return 2
		}
		return 1
	}
	for _, c := range []struct {
		points, n int
		want      Verdict
	}{{1, 3, Ambiguous}, {1, 4, Slower}, {200, 6, Ambiguous}, {200, 9, Slower}} {
		list, err := compared(m.run("a", c.points, c.n, flat), m.run("b", c.points, c.n, double), Usual())
		if err != nil {
			t.Fatal(err)
		}
		if got := list[0].Changes[0].Verdict; got != c.want {
			t.Errorf("%d points of %d samples: the first is %s", c.points, c.n, got)
		}
	}
}

func TestSidesThatCannotBeCompared(t *testing.T) {
	m := newMachine(7)
	a := m.run("a", 3, 5, flat)
	lstm := m.run("b", 3, 5, flat)
	for i := range lstm.Records {
		lstm.Records[i].Point.Cell = "gru"
	}
	turned := m.run("b", 3, 5, flat)
	for i := range turned.Records {
		turned.Records[i].Point.Direction = "both"
	}
	elsewhere := m.run("b", 3, 5, flat)
	for i := range elsewhere.Records {
		elsewhere.Records[i].Device = "other"
	}
	broken := record.Set{Label: "b"}
	for _, r := range a.Records {
		broken.Records = append(broken.Records, fail(r, record.Skipped, record.ReasonMemory, "too large"))
	}
	across := Usual()
	across.Across = true
	two := record.Set{Label: "two", Records: append(slices.Clone(a.Records), elsewhere.Records...)}
	for _, c := range []struct {
		name    string
		a, b    record.Set
		o       Options
		want    error
		message string
	}{
		{"another cell", a, lstm, Usual(), ErrNothing, "no cell is in both"},
		{"another direction", a, turned, Usual(), ErrNothing, "no direction is in both"},
		{"nothing", a, record.Set{Label: "empty"}, Usual(), ErrNothing, "a and empty"},
		{"no result in either", broken, broken, Usual(), ErrNothing, "no point was measured in both"},
		{"another machine", a, elsewhere, Usual(), ErrDevices, "machine and other"},
		{"another machine, as asked for", a, elsewhere, across, nil, ""},
		{"two machines at once", two, a, across, nil, "measured on machine and on other"},
		{"all broken", a, broken, Usual(), nil, ""},
		{"no level", a, a, Options{MinEffect: 0.1, Level: 0.95}, nil, "level of the tests"},
		{"no effect", a, a, Options{Alpha: 0.05, MinEffect: math.NaN(), Level: 0.95}, nil, "minimum effect"},
	} {
		_, err := compared(c.a, c.b, c.o)
		if c.want != nil && !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.message) || (err == nil) != (c.want == nil && c.message == "") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// A run compared with itself is the same.
	list, err := compared(a, a, Usual())
	if err != nil || list[0].Count(Same)+list[0].Count(Ambiguous) != 3 {
		t.Errorf("a run and itself: %v, %v", list, err)
	}
}

func BenchmarkRuns(b *testing.B) {
	m := newMachine(8)
	x, y := m.run("a", 5000, 30, flat), m.run("b", 5000, 30, flat)
	for b.Loop() {
		if _, err := compared(x, y, Usual()); err != nil {
			b.Fatal(err)
		}
	}
}
