package persistent_test

import (
	"errors"
	"testing"

	"rnnbench/impl/persistent"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestSerialLayer: a layer without recurrent products is a serial scan for all steps or for each block of
// them, and one for its gradient.
func TestSerialLayer(t *testing.T) {
	for _, block := range []int{0, 4} {
		p := rnn.Problem{Cell: cell.RGLRU, Input: 3, Hidden: 5, Layers: 2, Batch: 2, Steps: 9, Pass: rnn.Train}
		_, s, err := rnn.Layout(persistent.Technique{}, p, knob.Params{"inputbatch": block})
		if err != nil {
			t.Fatal(err)
		}
		forward, backward := 0, 0
		for op := range s.Operations() {
			switch op.(type) {
			case schedule.Scan:
				forward++
			case schedule.ScanBackward:
				backward++
			}
			if schedule.Scans(op) && !schedule.SerialScan(op) {
				t.Errorf("%v is not serial", op)
			}
		}
		want := 2
		if block > 0 {
			want *= 3
		}
		if forward != want || backward != want {
			t.Errorf("inputbatch=%d: %d scans and %d gradients, want %d", block, forward, backward, want)
		}
	}
}

// TestWindowDeclined: a cell that reads several input steps is declined, with recurrent products and
// without.
func TestWindowDeclined(t *testing.T) {
	windowed, err := equations.Parse("windowed.cell", "windowed", "window 2\ngate z = sigmoid(W x + R h + b)\nh' = z * h")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*cell.Cell{windowed, cell.QRNN2} {
		_, _, err := rnn.Layout(persistent.Technique{}, rnn.Problem{Cell: c, Input: 3, Hidden: 5, Layers: 1, Batch: 2, Steps: 9}, nil)
		if !errors.Is(err, schedule.ErrCell) {
			t.Errorf("%v: %v", c, err)
		}
	}
}
