package quantity

import (
	"fmt"
	"time"
)

// Duration formats an estimate in seconds, rounded to whole seconds, minutes, hours or days.
func Duration(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case s < 1:
		return "1 s"
	case s < 100:
		return fmt.Sprintf("%.0f s", s)
	case s < 100*60:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case s < 48*3600:
		return fmt.Sprintf("%.0f h", d.Hours())
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
}

// Plural formats a number with its noun, as in "1 point" or "2 points".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Are formats a number with its noun and verb, as in "1 point is" or "2 points are".
func Are(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return Plural(n, noun) + " are"
}

// Percent formats a share as a percentage.
func Percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// Half spells the larger half of an interval, a share of its value, in percent. Beyond 100 % it says no
// more than that, since such an interval says no more.
func Half(share float64) string {
	switch {
	case share > 1:
		return "over 100 %"
	case share >= 0.0995:
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	return Percent(share)
}
