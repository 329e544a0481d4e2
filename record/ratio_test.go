package record

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// turns makes records of techniques that took n samples each in turns. Each round has a speed of its
// own, which drifts, and each sample noise, which is skewed. times are the true times.
func turns(rng *rand.Rand, n int, times ...float64) []*Record {
	list := make([]*Record, len(times))
	for i := range list {
		list[i] = &Record{Run: "one", Device: "cpu", Status: OK, Time: time.Unix(100, int64(i)*1e6), Samples: &Samples{}, Cost: Cost{Measure: 0.5}}
	}
	level := 0.0
	for range n {
		level += 0.05 * rng.NormFloat64()
		for i, r := range list {
			t := times[i] * math.Exp(level+0.01*math.Abs(rng.NormFloat64())+0.005*rng.NormFloat64())
			if rng.IntN(20) == 0 {
				t *= 1 + rng.Float64()
			}
			r.Samples.Wall = append(r.Samples.Wall, t)
		}
	}
	for _, r := range list {
		s, _ := Summarize(r.Samples.Wall, 0)
		r.Stats = &s
	}
	return list
}

// TestRatioCovers counts how often the interval of a ratio covers the true one, and how often two
// techniques that are equally fast have a leader.
func TestRatioCovers(t *testing.T) {
	const tries = 4000
	rng := rand.New(rand.NewPCG(53, 8))
	for _, n := range []int{6, 10, 20} {
		for _, truth := range []float64{1, 1.5} {
			covered, apart, leads := 0, 0, 0
			width, wide := 0.0, 0.0
			for range tries {
				r := turns(rng, n, 1, truth)
				v, paired := Ratio(r[0], r[1])
				if !paired || !v.Known() {
					t.Fatalf("%d rounds: %+v, paired %t", n, v, paired)
				}
				other := *r[1]
				other.Run = "another"
				w, paired := Ratio(r[0], &other)
				if paired || !w.Known() {
					t.Fatalf("%d samples of another run: %+v, paired %t", n, w, paired)
				}
				covered, apart, leads = covered+count(v.Lo <= truth && truth <= v.Hi), apart+count(w.Lo <= truth && truth <= w.Hi), leads+count(v.Leads())+count(v.Hi < 1/LeastLead)
				width, wide = width+math.Log(v.Hi/v.Lo), wide+math.Log(w.Hi/w.Lo)
			}
			// The intervals cover at 95 % or above; 3 standard errors of the count are 1 %.
			if share := float64(covered) / tries; share < 0.94 {
				t.Errorf("%d rounds, ratio %v: paired intervals cover it in %.3f of cases", n, truth, share)
			}
			if share := float64(apart) / tries; share < 0.94 {
				t.Errorf("%d samples, ratio %v: unpaired intervals cover it in %.3f of cases", n, truth, share)
			}
			if share := float64(leads) / tries; truth == 1 && share > 0.06 {
				t.Errorf("%d rounds: equal techniques have a leader in %.3f of cases", n, share)
			}
			if n > 6 && width > wide/2 {
				t.Errorf("%d rounds: paired intervals are %.3f wide, unpaired ones %.3f", n, width/tries, wide/tries)
			}
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestSameRounds: only records that were measured side by side are paired.
func TestSameRounds(t *testing.T) {
	shard, next := "1/2", "2/2"
	for _, c := range []struct {
		name   string
		change func(a, b *Record)
		want   bool
	}{
		{"in turns", func(a, b *Record) {}, true},
		{"either order", func(a, b *Record) { a.Time, b.Time = b.Time, a.Time }, true},
		{"one after the other", func(a, b *Record) { b.Time = a.Time.Add(500 * time.Millisecond) }, false},
		{"sequential", func(a, b *Record) { a.Mode.Order, b.Mode.Order = "sequential", "sequential" }, false},
		{"another run", func(a, b *Record) { b.Run = "two" }, false},
		{"no run", func(a, b *Record) { a.Run, b.Run = "", "" }, false},
		{"another device", func(a, b *Record) { b.Device = "gpu" }, false},
		{"another shard", func(a, b *Record) { a.Node, b.Node = &Node{"n", &shard}, &Node{"n", &next} }, false},
		{"the same shard", func(a, b *Record) { a.Node, b.Node = &Node{"n", &shard}, &Node{"n", &shard} }, true},
		{"training", func(a, b *Record) { b.Training = &Training{} }, false},
	} {
		r := turns(rand.New(rand.NewPCG(1, 1)), 10, 1, 2)
		c.change(r[0], r[1])
		if _, paired := Ratio(r[0], r[1]); paired != c.want {
			t.Errorf("%s: paired %t", c.name, paired)
		}
	}
}

// TestSettled: a lead and equality settle who wins, an open ratio and too few rounds do not.
func TestSettled(t *testing.T) {
	same := func(v float64, n int) (list []float64) {
		for i := range n {
			list = append(list, v*(1+0.001*float64(i%3)))
		}
		return list
	}
	open := []float64{0.9, 1.1, 0.9, 1.1, 0.9, 1.1, 0.9, 1.1}
	for _, c := range []struct {
		name    string
		samples [][]float64
		want    bool
	}{
		{"alone", [][]float64{same(1, 8)}, true},
		{"a lead", [][]float64{same(2, 8), same(1, 8), same(3, 8)}, true},
		{"equal", [][]float64{same(1, 8), same(1.001, 8)}, true},
		{"open", [][]float64{same(1, 8), open}, false},
		{"one of three open", [][]float64{same(1, 8), same(2, 8), open}, false},
		{"few rounds", [][]float64{same(1, 5), same(2, 5)}, false},
		{"no samples", [][]float64{same(1, 8), nil}, false},
	} {
		if got := Settled(c.samples); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// TestRatio: the estimate is the ratio of medians, and pairs leave out what slowed whole rounds.
func TestRatio(t *testing.T) {
	r := turns(rand.New(rand.NewPCG(1, 1)), 10, 1, 2)
	for i := range 10 {
		slow := 1 + float64(i%5)
		r[0].Samples.Wall[i], r[1].Samples.Wall[i] = slow, 1.25*slow
	}
	for _, x := range r {
		s, _ := Summarize(x.Samples.Wall, 0)
		x.Stats = &s
	}
	if v, paired := Ratio(r[0], r[1]); v != (Interval{1.25, 1.25, 1.25}) || !paired || !v.Leads() {
		t.Errorf("got %+v, paired %t", v, paired)
	}
	if v, _ := Ratio(r[1], r[0]); v != (Interval{0.8, 0.8, 0.8}) || v.Leads() {
		t.Errorf("got %+v", v)
	}
	r[1].Samples.Wall = r[1].Samples.Wall[:5] // as after a time-out
	if v, paired := Ratio(r[0], r[1]); !paired || v.Known() || v.Leads() {
		t.Errorf("five rounds: %+v, paired %t", v, paired)
	}
	r[1].Status = Failed
	if v, _ := Ratio(r[0], r[1]); !math.IsNaN(v.Value) || v.Known() {
		t.Errorf("no time: %+v", v)
	}
	if (Interval{1.005, 1.004, 1.006}).Leads() {
		t.Error("half a percent is no lead")
	}
}
