package tuner

import (
	"math"
	"testing"
)

// TestStable: more rounds no longer help once the widest interval shrank by less than a tenth over eight
// rounds, after 17 rounds at the earliest.
func TestStable(t *testing.T) {
	for _, c := range []struct {
		name   string
		rounds int
		each   float64 // factor by which a round narrows the interval
		want   bool
	}{{"no change", 17, 1, true}, {"too early", 16, 1, false}, {"by 8 % over eight rounds", 20, 0.99, true}, {"by 11 %", 20, 0.985, false}, {"wider", 20, 1.1, true}} {
		var widths []float64
		for i := range c.rounds {
			widths = append(widths, math.Pow(c.each, float64(i)))
		}
		if got := stable(widths); got != c.want {
			t.Errorf("%s: stable is %t", c.name, got)
		}
	}
}
