package fused

import (
	"slices"
	"sync"
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
)

// TestMemo: equal programs at one place are translated once for each level, by several at once, and
// others apart. A memo forgets before it holds too many.
func TestMemo(t *testing.T) {
	loop := func(pass Pass) *Loop { return NewLoop(simd.Generic, cell.SRU, pass) }
	kernel := func(pass Pass) *Kernel { return New(simd.Generic, cell.SRU, pass) }
	if a, b, other := loop(Forward), loop(Forward), loop(Inference); a != b || a == other {
		t.Error("a loop is translated twice, or two passes share one")
	}
	if a, b, other := kernel(Forward), kernel(Forward), kernel(Inference); a != b || a == other {
		t.Error("a kernel is translated twice, or two passes share one")
	}
	var m memo[int]
	made := 0
	one := slices.Clone(cell.SRU.Inference)
	of := func(l simd.Level, p cell.Program) int {
		return m.of(l, p, func() int { made++; return made })
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { of(simd.Generic, one); of(simd.AVX2, one); of(simd.Generic, one[:1]); of(simd.Generic, nil) })
	}
	if all.Wait(); made != 4 {
		t.Errorf("made %d, want 4", made)
	}
	for range 2 * memoised {
		of(simd.Generic, slices.Clone(one))
	}
	if len(m.made) > memoised {
		t.Errorf("%d are remembered", len(m.made))
	}
}
