package grid_test

import (
	"testing"

	"rnnbench/tuner/grid"
)

// FuzzCondition: a condition is refused, or reads back as it prints.
func FuzzCondition(f *testing.F) {
	for _, text := range []string{"hidden<=2048", "mem<=8GiB", "impl!=naive", "impl=cudnnstyle:fused=0", "intensity>1e3", "==", "flops>0x1p4"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := grid.ParseCondition(text)
		if err != nil {
			return
		}
		again, err := grid.ParseCondition(c.String())
		if err != nil || again.String() != c.String() {
			t.Errorf("%q is spelt %q, and that %q: %v", text, c, again, err)
		}
	})
}
