package record

import "testing"

func TestKinksInWords(t *testing.T) {
	for want, k := range map[string]Kinks{
		"0 of 0 ReLU inputs (0 %) lie within rounding of 0":                                            {},
		"6 of 400 ReLU inputs (1.5 %) lie within rounding of 0":                                        {Units: 400, Near: 6},
		"6 of 400 ReLU inputs (1.5 %) lie within rounding of 0, and 2 of them took the other gradient": {Units: 400, Near: 6, Other: 2},
	} {
		if got := k.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
