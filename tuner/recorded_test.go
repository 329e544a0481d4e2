package tuner_test

import (
	"compress/gzip"
	"os"
	"slices"
	"testing"

	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/search"
)

// rounds is how many samples every record has.
const rounds = 24

// recordings names exhaustive tunes of 104 small points, every knob turned alone, on two cores of a
// virtual machine (docs/notebook/tuning.md). The second has the same points and more noise.
func recordings() []string { return []string{"cpu-amd-epyc-2t", "cpu-amd-epyc-2t-again"} }

// recorded reads a recording.
func recorded(t *testing.T, name string) [][]*record.Record {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	recs, warnings, err := record.ReadRecords(z, "testdata")
	if err != nil || warnings != nil {
		t.Fatalf("%v, %v", warnings, err)
	}
	groups := tuner.ByPoint(recs)
	if len(groups) < 100 {
		t.Fatalf("%d points", len(groups))
	}
	return groups
}

// peak is the device's peak in the records.
func peak(recs []*record.Record) float64 {
	best := 0.0
	for _, r := range recs {
		if r.Rate != nil && r.Rate.Peak != nil {
			best = max(best, *r.Rate.Peak)
		}
	}
	return best
}

// TestRacingOnRecords checks the promise of racing on recorded samples: within 3 % of the fastest at
// 95 % of the points, in 20 % of the time of measuring everything.
func TestRacingOnRecords(t *testing.T) {
	for _, name := range recordings() {
		near, took, all := 0, 0.0, 0.0
		groups := recorded(t, name)
		prior := &tuner.Prior{}
		for _, group := range groups {
			r, err := tuner.NewReplay(t.Context(), group, record.Impl{}, peak(group), prior, search.Options{Strategy: "racing", Seed: 1, Rounds: rounds, Tie: 0.01})
			if err != nil {
				t.Fatal(err)
			}
			if r.Regret() <= 0.03 {
				near++
			}
			took, all = took+r.Time, all+r.All
		}
		share, time := float64(near)/float64(len(groups)), took/all
		t.Logf("%s: within 3 %% at %.1f %% of %d points, in %.1f %% of the time", name, 100*share, len(groups), 100*time)
		if share < 0.95 || time > 0.2 {
			t.Errorf("%s: racing is within 3 %% of the fastest at %.1f %% of the points and takes %.1f %% of the time", name, 100*share, 100*time)
		}
	}
}

// TestBoundKeepsWinnersOfRecords checks that a candidate's lower bound was never above its shortest
// run, so that the bound discards no winner.
func TestBoundKeepsWinnersOfRecords(t *testing.T) {
	for i, group := range recorded(t, recordings()[0]) {
		p := peak(group)
		for _, r := range group {
			if s := search.Samples(r); s != nil && tuner.Bound(r.Point, r.Device, r.Work.Executed, p) > slices.Min(s) {
				t.Errorf("%v %s: the bound is above %.3g s", r.Point, r.Impl.Label, slices.Min(s))
			}
		}
		if i%4 > 0 {
			continue
		}
		with, err := tuner.NewReplay(t.Context(), group, record.Impl{}, p, &tuner.Prior{}, search.Options{Strategy: "exhaustive", Rounds: rounds})
		if err != nil {
			t.Fatal(err)
		}
		without, err := tuner.NewReplay(t.Context(), group, record.Impl{}, 0, &tuner.Prior{}, search.Options{Strategy: "exhaustive", Rounds: rounds})
		if err != nil {
			t.Fatal(err)
		}
		if with.Winner != without.Winner {
			t.Errorf("%v: the winner is %s with the bound and %s without", with.Point, with.WinnerRecord().Impl.Label, without.WinnerRecord().Impl.Label)
		}
	}
}
