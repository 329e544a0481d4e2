package study

import (
	"math"
	"testing"

	"rnnbench/experiments/estimate"
)

// TestCannotTell: a claim whose threshold lies within the interval has an outcome of its own.
func TestCannotTell(t *testing.T) {
	for _, c := range []struct {
		e    estimate.Estimate
		b    estimate.Band
		want Outcome
	}{
		{estimate.Estimate{At: 208, Lo: 198, Hi: 218}, estimate.Near(175), CannotTell},
		{estimate.Estimate{At: 191, Lo: 182, Hi: 200}, estimate.Near(175), Agrees},
		{estimate.Estimate{At: 240, Lo: 230, Hi: 250}, estimate.Near(175), Differs},
		{estimate.Estimate{At: 100, Lo: 90, Hi: 110}, estimate.Near(175), Differs},
		{estimate.Estimate{At: 0.9987, Lo: 0.98, Hi: 1.02}, estimate.AtLeast(1), CannotTell},
		{estimate.Estimate{At: 1.03, Lo: 1.01, Hi: 1.05}, estimate.AtLeast(1), Agrees},
		{estimate.Estimate{At: 12, Lo: 0, Hi: math.Inf(1)}, estimate.AtLeast(10), CannotTell},
		{estimate.Estimate{At: 9, Lo: 8, Hi: 9.5}, estimate.AtMost(10), Agrees},
		{estimate.Exactly(11), estimate.AtMost(10), Differs},
	} {
		r := &Report{}
		CompareOf(r, Target{}, "Found.", "paper", "here", c.e, c.b, "")
		got := r.Claims[0]
		if got.Outcome != c.want || (got.Outcome == Agrees) != (got.Why == "") {
			t.Errorf("%+v in %+v: %+v", c.e, c.b, got)
		}
	}
	r := &Report{}
	ClaimOf(r, Target{}, "paper", "here", estimate.Estimate{At: 208, Lo: 198, Hi: 218}, estimate.Near(175), "")
	if s := r.Claims[0].Verdict(); s != "cannot tell: the interval covers 201, where agreement ends" {
		t.Error(s)
	}
	ClaimOf(r, Target{Reduced: true}, "paper", "here", estimate.Exactly(1), estimate.Near(175), "")
	if r.Claims[1].Outcome != Reduced {
		t.Error(r.Claims[1])
	}
}

// TestCountClaims: a claim counts once, and what was computed is not counted as measured.
func TestCountClaims(t *testing.T) {
	got := CountClaims([]Claim{
		{Paper: "a", Outcome: Agrees}, {Paper: "a", Outcome: Agrees}, {Paper: "b", Outcome: ComputedAgrees},
		{Paper: "c", Outcome: Unmeasured}, {Paper: "c", Outcome: Differs}, {Paper: "d", Outcome: CannotTell},
		{Paper: "e", Outcome: Agrees}, {Paper: "e", Outcome: Differs}, {Outcome: Yardstick},
	})
	if want := "1 agree, 1 differ, 1 agree by one measurement and differ by another, 1 cannot be told, 1 agree by computation alone"; got != want {
		t.Error(got)
	}
	if s := CountClaims([]Claim{{Outcome: Yardstick}}); s != "" {
		t.Error(s)
	}
}
