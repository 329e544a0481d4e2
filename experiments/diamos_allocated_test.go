package experiments_test

import (
	"strings"
	"testing"
)

// TestPairOfMinibatches: memory is compared between minibatches of the same layers, not with another
// stack of as many layers.
func TestPairOfMinibatches(t *testing.T) {
	recs := planned(t, "diamos-memory", gpu)
	bytes := map[[2]int]int64{{110, 64}: 14e9, {110, 4}: 14e8, {72, 64}: 9e9}
	for i, r := range recs {
		recs[i].Work.Memory = bytes[[2]int{r.Point.Hidden, r.Point.Batch}]
		if r.Point.Hidden == 72 {
			recs[0], recs[i] = recs[i], recs[0] // the other stack comes first
		}
	}
	for _, c := range report(t, "diamos-memory", recs, gpu).Claims {
		if strings.HasPrefix(c.Paper, "minibatch 4 in place of 64") {
			if want := "14.0 GB and 1.40 GB were allocated for 2 layers, 10.0×"; !strings.HasPrefix(c.Here, want) {
				t.Errorf("%q, want %q", c.Here, want)
			}
			return
		}
	}
	t.Error("the claim is missing")
}
