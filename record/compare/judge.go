package compare

import (
	"fmt"
	"math"
	"strings"

	"rnnbench/record"
)

// judge tests the points that both sides measured and sets their verdicts.
func judge(list []Comparison, o Options) {
	var all []*Change
	t, q := tables{}, quantiles{}
	for i := range list {
		c := &list[i]
		var tested []*Change
		for j := range c.Changes {
			if c.Changes[j].Verdict == "" {
				tested = append(tested, &c.Changes[j])
			}
		}
		if c.Single {
			c.pair(tested, t, o)
		} else {
			c.several(tested, o, len(list))
		}
		all = append(all, tested...)
	}
	holm(all)
	for i := range list {
		c := &list[i]
		c.tested = len(all)
		for j := range c.Changes {
			ch := &c.Changes[j]
			if ch.Verdict != "" {
				continue
			}
			ch.Verdict, ch.Why = c.decide(ch, t, o)
			if ch.Verdict == Ambiguous {
				ch.Enough = c.enough(ch, o, len(all), q)
				ch.Why = joinTexts(ch.Why, c.remedy(ch))
			}
			if ch.Verdict != Same {
				ch.Why = joinTexts(ch.Why, warningsOf(ch))
			}
		}
	}
}

// joinTexts joins the non-empty texts with a semicolon.
func joinTexts(a, b string) string { return strings.Trim(a+"; "+b, "; ") }

// decide returns the verdict of a point that both sides measured, and its reason. The minimum effect
// is the same factor in both directions.
func (c *Comparison) decide(ch *Change, t tables, o Options) (Verdict, string) {
	lg := math.Log(ch.Ratio.Value)
	differs := ch.P < o.Alpha && math.Abs(lg) >= o.effect()
	n, m := len(ch.Base.Times()), len(ch.New.Times())
	switch {
	case differs && c.Single && !c.beyond(ch):
		return Ambiguous, "one run per side, and single runs may differ by " + share(c.reach(ch))
	case differs && !c.Single && !c.apart(ch, t):
		return Ambiguous, "not in every run"
	case differs && lg > 0:
		return Slower, ""
	case differs:
		return Faster, ""
	case !ch.Ratio.Known():
		return Ambiguous, fmt.Sprintf("%d and %d samples are too few", n, m)
	case math.Log(ch.Ratio.Lo) >= -o.effect() && math.Log(ch.Ratio.Hi) <= o.effect():
		if c.steady(o) {
			return Same, ""
		}
		return Ambiguous, "unchanged relative to the other points, but all may have moved together"
	case ch.P < o.Alpha:
		return Ambiguous, "differs, but perhaps by too little to matter"
	case ch.Ratio.Lo > 1 || ch.Ratio.Hi < 1:
		return Ambiguous, "may be chance among so many points"
	case c.Single:
		return Ambiguous, "the samples spread too widely"
	}
	return Ambiguous, "run medians vary by " + share(ch.Spread)
}

// steady reports whether the common shift of all points is too small to matter. It is also true if
// ratios include the shift, or if there are too few points to tell.
func (c *Comparison) steady(o Options) bool {
	switch {
	case c.Shifted || math.IsNaN(c.Shift.Value):
		return true
	case c.Single:
		return math.Abs(math.Log(c.Shift.Value)) <= o.effect()
	}
	return math.Log(c.Shift.Lo) >= -o.effect() && math.Log(c.Shift.Hi) <= o.effect()
}

// remedy says how many runs would settle an ambiguous change.
func (c *Comparison) remedy(ch *Change) string {
	switch {
	case ch.Enough > 0:
		return fmt.Sprintf("about %d runs per side would settle it", ch.Enough)
	case ch.Spread > 0:
		return fmt.Sprintf("more than %d runs per side would be needed", mostRuns)
	}
	return ""
}

// share spells a share as a percentage.
func share(v float64) string {
	if v >= 0.0995 {
		return fmt.Sprintf("%.0f %%", 100*v)
	}
	return fmt.Sprintf("%.1f %%", 100*v)
}

// warningsOf repeats the warnings of the records.
func warningsOf(c *Change) string {
	var words []string
	for _, side := range []struct {
		name string
		r    *record.Record
	}{{"before", c.Base}, {"now", c.New}} {
		if len(side.r.Warnings) > 0 {
			words = append(words, side.name+" "+strings.Join(side.r.Warnings, " "))
		}
	}
	return strings.Join(words, ", ")
}
