package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"rnnbench/record"
)

// A moment says how a simulated machine's runs differ, mostly as standard deviations of logarithms.
type moment struct {
	name    string
	shift   float64 // of all points of a run alike
	point   float64 // of each point of a run
	rare    float64 // chance that a point of a run has a slow moment, up to twice as slow
	group   float64 // of every second point of a run alike, such as points on two workers
	drift   float64 // by which each run is slower than the one before
	uneven  float64 // of the points' spreads
	bimodal float64 // by which a sixth of the points is slower in about every second run
}

var moments = []moment{
	{name: "quiet", shift: 0.002, point: 0.005},
	{name: "common shift", shift: 0.2, point: 0.01},
	{name: "drift", shift: 0.02, point: 0.01, drift: 0.03},
	{name: "uneven points", shift: 0.02, point: 0.01, uneven: 1},
	{name: "heavy tails", shift: 0.02, point: 0.01, rare: 0.2},
	{name: "groups", shift: 0.02, point: 0.01, group: 0.1},
	{name: "two states", shift: 0.02, point: 0.01, bimodal: 0.3},
	{name: "all at once", shift: 0.1, point: 0.03, rare: 0.1, group: 0.05, drift: 0.01, uneven: 0.7, bimodal: 0.1},
}

// sides simulates n runs per side, in turns, with k samples of each point in each run. slow gives the
// true ratio of a point.
func (w moment) sides(rng *rand.Rand, n, points, k int, slow func(i int) float64) (a, b Side) {
	a.Label, b.Label = "a", "b"
	m := machine{rng}
	scale := make([]float64, points)
	for i := range scale {
		scale[i] = math.Exp(w.uneven * rng.NormFloat64())
	}
	run := func(order int, slow func(i int) float64) record.Set {
		shift, group := w.shift*rng.NormFloat64()+w.drift*float64(order), w.group*rng.NormFloat64()
		var s record.Set
		for i := range points {
			lg := shift + w.point*scale[i]*rng.NormFloat64()
			if i%2 == 0 {
				lg += group
			}
			if rng.Float64() < w.rare {
				lg += rng.Float64() * math.Ln2
			}
			if i%6 == 0 && rng.IntN(2) == 0 {
				lg += w.bimodal
			}
			s.Records = append(s.Records, m.quick(i+1, 1e-3*slow(i)*math.Exp(lg), k))
		}
		return s
	}
	for i := range n {
		first, second := run(2*i, flat), run(2*i+1, slow)
		if i%2 == 1 { // A B B A
			first, second = run(2*i+1, flat), run(2*i, slow)
		}
		a.Runs, b.Runs = append(a.Runs, first), append(b.Runs, second)
	}
	return a, b
}

// quick is record without the statistics' intervals, which take long to compute.
func (m machine) quick(hidden int, t float64, n int) record.Record {
	r := m.record(hidden, "naive", t, 0)
	for range n {
		r.Samples.Wall = append(r.Samples.Wall, t*math.Exp(0.005*m.rng.NormFloat64()))
	}
	r.Stats = &record.Stats{N: n, Median: math.Exp(median(logs(&r)))}
	return r
}

// verdicts counts the verdicts of comparisons of simulated sides.
func (w moment) verdicts(t *testing.T, seed uint64, comparisons, n, points, k int) (counts map[Verdict]int, wrong, bad int, spread float64) {
	t.Helper()
	counts = map[Verdict]int{}
	for c := range comparisons {
		rng := rand.New(rand.NewPCG(seed, uint64(c)))
		a, b := w.sides(rng, n, points, k, flat)
		list, err := Runs(a, []Side{b}, Usual())
		if err != nil {
			t.Fatal(err)
		}
		was := wrong
		for i := range list[0].Changes {
			ch := &list[0].Changes[i]
			counts[ch.Verdict]++
			if ch.Verdict == Slower || ch.Verdict == Faster {
				wrong++
			}
		}
		if wrong > was {
			bad++
		}
		spread += list[0].Spread / float64(comparisons)
	}
	return counts, wrong, bad, spread
}

// samplesIn is how many samples a run needs. Only single runs are tested by samples.
func samplesIn(runs int) int {
	if runs == 1 {
		return 10
	}
	return 3
}

// TestNothingChanged compares simulated runs of the same program. Whatever the machine does, at most 10
// of 1,000 points may be called faster or slower. About one of twenty comparisons may have such a point.
func TestNothingChanged(t *testing.T) {
	comparisons := 50
	if testing.Short() {
		comparisons = 10
	}
	for _, w := range moments {
		for _, n := range []int{1, 3, 5} {
			t.Run(fmt.Sprintf("%s, %d runs", w.name, n), func(t *testing.T) {
				counts, wrong, bad, spread := w.verdicts(t, 1, comparisons, n, 40, samplesIn(n))
				t.Logf("%v; %d wrong in %d of %d comparisons; spread %.1f %%", counts, wrong, bad, comparisons, 100*spread)
				most := comparisons * 40 / 100
				if n == 1 {
					most *= 2 // a state of the machine that leaves no trace in a run cannot be told
				}
				if wrong > most || n > 1 && bad > 1+comparisons/8 {
					t.Errorf("%d of %d points are called faster or slower, in %d comparisons", wrong, 40*comparisons, bad)
				}
			})
		}
	}
}

// TestPlanted makes 4 of 40 points take 5 % longer. If runs differ by less than 2 %, nine of ten such
// points are found. Otherwise they are ambiguous, with the number of runs that would settle them.
func TestPlanted(t *testing.T) {
	planted := func(i int) float64 {
		if i%10 == 3 {
			return 1.05
		}
		return 1
	}
	comparisons := 25
	if testing.Short() {
		comparisons = 8
	}
	allQuiet, allFound := 0, 0
	for _, w := range moments {
		t.Run(w.name, func(t *testing.T) {
			quiet, found, others, wrong := 0, 0, 0, 0
			for i := range comparisons {
				a, b := w.sides(rand.New(rand.NewPCG(2, uint64(i))), 5, 40, samplesIn(5), planted)
				list, err := Runs(a, []Side{b}, Usual())
				if err != nil {
					t.Fatal(err)
				}
				for i := range list[0].Changes {
					ch := &list[0].Changes[i]
					calm := max(ch.Spread, list[0].Spread) < 0.02
					switch {
					case planted(i) == 1:
						if ch.Verdict == Faster || ch.Verdict == Slower {
							wrong++
						}
					case calm && ch.Verdict == Slower:
						quiet, found = quiet+1, found+1
					case calm:
						quiet++
					default:
						others++
					}
					if ch.Verdict == Ambiguous && ch.Enough == 0 && !strings.Contains(ch.Why, "more than 100 runs") {
						t.Errorf("a point is ambiguous without a remedy: %s", ch.Why)
					}
				}
			}
			t.Logf("%d of %d found where runs differ by less than 2 %%; %d points differ by more; %d others called changed", found, quiet, others, wrong)
			if wrong > comparisons*36/100 {
				t.Errorf("%d points are called faster or slower and did not change", wrong)
			}
			allQuiet, allFound = allQuiet+quiet, allFound+found
		})
	}
	if allQuiet < comparisons*4*4 || float64(allFound) < 0.9*float64(allQuiet) {
		t.Errorf("%d of %d were found where runs differ by less than 2 %%", allFound, allQuiet)
	}
}

// TestAllSlower makes every point take 5 % longer. On a quiet machine this is told from a common
// moment; on a noisy one it cannot be.
func TestAllSlower(t *testing.T) {
	all := func(int) float64 { return 1.05 }
	for _, c := range []struct {
		w    moment
		told bool
	}{{moments[0], true}, {moments[1], false}} {
		a, b := c.w.sides(rand.New(rand.NewPCG(3, 0)), 5, 40, 3, all)
		list, err := Runs(a, []Side{b}, Usual())
		if err != nil {
			t.Fatal(err)
		}
		n := list[0].Count(Slower)
		if list[0].Shifted != c.told || c.told != (n >= 36) || !c.told && n+list[0].Count(Same) > 0 {
			t.Errorf("%s: told %v, %d slower, %d the same, shift %v", c.w.name, list[0].Shifted, n, list[0].Count(Same), list[0].Shift)
		}
	}
}
