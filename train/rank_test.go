package train

import (
	"math"
	"testing"

	"rnnbench/rnn/schedule"
)

// TestRank counts rows by hand. Of equally likely classes none is the most likely, so that a network
// that tells nothing apart is never right. Rows without a class do not count, and NaN is no answer.
func TestRank(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name              string
		groups            int
		prob              []float32 // rows of 6 classes
		target            []float32
		top1, top5, top20 float64
	}{
		{"the most likely", 1, []float32{1, 2, 9, 3, 4, 5}, []float32{2}, 1, 1, 1},
		{"the second", 1, []float32{1, 2, 9, 3, 4, 5}, []float32{5}, 0, 1, 1},
		{"the fifth", 1, []float32{1, 2, 9, 3, 4, 5}, []float32{1}, 0, 1, 1},
		{"the last", 1, []float32{1, 2, 9, 3, 4, 5}, []float32{0}, 0, 0, 1},
		{"a tie of two", 1, []float32{9, 9, 1, 1, 1, 1}, []float32{0}, 0, 1, 1},
		{"a tie of all", 1, []float32{1, 1, 1, 1, 1, 1}, []float32{3}, 0, 0, 1},
		{"no class", 1, []float32{1, 2, 9, 3, 4, 5}, []float32{-1}, 0, 0, 0},
		{"NaN", 1, []float32{1, 2, nan, 3, 4, 5}, []float32{2}, 0, 0, 0},
		{"the most likely of its group", 2, []float32{9, 9, 9, 3, 4, 5}, []float32{5}, 1, 1, 1},
		{"the second of its group", 2, []float32{9, 9, 9, 3, 4, 5}, []float32{4}, 0, 1, 1},
		{"two rows", 1, []float32{9, 2, 1, 3, 4, 5, 1, 2, 9, 3, 4, 5}, []float32{0, 3}, 1, 2, 2},
	} {
		var s Score
		s.rank(&schedule.Matrix{Rows: len(c.target), Cols: 6}, c.groups, c.prob, c.target)
		if want := (Score{Top1: c.top1, Top5: c.top5, Top20: c.top20}); s != want {
			t.Errorf("%s: %+v, want %+v", c.name, s, want)
		}
	}
}
