package cuda_test

import (
	"strings"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestSerialScans holds the kernels that loop over time to what scans mean, over steps that no chunk
// of loads divides.
func TestSerialScans(t *testing.T) {
	d, _ := emulated(t)
	devicetest.ScansWith(t, d, knob.Params{"scanserial": 1})
}

// TestSerialKernels: a scan is one kernel with a thread for each channel.
func TestSerialKernels(t *testing.T) {
	b := schedule.NewBuilder(1)
	all := func(rows, vectors int) schedule.View { return b.Matrix("m", rows, vectors*77).All() }
	b.Do(0, schedule.Scan{Sequence: schedule.Sequence{Cell: cell.GILR, Steps: 9, X: all(27, 2), BX: all(1, 2), State: []schedule.View{all(30, 1)}}})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	launches, texts, err := cuda.Sources(s, knob.Params{"scanserial": 1}, h200())
	if err != nil || len(launches) != 1 || launches[0].Grid[0] != 2 || launches[0].Block[0] != 128 {
		t.Fatalf("%d launches, %v", len(launches), err)
	}
	for _, text := range texts {
		if !strings.Contains(text, "scan_serial_gilr") {
			t.Error("another kernel")
		}
	}
}
