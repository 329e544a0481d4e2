package cuda_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// runs is a schedule of consecutive packs and zeros.
func runs(t *testing.T) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(1)
	matrix := func(name string, rows, cols int) schedule.View { return b.Matrix(name, rows, cols).All() }
	both, up, down := matrix("both", 90, 300), b.Packed("both packed", 300, 90).All(), b.Packed("both packed too", 90, 300).All()
	b.Do(0, schedule.Pack{Src: both, Dst: up, Trans: true})
	b.Do(0, schedule.Pack{Src: both, Dst: down})
	var packed []schedule.View
	for i := range 15 {
		name := fmt.Sprint("w", i)
		w, p := matrix(name, 40+i, 300), b.Packed(name+" packed", 300, 40+i).All()
		if i%2 == 0 {
			w, p = matrix(name, 300, 40+i), b.Packed(name+" packed", 300, 40+i).All()
		}
		b.Do(0, schedule.Pack{Src: w, Dst: p, Trans: i%2 == 1})
		packed = append(packed, p)
	}
	whole, row, part := matrix("whole", 3, 5), b.Matrix("rows", 3, 5).All().Band(1, 1).Columns(2, 2), matrix("part", 3, 5).Columns(1, 2)
	for _, v := range []schedule.View{whole, row, part} {
		b.Do(0, schedule.Map{Op: cell.Zero, Out: v})
	}
	one, two, three := matrix("one", 2, 6), matrix("two", 2, 6), matrix("three", 2, 6)
	b.Do(0, schedule.Map{Op: cell.Copy, Out: two, A: one})
	b.Do(0, schedule.Map{Op: cell.Copy, Out: b.Matrix("four", 2, 6).All(), A: one})
	b.Do(0, schedule.Map{Op: cell.Copy, Out: three, A: two}) // waits for the first
	left := matrix("left", 70, 300)
	b.Do(0, schedule.Gemm{A: left, B: up, C: matrix("up", 70, 90)})
	b.Do(0, schedule.Gemm{A: matrix("short", 70, 90), B: down, C: matrix("down", 70, 300)})
	for i, p := range packed {
		b.Do(0, schedule.Gemm{A: left, B: p, C: matrix(fmt.Sprint("c", i), 70, p.Cols)})
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestBatchedLaunches: consecutive small operations of a kind share a launch, at most sixteen of
// seventeen. The largest value of a matrix that is packed twice is found once.
func TestBatchedLaunches(t *testing.T) {
	s := runs(t)
	launches, _, err := cuda.Sources(s, knob.Params{"split": 3}, h200())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range launches {
		names = append(names, l.Name)
	}
	if n := launches[0].Grid[2]; n != 15 {
		t.Errorf("the largest values of %d matrices are looked for, want 15", n)
	}
	if got, want := strings.Join(names[:8], " "), "largest_several rightpieces_several largest rightpieces zero_several map_zero copy_several map_copy"; got != want {
		t.Errorf("launches begin %s, want %s", got, want)
	}
	if testing.Short() {
		t.Skip("not with -short: TestFunctions runs these kernels one by one")
	}
	d, _ := emulated(t)
	holdAll(t, d, s)
}

// TestGPUBatchedLaunches holds the same schedule on a GPU.
func TestGPUBatchedLaunches(t *testing.T) { holdAll(t, openGPU(t, time.Minute), runs(t)) }

// TestBatchesLookOnce: one call finds the largest value of a weight that is packed both ways.
func TestBatchesLookOnce(t *testing.T) {
	b := schedule.NewBuilder(1)
	w, x := b.Matrix("w", 300, 300).All(), b.Matrix("x", 300, 300).All()
	up, down := b.Packed("up", 300, 300).All(), b.Packed("down", 300, 300).All()
	b.Do(0, schedule.Pack{Src: w, Dst: up, Trans: true})
	b.Do(0, schedule.Pack{Src: w, Dst: down})
	b.Do(0, schedule.Gemm{A: x, B: up, C: b.Matrix("y", 300, 300).All()})
	b.Do(0, schedule.Gemm{A: x, B: down, C: b.Matrix("z", 300, 300).All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	launches, _, err := cuda.Sources(s, knob.Params{"split": 3}, h200())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range launches {
		names = append(names, l.Name)
	}
	if got, want := strings.Join(names, " "), "largest rightpieces_several largest split_fp16 split_fp16"; got != want {
		t.Errorf("launches are %s, want %s", got, want)
	}
	if testing.Short() {
		t.Skip("not with -short: TestSplitFP16 runs these kernels")
	}
	d, _ := emulated(t)
	holdAll(t, d, s)
}

// weights is a schedule of consecutive packs: straight and transposed, of some columns, into 16
// bits, and one that is too large for a batch.
func weights(t *testing.T) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(1)
	b.SetPrecision(schedule.BF16)
	var factors []schedule.View
	for i, rows := range []int{37, 64, 5, 300} {
		name := fmt.Sprint("w", i)
		w := b.Matrix(name, rows, 250).All().Columns(i, 240)
		up, down := b.Packed(name+" up", 240, rows).All(), b.Packed(name+" down", rows, 240).All()
		b.Do(0, schedule.Pack{Src: w, Dst: up, Trans: true})
		b.Do(0, schedule.Pack{Src: w, Dst: down})
		factors = append(factors, up, down)
	}
	for i, f := range factors {
		b.Do(0, schedule.Gemm{A: b.Matrix(fmt.Sprint("a", i), 200, f.Rows).All(), B: f, C: b.Matrix(fmt.Sprint("c", i), 200, f.Cols).All()})
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWeightsPackedTogether: small weights are packed in one launch.
func TestWeightsPackedTogether(t *testing.T) {
	s := weights(t)
	launches, _, err := cuda.Sources(s, knob.Params{"narrow": 2}, h200())
	if err != nil {
		t.Fatal(err)
	}
	if len(launches) != 3 || launches[0].Name != "arrange_several" || launches[0].Grid[2] != 6 {
		t.Errorf("%d launches, the first of %s, %v", len(launches), launches[0].Name, launches[0].Grid)
	}
	d, _ := emulated(t)
	holdAll(t, d, s)
}

// TestGPUWeightsPackedTogether holds the same schedule on a GPU.
func TestGPUWeightsPackedTogether(t *testing.T) { holdAll(t, openGPU(t, time.Minute), weights(t)) }
