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

// TestSerialScans holds serial scans to their meaning, for numbers of steps that are no multiple of
// a chunk of loads.
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

// TestNewCellsCompile compiles scans of the cells that have functions without a quick form, if
// NVRTC is here.
func TestNewCellsCompile(t *testing.T) {
	compiler := hopper(t)
	for _, c := range []*cell.Cell{cell.MinGRU, cell.RGLRU.Scanned} {
		for _, serial := range []int{0, 1} {
			b := schedule.NewBuilder(1)
			const steps, hidden = 1000, 96
			all := func(rows, vectors int) schedule.View { return b.Matrix("m", rows, max(1, vectors)*hidden).All() }
			s := schedule.Sequence{Cell: c, Train: true, Steps: steps, X: all(steps, len(c.Gates)), BX: all(1, len(c.Gates)), Saved: all(steps, c.Saved), State: []schedule.View{all(steps+1, 1)}}
			if n := len(c.Peeps); n > 0 {
				s.Peep = all(1, n)
			}
			b.Do(0, schedule.Scan{Sequence: s})
			b.Do(0, schedule.ScanBackward{Sequence: s, SequenceGrad: schedule.SequenceGrad{DOut: all(steps, 1), DX: all(steps, c.Gradients()), Carry: []schedule.View{all(1, 1)}}})
			laid, err := b.Schedule()
			if err != nil {
				t.Fatal(err)
			}
			_, texts, err := cuda.Sources(laid, knob.Params{"scanserial": serial}, h200())
			if err != nil || len(texts) != 2 {
				t.Fatalf("%d kernels, %v", len(texts), err)
			}
			for _, text := range texts {
				image, err := compiler.Compile("scan", text)
				if err != nil {
					t.Fatalf("%v serial=%d: %v", c, serial, err)
				}
				registers, _ := most(registerRecord, image)
				stack, err := most(stackRecord, image)
				t.Logf("%v serial=%d: %d registers, %d bytes of stack", c, serial, registers, stack)
				if err != nil || stack > 0 {
					t.Errorf("%v serial=%d: %d bytes of stack, %v", c, serial, stack, err)
				}
			}
		}
	}
}
