package cuda_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/cells"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// diagonals are the cells whose units read their own states alone, and a linear recurrence with weights
// of units.
func diagonals(t *testing.T) []*cell.Cell {
	all := []*cell.Cell{cell.RGLRU}
	for _, name := range []string{"gru-diag", "lstm-diag", "indrnn"} {
		c, err := cells.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// TestSerialLayers: a persistent layer of a diagonal recurrence is right, with gradients, resets, in
// both precisions, and for steps that are no multiple of a chunk of loads.
func TestSerialLayers(t *testing.T) {
	d, _ := emulated(t)
	for i, c := range diagonals(t) {
		for j, precision := range []rnn.Precision{rnn.FP32, rnn.BF16} {
			if testing.Short() && (i+j)%2 > 0 {
				continue
			}
			p := rnn.Problem{Cell: c, Input: 3, Hidden: 77, Layers: 1 + j, Batch: 3, Steps: 19, Pass: rnn.Train, Precision: precision, Resets: 20 * (i % 2)}
			t.Run(fmt.Sprintf("%v/%v", c, precision), func(t *testing.T) {
				impltest.Run(t, d, impl.Lookup("persistent"), []rnn.Problem{p})
			})
		}
	}
}

// TestSerialLayersCompile: NVRTC, if it is here, compiles them without memory on the stack: states and
// the inputs that are loaded ahead stay in registers.
func TestSerialLayersCompile(t *testing.T) {
	compiler := hopper(t)
	for _, c := range diagonals(t) {
		for _, resets := range []int{0, 5} {
			p := rnn.Problem{Cell: c, Input: 8, Hidden: 256, Layers: 1, Batch: 4, Steps: 100, Pass: rnn.Train, Resets: resets}
			_, s, err := rnn.Layout(impl.Lookup("persistent"), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			launches, texts, err := cuda.Sources(s, nil, h200())
			if err != nil || len(launches) == 0 {
				t.Fatal(err)
			}
			found := 0
			for _, text := range texts {
				if !strings.Contains(text, " scan_serial_") {
					continue
				}
				image, err := compiler.Compile("scan", text)
				if err != nil {
					t.Fatalf("%v: %v", c, err)
				}
				registers, _ := most(registerRecord, image)
				stack, err := most(stackRecord, image)
				t.Logf("%v resets=%d: %d registers, %d bytes of stack", c, resets, registers, stack)
				if err != nil || stack > 0 {
					t.Errorf("%v: %d bytes of stack, %v", c, stack, err)
				}
				found++
			}
			if found != 2 {
				t.Errorf("%v: %d kernels, want one forward and one backward", c, found)
			}
		}
	}
}

// TestSerialTakesItsChain: the predicted time of a serial layer grows with its steps, not only with its
// bytes, so that a long linear recurrence of few units is predicted to be faster by a parallel scan.
func TestSerialTakesItsChain(t *testing.T) {
	slowest := func(technique string, steps, batch int) float64 {
		p := rnn.Problem{Cell: cell.GILR, Input: 8, Hidden: 64, Layers: 1, Batch: batch, Steps: steps}
		_, s, err := rnn.Layout(impl.Lookup(technique), p, knob.Params{"inputbatch": 0})
		if err != nil {
			t.Fatal(err)
		}
		all, err := cuda.Expected(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		return slices.Max(all)
	}
	long, short := slowest("persistent", 60_000, 1), slowest("persistent", 6_000, 10)
	if long < 8*short {
		t.Errorf("%.3g s for 60,000 steps, %.3g s for as many bytes in 6,000", long, short)
	}
	if scan := slowest("scan", 60_000, 1); long < 2*scan {
		t.Errorf("%.3g s one after another, %.3g s by a scan", long, scan)
	}
}
