package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/record"
)

// A noisy bench simulates arms of known speed on a shared machine: most samples are a little longer
// than the truth, and some are much longer.
type noisy struct {
	truth []float64
	rng   *rand.Rand
	noise float64
	out   map[int]bool // arms that fail
	taken []int        // samples by arm
	left  map[int]Reason
}

func newNoisy(truth []float64, seed uint64, noise float64) *noisy {
	return &noisy{truth: truth, rng: rand.New(rand.NewPCG(seed, 1)), noise: noise, taken: make([]int, len(truth)), left: map[int]Reason{}}
}

func (n *noisy) Measure(_ context.Context, arm int, _ float64) (float64, error) {
	if n.out[arm] {
		return 0, fmt.Errorf("broken: %w", ErrOut)
	}
	n.taken[arm]++
	t := n.truth[arm] * (1 + n.noise*math.Abs(n.rng.NormFloat64()))
	if n.noise > 0 && n.rng.Float64() < 0.05 {
		t *= 1 + n.rng.Float64()
	}
	return t, nil
}

func (n *noisy) Leave(arm int, why Reason) error {
	if n.left[arm] != "" {
		return fmt.Errorf("arm %d leaves twice", arm)
	}
	n.left[arm] = why
	return nil
}

func options() Options {
	return Options{Strategy: "racing", Seed: 1, Rounds: 10, Tie: 0.01, Incumbent: -1}
}

func search(t *testing.T, b Bench, arms []Arm, o Options) *Result {
	t.Helper()
	r, err := Run(t.Context(), arms, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// spread returns typical times of candidates: a few near the best, most far behind.
func spread(n int, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 2))
	truth := make([]float64, n)
	for i := range truth {
		truth[i] = 1e-3 * (1 + 1.5*rng.Float64()*rng.Float64())
	}
	return truth
}

// TestRacingFindsTheFastest checks the promise of racing on a noisy machine: within 3 % of the fastest
// at 95 % of the points. It uses a fifth of the samples of all candidates in all rounds.
func TestRacingFindsTheFastest(t *testing.T) {
	const points, n = 200, 60
	near, taken := 0, 0
	for seed := range uint64(points) {
		truth := spread(n, seed)
		b := newNoisy(truth, seed, 0.02)
		o := options()
		o.Seed = seed
		r := search(t, b, make([]Arm, n), o)
		if truth[r.Winner] <= 1.03*slices.Min(truth) {
			near++
		}
		taken += r.Evaluations
		if len(b.left) != n || !r.Complete {
			t.Fatalf("%d of %d arms left", len(b.left), n)
		}
	}
	if share := float64(near) / points; share < 0.95 {
		t.Errorf("within 3 %% at %.1f %% of the points", 100*share)
	}
	if share := float64(taken) / (points * n * 10); share > 0.2 {
		t.Errorf("%.1f %% of the samples", 100*share)
	}
}

func TestStrategies(t *testing.T) {
	truth := []float64{3, 2, 1, 4, 5, 1.5, 2.5, 3.5, 4.5, 5.5}
	for _, c := range []struct {
		strategy string
		evals    int
	}{{"exhaustive", 100}, {"random", 20}} {
		o := options()
		o.Strategy = c.strategy
		b := newNoisy(truth, 1, 0)
		r := search(t, b, make([]Arm, len(truth)), o)
		if r.Evaluations != c.evals {
			t.Errorf("%s: %d evaluations, want %d", c.strategy, r.Evaluations, c.evals)
		}
		if c.strategy == "exhaustive" && (r.Winner != 2 || r.Second != 5 || math.Abs(r.Lead-0.5) > 1e-9 || math.Abs(*r.Lo-0.5) > 1e-9) {
			t.Errorf("%+v", r)
		}
		again := search(t, newNoisy(truth, 1, 0), make([]Arm, len(truth)), o)
		if again.Winner != r.Winner {
			t.Errorf("%s: the same seed finds %d and then %d", c.strategy, r.Winner, again.Winner)
		}
	}
	o := options()
	o.Strategy = "guessing"
	if _, err := Run(t.Context(), make([]Arm, 1), newNoisy([]float64{1}, 1, 0), o); err == nil {
		t.Error("an unknown strategy is taken")
	}
}

func TestTiesAndIncumbents(t *testing.T) {
	for _, c := range []struct {
		name      string
		truth     []float64
		arms      []Arm
		incumbent int
		want      int
		kept      bool
	}{
		{"the fastest", []float64{1.1, 1}, []Arm{{}, {}}, -1, 1, false},
		{"less memory among equals", []float64{1, 1.005}, []Arm{{Memory: 2}, {Memory: 1}}, -1, 1, false},
		{"memory does not outweigh time", []float64{1, 1.02}, []Arm{{Memory: 2}, {Memory: 1}}, -1, 0, false},
		{"the simpler among equals", []float64{1, 1.005}, []Arm{{Rank: 2}, {Rank: 1}}, -1, 1, false},
		{"an incumbent within the margin", []float64{1, 1.015, 1.3}, []Arm{{}, {}, {}}, 1, 1, true},
		{"an incumbent beyond the margin", []float64{1, 1.04}, []Arm{{}, {}}, 1, 0, false},
		{"an incumbent that is the fastest", []float64{1, 1.04}, []Arm{{}, {}}, 0, 0, false},
		{"alone", []float64{1}, []Arm{{}}, -1, 0, false},
	} {
		for _, strategy := range []string{"racing", "exhaustive"} {
			o := options()
			o.Strategy, o.Incumbent, o.Margin = strategy, c.incumbent, 0.02
			r := search(t, newNoisy(c.truth, 1, 0), c.arms, o)
			if r.Winner != c.want || r.Kept != c.kept {
				t.Errorf("%s, %s: winner %d, kept %t", c.name, strategy, r.Winner, r.Kept)
			}
		}
	}
	r := search(t, newNoisy([]float64{1, 1.005, 2}, 1, 0), make([]Arm, 3), options())
	if !slices.Equal(r.Ties, []int{1}) {
		t.Errorf("ties %v", r.Ties)
	}
}

// TestRunnerUpStayed: an arm that was dropped after two noisy rounds may look faster than the winner. It is not
// the runner-up.
func TestRunnerUpStayed(t *testing.T) {
	stayed := 0
	for seed := range uint64(20) {
		o := options()
		o.Seed = seed
		r := search(t, newNoisy(spread(40, seed), seed, 0.5), make([]Arm, 40), o)
		longest := 0
		for i, samples := range r.Samples {
			if i != r.Winner {
				longest = max(longest, len(samples))
			}
		}
		if longest >= decisive {
			stayed++
			if n := len(r.Samples[r.Second]); n < decisive {
				t.Errorf("seed %d: arm %d is second after %d rounds, and another stayed for %d", seed, r.Second, n, longest)
			}
		}
	}
	if stayed == 0 {
		t.Error("no arm stayed beside a winner")
	}
}

func TestBudgets(t *testing.T) {
	truth := spread(20, 1)
	for _, strategy := range Strategies() {
		o := options()
		o.Strategy, o.MaxEvals = strategy, 30
		r := search(t, newNoisy(truth, 1, 0.01), make([]Arm, 20), o)
		if r.Evaluations > 30 || r.Winner < 0 || strategy == "racing" && r.Complete {
			t.Errorf("%s: %d evaluations, winner %d, complete %t", strategy, r.Evaluations, r.Winner, r.Complete)
		}
	}
	left := 25
	o := options()
	o.Spent = func() bool { left--; return left < 0 }
	b := newNoisy(truth, 1, 0.01)
	if r := search(t, b, make([]Arm, 20), o); r.Complete || r.Evaluations != 25 || len(b.left) != 20 {
		t.Errorf("%d evaluations, %d left, complete %t", r.Evaluations, len(b.left), r.Complete)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, make([]Arm, 20), newNoisy(truth, 1, 0), options()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestWhatCannotRun(t *testing.T) {
	b := newNoisy([]float64{1, 2, 3}, 1, 0)
	b.out = map[int]bool{0: true}
	if r := search(t, b, make([]Arm, 3), options()); r.Winner != 1 || r.Left[0] != Out {
		t.Errorf("%+v", r)
	}
	b = newNoisy([]float64{1, 2}, 1, 0)
	b.out = map[int]bool{0: true, 1: true}
	if r := search(t, b, make([]Arm, 2), options()); r.Winner != -1 || r.Second != -1 {
		t.Errorf("%+v", r)
	}
	if r := search(t, newNoisy(nil, 1, 0), nil, options()); r.Winner != -1 {
		t.Errorf("of nothing: %+v", r)
	}
}

// TestBoundSparesRuns checks that an arm whose bound is too slow does not run, and that a valid bound
// never changes the winner.
func TestBoundSparesRuns(t *testing.T) {
	b := newNoisy([]float64{1, 5, 5}, 1, 0)
	r := search(t, b, []Arm{{}, {Bound: 2}, {Bound: 0.5}}, Options{Strategy: "exhaustive", Rounds: 10, Incumbent: 0})
	if r.Winner != 0 || b.taken[1] != 0 || b.taken[2] != 10 || b.left[1] != Bounded {
		t.Errorf("%+v, samples %v", r, b.taken)
	}
	for seed := range uint64(100) {
		truth := spread(30, seed)
		arms := make([]Arm, 30)
		for i := range arms {
			arms[i].Bound = truth[i] * (0.5 + 0.5*float64(i)/29)
		}
		for _, strategy := range []string{"racing", "exhaustive"} {
			o := options()
			o.Strategy, o.Tie = strategy, 0
			best := slices.Index(truth, slices.Min(truth))
			if r := search(t, newNoisy(truth, seed, 0.02), arms, o); r.Left[best] == Bounded {
				t.Errorf("seed %d, %s: the bound discarded the fastest", seed, strategy)
			}
		}
	}
}

// TestExpectationsDirectARace checks that arms expected to be slow do not start, and that an incumbent
// always starts. An arm expected to be a little slower starts and may win.
func TestExpectationsDirectARace(t *testing.T) {
	const n = 20
	truth, arms := make([]float64, n), make([]Arm, n)
	for i := range truth {
		truth[i] = 1 + 0.05*float64(i)
		arms[i] = Arm{Expected: 0.05 * float64(i), Doubt: 0.1}
	}
	arms[0].Expected, arms[2].Expected = 0.1, 0 // the third is expected to be the fastest
	o := options()
	o.Incumbent = n - 1
	b := newNoisy(truth, 1, 0.02)
	r := search(t, b, arms, o)
	if r.Winner != 0 {
		t.Errorf("winner %d", r.Winner)
	}
	for i := range n {
		starts := i < few || i == o.Incumbent
		if starts != (b.taken[i] > 0) || starts == (r.Left[i] == Unlikely) {
			t.Errorf("arm %d: %d samples, %s", i, b.taken[i], r.Left[i])
		}
	}
	o.Strategy = "exhaustive"
	if r := search(t, newNoisy(truth, 1, 0), arms, o); slices.Contains(r.Left, Unlikely) {
		t.Error("an exhaustive search passes arms over")
	}
}

func TestScore(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 1}, {[]float64{1, 8, 3}, 2}, {[]float64{4, 1, 9, 3}, 2}} {
		if got := Score(c.samples); got != c.want {
			t.Errorf("%v: %v, want %v", c.samples, got, c.want)
		}
	}
}

// TestKnownArmsAreNotMeasured checks what a later search measures: nothing, or new arms and the earlier
// winner.
func TestKnownArmsAreNotMeasured(t *testing.T) {
	truth := []float64{2, 1, 1.2, 0.8}
	known := []Arm{{Known: 2, Beaten: true}, {Known: 1}, {Known: 1.2}}
	b := newNoisy(truth[:3], 1, 0)
	if r := search(t, b, known, options()); r.Winner != 1 || r.Second != 2 || r.Evaluations != 0 || len(b.left) != 0 || !r.Complete {
		t.Errorf("nothing is new: %+v", r)
	}
	b = newNoisy(truth, 1, 0)
	r := search(t, b, append(known, Arm{}), options())
	if r.Winner != 3 || b.taken[0] != 0 || b.taken[1] == 0 || b.taken[2] != 0 {
		t.Errorf("one is new: %+v, samples %v", r, b.taken)
	}
	// The machine has become twice as slow, which does not count against the new arm.
	for i := range truth {
		truth[i] *= 2
	}
	if r := search(t, newNoisy(truth, 1, 0), append(known, Arm{}), options()); r.Winner != 3 || r.Medians[2] != 2.4 {
		t.Errorf("on a slower day: %+v", r)
	}
}

// A disturbed bench takes two thirds longer in every other round. Medians lie in between, but scores are
// the truth.
type disturbed struct {
	truth []float64
	taken []int
}

func (d *disturbed) Measure(_ context.Context, arm int, _ float64) (float64, error) {
	d.taken[arm]++
	return d.truth[arm] * (1 + float64(d.taken[arm]%2)*2/3), nil
}

func (d *disturbed) Leave(int, Reason) error { return nil }

// TestKnownArmsAreComparedByScore: known arms have only a score, so others are compared with them by score.
// By medians, which noise affects more, the known arm would be a tied second here.
func TestKnownArmsAreComparedByScore(t *testing.T) {
	o := options()
	o.Strategy, o.Incumbent = "exhaustive", 2
	arms := []Arm{{}, {Known: 1}, {Known: 1.05}} // the new arm takes 0.8
	r := search(t, &disturbed{[]float64{0.8, 1, 1.05}, make([]int, 3)}, arms, o)
	if r.Winner != 0 || r.Second != 1 || math.Abs(r.Lead-0.25) > 1e-9 || len(r.Ties) != 0 {
		t.Errorf("winner %d, second %d takes %.3g longer, ties %v", r.Winner, r.Second, r.Lead, r.Ties)
	}
	if want := 1.05/0.8 - 1; math.Abs(r.Behind-want) > 1e-9 {
		t.Errorf("the incumbent takes %.3g longer, want %.3g", r.Behind, want)
	}
}

func TestReplayDrawsInOrder(t *testing.T) {
	rec := func(status record.Status, samples ...float64) *record.Record {
		r := &record.Record{Status: status, Verify: &record.Verify{OK: true}, Cost: record.Cost{Setup: 1, Verify: 2, Warmup: 3, Measure: float64(len(samples))}}
		if samples != nil {
			r.Samples = &record.Samples{Wall: samples}
		}
		return r
	}
	b := &Replay{Records: []*record.Record{rec(record.OK, 3, 4), rec(record.Skipped)}}
	for _, want := range []float64{3, 4, 3} {
		if got, err := b.Measure(t.Context(), 0, 0); got != want || err != nil {
			t.Errorf("%v, %v: want %v", got, err, want)
		}
	}
	if _, err := b.Measure(t.Context(), 1, 0); !errors.Is(err, ErrOut) {
		t.Errorf("a skipped one: %v", err)
	}
	unchecked := rec(record.OK, 1)
	unchecked.Verify = nil
	if _, err := (&Replay{Records: []*record.Record{unchecked}}).Measure(t.Context(), 0, 0); !errors.Is(err, ErrOut) {
		t.Errorf("one that was not checked: %v", err)
	}
	if b.Time != 1+2+3+3+6 || b.All() != 6+2+6 {
		t.Errorf("time %v of %v", b.Time, b.All())
	}
}
