package worker

import (
	"errors"
	"fmt"
	"testing"
)

// TestCausesCrossTheWire checks that errors.Is gives the same for an error before and after it
// crosses the pipe.
func TestCausesCrossTheWire(t *testing.T) {
	for i, c := range causes() {
		var r response
		r.fail(fmt.Errorf("at work: %w: for a reason", c))
		got := r.err()
		for j, d := range causes() {
			if want := errors.Is(c, d); errors.Is(got, d) != want {
				t.Errorf("cause %d is cause %d: %v", i, j, !want)
			}
		}
	}
}
