package cuda_test

import (
	"strings"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestWeightLayouts: weights are packed in the layout of the kernel that reads them, and by column
// if kernels differ.
func TestWeightLayouts(t *testing.T) {
	for _, test := range []struct {
		batches []int
		ordered string
	}{
		{[]int{1}, "ORDERED = 1"},
		{[]int{64}, "ORDERED = 1"},
		{[]int{64, 64}, "ORDERED = 1"},
		{[]int{1, 64}, "ORDERED = 0"},
		{[]int{64, 0}, "ORDERED = 0"}, // a product reads these, too
	} {
		const hidden = 512
		b := schedule.NewBuilder(1)
		var r []schedule.View
		for range cell.LSTM.Recurrent {
			r = append(r, b.Packed("r", hidden, hidden).All())
		}
		for _, n := range test.batches {
			if n == 0 {
				b.Do(0, schedule.Gemm{A: b.Matrix("a", 1, hidden).All(), B: r[0], C: b.Matrix("c", 1, hidden).All()})
				continue
			}
			op := schedule.Persistent{R: r, Sequence: schedule.Sequence{
				Cell: cell.LSTM, Steps: 2, X: b.Matrix("x", 2*n, 4*hidden).All(), BX: b.Matrix("bx", 1, 4*hidden).All(), BR: b.Matrix("br", 1, 4*hidden).All(),
			}}
			for range cell.LSTM.States {
				op.State = append(op.State, b.Matrix("h", 3*n, hidden).All())
			}
			b.Do(0, op)
		}
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		_, texts, err := cuda.Sources(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if strings.Contains(text, "persistent(") && !strings.Contains(text, test.ordered) {
				t.Errorf("batches %v: no %s in a kernel", test.batches, test.ordered)
			}
		}
	}
}

// TestCopies: packing that would only copy what nothing writes takes no launch.
func TestCopies(t *testing.T) {
	const size = 64
	for _, test := range []struct {
		precision      schedule.Precision
		trans, written bool
		packs          int
	}{
		{schedule.FP32, false, false, 0},
		{schedule.FP32, false, true, 1},
		{schedule.FP32, true, false, 1},
		{schedule.BF16, false, false, 1},
	} {
		b := schedule.NewBuilder(1)
		b.SetPrecision(test.precision)
		from, packed := b.Matrix("w", size, size), b.Packed("packed", size, size)
		if test.written {
			b.Do(0, schedule.Map{Op: cell.OneMinus, Out: from.All(), A: from.All()})
		}
		b.Do(0, schedule.Pack{Src: from.All(), Dst: packed.All(), Trans: test.trans})
		b.Do(0, schedule.Gemm{A: b.Matrix("a", size, size).All(), B: packed.All(), C: b.Matrix("c", size, size).All()})
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		launches, _, err := cuda.Sources(s, knob.Params{"narrow": 2, "split": 2}, h200())
		if err != nil {
			t.Fatal(err)
		}
		if test.written {
			test.packs++
		}
		if len(launches) != test.packs {
			t.Errorf("%+v: %d launches", test, len(launches))
		}
	}
}
