package quantity

import (
	"fmt"
	"time"
)

// Duration spells seconds with the precision of a guess.
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

// Plural counts what a noun names.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Percent spells a share.
func Percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
