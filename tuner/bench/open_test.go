package bench

import (
	"testing"
)

// TestOtherBuild: different commits of worker and program are reported if both are known.
func TestOtherBuild(t *testing.T) {
	for _, x := range []struct {
		worker, own string
		told        bool
	}{{"", "", false}, {"a", "", false}, {"", "a", false}, {"a", "a", false}, {"a", "b", true}, {"a and changes", "a", true}} {
		if s := buildMismatch(x.worker, x.own); (s != "") != x.told {
			t.Errorf("%q and %q: %q", x.worker, x.own, s)
		}
	}
}
