package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

// sightCases are machines of known noise with the least change that a reader may expect after 5 runs per side:
// the standard error of a difference is √(2/5) of the spread between runs.
var sightCases = []struct {
	moment
	points int
	seed   uint64
}{
	{moment{name: "quiet", shift: 0.002, point: 0.005}, 40, 1},
	{moment{name: "noisy points", shift: 0.02, point: 0.05}, 40, 2},
	{moment{name: "few points", point: 0.02}, 4, 3},
	{moment{name: "common shift", shift: 0.2, point: 0.01}, 40, 4},
}

// TestSight plants a change of the size that a comparison says that it sees. Four of five are found, give or
// take. Of a change half that size, fewer than half are.
func TestSight(t *testing.T) {
	trials := 60
	if testing.Short() {
		trials = 25
	}
	for _, w := range sightCases {
		t.Run(w.name, func(t *testing.T) {
			says := 0.0
			for i := range trials {
				a, b := w.sides(rand.New(rand.NewPCG(w.seed, uint64(i))), 5, w.points, 3, flat)
				says += seen(t, a, b).Point / float64(trials)
			}
			found := func(change float64) float64 {
				n := 0
				for i := range trials {
					planted := func(at int) float64 {
						if at == 3 {
							return 1 + change
						}
						return 1
					}
					a, b := w.sides(rand.New(rand.NewPCG(w.seed+100, uint64(i))), 5, w.points, 3, planted)
					list, err := Runs(a, []Side{b}, Usual())
					if err != nil {
						t.Fatal(err)
					}
					for j := range list[0].Changes {
						if ch := &list[0].Changes[j]; ch.New.Point.Hidden == 4 && ch.Verdict == Slower {
							n++
						}
					}
				}
				return float64(n) / float64(trials)
			}
			whole, half := found(says), found(says/2)
			t.Logf("sees %.1f %%: finds %.0f %% of such changes, and %.0f %% of half the size", 100*says, 100*whole, 100*half)
			if whole < 0.65 || whole > 0.99 || half > 0.5 {
				t.Errorf("it says that it sees %.1f %%, and finds %.0f %% of such changes and %.0f %% of half the size", 100*says, 100*whole, 100*half)
			}
		})
	}
}

func seen(t *testing.T, a, b Side) Sight {
	t.Helper()
	list, err := Runs(a, []Side{b}, Usual())
	if err != nil {
		t.Fatal(err)
	}
	return list[0].SightOf(Usual())
}

// TestRunsToSee: after as many runs as a comparison asks for, it sees a change of that size.
func TestRunsToSee(t *testing.T) {
	for _, w := range sightCases {
		of := func(runs int, seed uint64) *Comparison {
			a, b := w.sides(rand.New(rand.NewPCG(w.seed, seed)), runs, w.points, 3, flat)
			list, err := Runs(a, []Side{b}, Usual())
			if err != nil {
				t.Fatal(err)
			}
			return &list[0]
		}
		now := of(5, 0)
		at := now.SightOf(Usual())
		change := max(at.Point, at.Common) / 2
		if change < 0.03 { // the least change that counts is 2 %
			change = 0.03
		}
		n := now.RunsToSee(change, Usual())
		if n < 3 || n > 400 {
			t.Errorf("%s: %d runs to see %.1f %% instead of %.1f %%", w.name, n, 100*change, 100*max(at.Point, at.Common))
			continue
		}
		then := of(n, 1).SightOf(Usual())
		if got := max(then.Point, then.Common); math.Abs(math.Log(got/change)) > math.Log(1.6) {
			t.Errorf("%s: after %d runs it sees %.1f %%, not %.1f %%", w.name, n, 100*got, 100*change)
		}
		if now.RunsToSee(1e-6, Usual()) != 0 {
			t.Errorf("%s: there are runs that see anything", w.name)
		}
	}
}

// TestSightOfSingleRuns is what a moment of the machine may cause: no less than 5 %.
func TestSightOfSingleRuns(t *testing.T) {
	a, b := sightCases[0].sides(rand.New(rand.NewPCG(1, 1)), 1, 40, 10, flat)
	if s := seen(t, a, b); !(s.Point >= leastReach && s.Point < 0.2) || s.Common != s.Point {
		t.Errorf("%+v", s)
	}
}
