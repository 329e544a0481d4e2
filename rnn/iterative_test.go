package rnn

import (
	"errors"
	"math"
	"slices"
	"testing"

	"rnnbench/rnn/schedule"
)

// TestFewest: at most an eighth more iterations are found than are needed, and none if most are too few.
func TestFewest(t *testing.T) {
	for need := 1; need <= 40; need++ {
		n, err := Fewest(4, 32, func(n int) (bool, error) { return n >= need, nil })
		if err != nil || need > 32 && n != 0 || need <= 32 && (n < need || n > need+max(1, need/8)) {
			t.Errorf("%d are needed: %d, %v", need, n, err)
		}
	}
	failed := errors.New("failed")
	if _, err := Fewest(4, 32, func(n int) (bool, error) { return false, failed }); err != failed {
		t.Error(err)
	}
}

// keeping is a memory of one matrix.
type keeping []float32

func (k keeping) Write(_ *schedule.Matrix, src []float32) error { copy(k, src); return nil }
func (k keeping) Read(_ *schedule.Matrix, dst []float32) error  { copy(dst, k); return nil }

// TestLargestChange: a change counts over the largest value of its row, one that is no number is infinite, and
// what was kept is cleared.
func TestLargestChange(t *testing.T) {
	plan := &Plan{changes: &schedule.Matrix{Rows: 2, Cols: 2}}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		kept keeping
		want float64
	}{
		{keeping{0, 0, 0, 5}, 0}, {keeping{1, 4, 1, 8}, 0.25}, {keeping{inf, 4, 1, 8}, math.Inf(1)},
		{keeping{1, 4, nan, 8}, math.Inf(1)}, {keeping{1, 4, 1, nan}, math.Inf(1)},
	} {
		given := slices.Clone(c.kept)
		got, err := LargestChange(plan, c.kept)
		if err != nil || got != c.want || !slices.Equal(c.kept, keeping{0, 0, 0, 0}) {
			t.Errorf("%v: %g, %v; left are %v", given, got, err, c.kept)
		}
	}
	if got, err := LargestChange(&Plan{}, nil); got != 0 || err != nil {
		t.Errorf("without iterations: %g, %v", got, err)
	}
}
