package experiments_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
)

// TestFindingsFitVerdicts: a finding does not say that a cause is unknown where the verdict on the
// same claim names one. Times are drawn at random, so that many claims differ from the papers'.
func TestFindingsFitVerdicts(t *testing.T) {
	const unknown = "the cause is not known"
	reports, differ := 0, 0
	for _, e := range experiments.All() {
		if e.Parts == nil {
			continue
		}
		for seed := range uint64(4) {
			on := gpu
			if e.Host || seed%2 == 1 {
				on = cpu
			}
			recs := recordsOf(e.Parts(study.Full, on))
			rng := rand.New(rand.NewPCG(seed, 7))
			for i := range recs {
				if s := recs[i].Stats; s != nil {
					s.Median *= 0.2 + 5*rng.Float64()
				}
			}
			rep, err := e.Report(recs, on)
			if err != nil {
				continue // these times give no report
			}
			reports++
			findings, verdicts := 0, 0
			for _, f := range rep.Findings {
				findings += strings.Count(f, "They disagree; "+unknown)
			}
			for _, c := range rep.Claims {
				if c.Why == unknown {
					verdicts++
				}
				if c.Outcome == study.Differs {
					differ++
				}
			}
			if findings > verdicts {
				t.Errorf("%s, seed %d: %d findings say that %s, and %d verdicts do", e.ID, seed, findings, unknown, verdicts)
			}
		}
	}
	if reports < 60 || differ < 60 {
		t.Errorf("only %d reports, with %d claims that differ, were checked", reports, differ)
	}
}
