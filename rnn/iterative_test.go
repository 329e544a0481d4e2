package rnn

import (
	"errors"
	"testing"
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
