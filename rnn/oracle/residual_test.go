package oracle_test

import (
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// held is a memory whose matrices have one value each.
type held map[*schedule.Matrix]float32

func (held) Write(*schedule.Matrix, []float32) error { return nil }

func (h held) Read(m *schedule.Matrix, dst []float32) error {
	dst[0] = h[m]
	return nil
}

// TestRoundingIsNoChange: iterations that still change by rounding have converged, even where an answer's
// tolerance is as small.
func TestRoundingIsNoChange(t *testing.T) {
	last, before := &schedule.Matrix{Rows: 1, Cols: 1}, &schedule.Matrix{Rows: 1, Cols: 1}
	plan := &rnn.Plan{Iterates: [][2]schedule.View{{last.All(), before.All()}}}
	for change, want := range map[float32]bool{0: false, 0x1p-22: false, 0x1p-19: true} {
		if _, unconverged, err := oracle.Unconverged(plan, held{last: 1, before: 1 - change}, 1e-7); err != nil || unconverged != want {
			t.Errorf("a change of %g is unconverged: %v, %v", change, unconverged, err)
		}
	}
}
