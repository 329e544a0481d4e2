package quantity

import "testing"

func TestWords(t *testing.T) {
	for _, c := range [][2]string{
		{Duration(0.2), "1 s"}, {Duration(99.4), "99 s"}, {Duration(150), "2 min"}, {Duration(7200), "2 h"}, {Duration(4 * 86400), "4 days"},
		{Plural(1, "point"), "1 point"}, {Plural(0, "point"), "0 points"},
		{Percent(0.0123), "1.2 %"},
		{Half(0.0123), "1.2 %"}, {Half(0.123), "12 %"}, {Half(1), "100 %"}, {Half(130.43), "over 100 %"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}
