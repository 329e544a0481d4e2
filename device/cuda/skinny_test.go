package cuda_test

import (
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// skinnies runs steps of every every-th cell as skinny products, alone, with their cells, and with
// split factors.
func skinnies(t *testing.T, d device.Device, hidden, every int) {
	params := []knob.Params{
		{"narrow": 1},
		{"narrow": 3},
		{"narrow": 1, "narrowwidth": 48},
		{"narrow": 1, "narrowwidth": 64, "narrowrows": 16},
		{"narrow": 3, "narrowwidth": 32},
		{"narrow": 2, "split": 1},
	}
	var cases []devicetest.Case
	for i, c := range cell.All() {
		if c.Recurrent == 0 {
			continue
		}
		for j, k := range params {
			for back := range 2 {
				if (i+j+back)%every != 0 {
					continue
				}
				l := devicetest.Layer{Cell: c, Hidden: hidden + 3*(j%2), Batch: 3 + 18*(j%2), Steps: 3, Train: j%2 == 0, Backward: back == 1, Resets: j/2 == 1, Precision: schedule.Precision((i + j) % 4)}
				if k["split"] > 0 {
					l.Precision = schedule.FP32
				}
				cases = append(cases, devicetest.Case{Layer: l, Knobs: k, Stepwise: true})
			}
		}
	}
	devicetest.Layers(t, d, cases)
}

func TestSkinny(t *testing.T) {
	every := 5
	if testing.Short() {
		every = 11
	}
	d, _ := emulated(t)
	skinnies(t, d, 37, every)
}

// TestSkinnyResets: with resets too, a step's product and cell are one kernel, which keeps its values
// in registers.
func TestSkinnyResets(t *testing.T) {
	l := devicetest.Layer{Cell: cell.LSTM, Hidden: 256, Batch: 16, Steps: 1, Train: true, Resets: true, Precision: schedule.FP32}
	s, err := devicetest.Case{Layer: l, Stepwise: true}.Build()
	if err != nil {
		t.Fatal(err)
	}
	launches, texts, err := cuda.Sources(s, knob.Params{"narrow": 1}, h200())
	if err != nil {
		t.Fatal(err)
	}
	last := len(launches) - 1
	if name := launches[last].Name; name != "narrow_lstm_train" {
		t.Fatalf("a step ends with %s", name)
	}
	if n := recorded(t, hopper(t), stackRecord, launches[last], texts[last]); n > 0 {
		t.Errorf("%d bytes of stack", n)
	}
}

// TestGPUSkinny runs them on a GPU.
func TestGPUSkinny(t *testing.T) {
	every := 2
	if testing.Short() {
		every = 3
	}
	skinnies(t, openGPU(t, time.Minute), 133, every)
}

// TestSkinnyIsChosenWhereFastest: the faster method on an H200 is chosen. The skinny kernel reads
// weights at the rate of memory, and the library at a third of it in single precision.
func TestSkinnyIsChosenWhereFastest(t *testing.T) {
	for _, c := range []struct {
		rows, columns, terms int
		precision            schedule.Precision
		own                  bool
	}{
		{4, 8448, 2816, schedule.FP32, true},  // 23.5 µs for 59.4
		{32, 8448, 2816, schedule.FP32, true}, // 27.1 for 70.6
		{4, 6144, 2048, schedule.FP32, true},  // 13.0 for 40.1
		{4, 2560, 2560, schedule.FP32, true},  // 8.6 for 22.0
		{64, 2048, 512, schedule.FP32, true},
		{1, 512, 512, schedule.FP32, true},    // training of an Elman network, two a step: 9.3 µs a step for 12.2
		{1, 6144, 2048, schedule.FP32, true},  // 12.5 for 14.4
		{1, 8448, 2816, schedule.BF16, true},  // 8.5 for 11.5
		{4, 4096, 1024, schedule.BF16, true},  // 2.2 for 4.0
		{64, 1152, 1152, schedule.BF16, true}, // training of rnn-tanh 1152: 9.3 µs a step for 11.4
		{64, 4096, 1024, schedule.BF16, false},
		{64, 8448, 2816, schedule.BF16, false},
	} {
		b := schedule.NewBuilder(1)
		b.SetPrecision(c.precision)
		b.Do(0, schedule.Gemm{A: b.Matrix("a", c.rows, c.terms).All(), B: b.Packed("b", c.terms, c.columns).All(), C: b.Matrix("c", c.rows, c.columns).All()})
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		launches, _, err := cuda.Sources(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		if own := len(launches) > 0; own != c.own {
			t.Errorf("%d rows of %d × %d values in %v: by a kernel of our own %t, and %t was faster", c.rows, c.terms, c.columns, c.precision, own, c.own)
		}
	}
}
