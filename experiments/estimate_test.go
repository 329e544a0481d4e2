package experiments

import (
	"math"
	"testing"
	"time"

	"rnnbench/record"
)

// recordOf is a record of these samples, in seconds.
func recordOf(at time.Time, samples ...float64) *record.Record {
	s, _ := record.Summarize(samples, 0)
	return &record.Record{Run: "a", Time: at, Status: record.OK, Mode: record.Mode{Order: "interleaved", Timer: "wall"},
		Stats: &s, Samples: &record.Samples{Wall: samples}}
}

// TestInterval: techniques in turns are compared round by round, so that a slow moment widens
// nothing. Those of another hour may differ by the moment.
func TestInterval(t *testing.T) {
	start := time.Unix(1e9, 0)
	a := recordOf(start, 2, 4, 2, 4, 2, 4, 2, 4, 2, 4)
	b := recordOf(start, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2)
	if e := timesAsFast(a, b); e != exactly(2) {
		t.Errorf("in turns: %+v", e)
	}
	b.Time = start.Add(time.Hour)
	if e := timesAsFast(a, b); e.at != 2 || e.lo > 1/(1+moment) || e.hi < 4*(1+moment) {
		t.Errorf("an hour later: %+v", e)
	}
	calm := recordOf(start.Add(time.Hour), 1, 1, 1, 1, 1, 1, 1, 1)
	if e := timesAsFast(calm, recordOf(start, 1, 1, 1, 1, 1, 1, 1, 1)); e.lo != 1/(1+moment) || e.hi != 1+moment {
		t.Errorf("without spread: %+v", e)
	}
	if e := timesAsFast(a, recordOf(start, 1)); e.at != 3 || e.lo != 0 || !math.IsInf(e.hi, 1) {
		t.Errorf("of one sample: %+v", e)
	}
	if timesAsFast(a, nil).known() {
		t.Error("a ratio without a record is known")
	}
}

// TestCannotTell: a claim whose threshold lies within the interval has an outcome of its own.
func TestCannotTell(t *testing.T) {
	for _, c := range []struct {
		e    estimate
		b    band
		want Outcome
	}{
		{estimate{208, 198, 218}, near(175), CannotTell},
		{estimate{191, 182, 200}, near(175), Agrees},
		{estimate{240, 230, 250}, near(175), Differs},
		{estimate{100, 90, 110}, near(175), Differs},
		{estimate{0.9987, 0.98, 1.02}, atLeast(1), CannotTell},
		{estimate{1.03, 1.01, 1.05}, atLeast(1), Agrees},
		{estimate{12, 0, math.Inf(1)}, atLeast(10), CannotTell},
		{estimate{9, 8, 9.5}, atMost(10), Agrees},
		{exactly(11), atMost(10), Differs},
	} {
		r := &Report{}
		compareOf(r, Target{}, "Found.", "paper", "here", c.e, c.b, "")
		got := r.Claims[0]
		if got.Outcome != c.want || (got.Outcome == Agrees) != (got.Why == "") {
			t.Errorf("%+v in %+v: %+v", c.e, c.b, got)
		}
	}
	r := &Report{}
	claimOf(r, Target{}, "paper", "here", estimate{208, 198, 218}, near(175), "")
	if s := r.Claims[0].Verdict(); s != "cannot tell: the interval covers 201, where agreement ends" {
		t.Error(s)
	}
	claimOf(r, Target{Reduced: true}, "paper", "here", exactly(1), near(175), "")
	if r.Claims[1].Outcome != Reduced {
		t.Error(r.Claims[1])
	}
}

// TestVotes: one point more or less, within its interval, does not turn a verdict around.
func TestVotes(t *testing.T) {
	for _, c := range []struct {
		v    votes
		some answer
		most answer
	}{
		{votes{0, 20, 0}, no, no},
		{votes{0, 19, 1}, open, no},
		{votes{1, 19, 0}, yes, no},
		{votes{8, 9, 3}, yes, open},
		{votes{11, 9, 0}, yes, yes},
		{votes{10, 10, 0}, yes, no},
	} {
		if some, most := c.v.some(), c.v.share(0.5); some != c.some || most != c.most {
			t.Errorf("%v: %v, %v", c.v, some, most)
		}
	}
	if s := (votes{8, 9, 3}).String(); s != "8 of 20 points, 3 open" {
		t.Error(s)
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

// TestSpelt: an interval is printed unless it is too small to see.
func TestSpelt(t *testing.T) {
	for _, c := range []struct {
		e    estimate
		want string
	}{
		{estimate{1.5, 1.4, 1.61}, "1.50× (1.40 to 1.61)"},
		{estimate{1.5, 1.499, 1.501}, "1.50×"},
		{estimate{1.5, 0, math.Inf(1)}, "1.50× (interval unknown)"},
	} {
		if s := c.e.times(); s != c.want {
			t.Errorf("%q, want %q", s, c.want)
		}
	}
}
