package persistent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// TestVariantsFeasible: a GPU without clusters of blocks runs none of the variants that need them.
// Each variant has exactly the strategies in the table.
func TestVariantsFeasible(t *testing.T) {
	old := driver.Properties{Capability: 80, SMs: 108, Shared: 163 << 10}
	seen := map[string]bool{}
	for _, p := range []driver.Properties{old, h200()} {
		for _, k := range []knob.Params{nil, {"tensor": 1}, {"tensor": 2}, {"resident": 7}, {"resident": 9, "samples": 16}, {"wideback": 1}} {
			for _, c := range []*cell.Cell{cell.LSTM, cell.RNNTanh} {
				for _, e := range []driver.Element{driver.Single, driver.Brain} {
					all := slices.Concat(persistent.Candidates(c, 256, 16, e, k, p), persistent.BackwardCandidates(c, 256, 16, e, k, p), persistent.Candidates(c, 64, 16, e, k, p))
					for _, form := range all {
						v := form.Variant()
						if !v.Feasible(p) {
							t.Errorf("%s is of a GPU of compute capability %d, which cannot run it", v.Name, p.Capability)
						}
						if !slices.Contains(v.Strategies, form.Knobs["resident"]) {
							t.Errorf("%s has resident=%d, and the table says %v", v.Name, form.Knobs["resident"], v.Strategies)
						}
						seen[fmt.Sprint(v.Name, form.Knobs["resident"])] = true
					}
				}
			}
		}
	}
	for _, v := range persistent.Variants {
		for _, s := range v.Strategies {
			if !seen[fmt.Sprint(v.Name, s)] {
				t.Errorf("no layer runs by %s with %s", v.Name, persistent.Setting("resident", s))
			}
		}
	}
}

// TestFewPiecesArePolled: a warp of mma-poll has few pieces of columns to look at. A layer for which
// no division has few is streamed, if that exchanges sooner.
func TestFewPiecesArePolled(t *testing.T) {
	for _, l := range []struct {
		cell          *cell.Cell
		hidden, batch int
		variant, says string
	}{
		{cell.LSTM, 960, 6, "mma-poll", "warps that share columns: 8"},
		{cell.LSTM, 800, 19, "mma-poll", "warps that share columns: 8"},
		{cell.RNNTanh, 2304, 3, "mma-stream", ""},
	} {
		best := persistent.Candidates(l.cell, l.hidden, l.batch, driver.Brain, nil, h200())[0]
		if best.Variant().Name != l.variant || !strings.Contains(best.Words(), l.says) {
			t.Errorf("%v of %d units, %d sequences: %s, %s", l.cell, l.hidden, l.batch, best.Variant().Name, best.Words())
		}
	}
}
