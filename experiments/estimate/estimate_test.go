package estimate

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
	if e := TimesAsFast(a, b); e != Exactly(2) {
		t.Errorf("in turns: %+v", e)
	}
	b.Time = start.Add(time.Hour)
	if e := TimesAsFast(a, b); e.At != 2 || e.Lo > 1/(1+Moment) || e.Hi < 4*(1+Moment) {
		t.Errorf("an hour later: %+v", e)
	}
	calm := recordOf(start.Add(time.Hour), 1, 1, 1, 1, 1, 1, 1, 1)
	if e := TimesAsFast(calm, recordOf(start, 1, 1, 1, 1, 1, 1, 1, 1)); e.Lo != 1/(1+Moment) || e.Hi != 1+Moment {
		t.Errorf("without spread: %+v", e)
	}
	if e := TimesAsFast(a, recordOf(start, 1)); e.At != 3 || e.Lo != 0 || !math.IsInf(e.Hi, 1) {
		t.Errorf("of one sample: %+v", e)
	}
	if TimesAsFast(a, nil).Known() {
		t.Error("a ratio without a record is known")
	}
}

// TestVotes: one point more or less, within its interval, does not turn a verdict around.
func TestVotes(t *testing.T) {
	for _, c := range []struct {
		v    Votes
		some Answer
		most Answer
	}{
		{Votes{0, 20, 0}, No, No},
		{Votes{0, 19, 1}, Open, No},
		{Votes{1, 19, 0}, Yes, No},
		{Votes{8, 9, 3}, Yes, Open},
		{Votes{11, 9, 0}, Yes, Yes},
		{Votes{10, 10, 0}, Yes, No},
	} {
		if some, most := c.v.Some(), c.v.Share(0.5); some != c.some || most != c.most {
			t.Errorf("%v: %v, %v", c.v, some, most)
		}
	}
	if s := (Votes{8, 9, 3}).String(); s != "8 of 20 points, 3 open" {
		t.Error(s)
	}
}

// TestSpelt: an interval is printed unless it is too small to see.
func TestSpelt(t *testing.T) {
	for _, c := range []struct {
		e    Estimate
		want string
	}{
		{Estimate{1.5, 1.4, 1.61}, "1.50× (1.40 to 1.61)"},
		{Estimate{1.5, 1.499, 1.501}, "1.50×"},
		{Estimate{1.5, 0, math.Inf(1)}, "1.50× (interval unknown)"},
	} {
		if s := c.e.Times(); s != c.want {
			t.Errorf("%q, want %q", s, c.want)
		}
	}
}
