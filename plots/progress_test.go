package plots

import "testing"

// TestProgressTick: parts of a second are not milliseconds under the title "Seconds".
func TestProgressTick(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.2: "0.2", 1: "1", 2.5: "2.5", 40000: "40k"} {
		if got := progressTick(v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
}
