package quantity

import "testing"

// TestRatio: a ratio has three digits, and never an exponent.
func TestRatio(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 0.7149: "0.71", 0.999: "1.00", 1: "1.00", 2.345: "2.35", 9.994: "9.99", 9.996: "10.0", 44.84: "44.8", 99.96: "100", 272.32: "272", 6337: "6340", 15110.4: "15100"} {
		if got := Ratio(v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{302: "302.0", 322.92: "322.9", 1670: "1670", 16701: "16700", 0.01234: "0.01234"} {
		if got := Digits(v, 4); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
}
