package cuda_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/devicetest"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// narrowSums runs steps of every every-th cell with products stored in 16 bits, by the library and
// as skinny products, and whole passes.
func narrowSums(t *testing.T, d device.Device, hidden, every int) {
	var cases []devicetest.Case
	for i, c := range cell.All() {
		for j, k := range []knob.Params{{"sums": 1, "narrow": 2}, {"sums": 1, "narrow": 3}, {"sums": 1, "narrow": 1}} {
			if c.Recurrent == 0 || (i+j)%every != 0 {
				continue
			}
			l := devicetest.Layer{Cell: c, Hidden: hidden + 3*(j%2), Batch: 5 + 12*(i%2), Steps: 3, Train: i%2 == 0, Precision: []schedule.Precision{schedule.BF16, schedule.FP16}[(i+j)/every%2]}
			cases = append(cases, devicetest.Case{Layer: l, Knobs: k, Stepwise: true})
		}
	}
	devicetest.Layers(t, d, cases)
	for i, p := range []rnn.Problem{
		{Cell: cell.LSTM, Input: 7, Hidden: hidden, Layers: 2, Batch: 5, Steps: 6, Pass: rnn.Train, Precision: schedule.BF16},
		{Cell: cell.GRU, Input: hidden, Hidden: hidden + 3, Layers: 1, Batch: 33, Steps: 4, Pass: rnn.Train, Precision: schedule.FP16, Output: 5},
		{Cell: cell.LSTM, Input: 12, Hidden: hidden, Layers: 3, Batch: 9, Steps: 5, Precision: schedule.FP16, Direction: rnn.Alternating},
	} {
		wholeByNarrowSums(t, d, p, knob.Params{"inputbatch": 2 * (i % 2)})
	}
}

// wholeByNarrowSums holds a pass to the reference.
func wholeByNarrowSums(t *testing.T, d device.Device, p rnn.Problem, k knob.Params) {
	t.Helper()
	plan, s, err := rnn.Layout(impl.Lookup("cudnnstyle"), p, k)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := d.Compile(s, knob.Params{"sums": 1})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	data := rnn.NewData(p, 1, 2, "normal")
	if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
		t.Fatal(err)
	}
	if _, err := prog.Run(2); err != nil {
		t.Fatal(err)
	}
	got, err := oracle.Read(plan, prog)
	if err != nil {
		t.Fatal(err)
	}
	if dev, err := oracle.Compare(p, got, oracle.Reference(data)); err != nil || !dev.OK() {
		t.Errorf("%v: %v %v", p, dev, err)
	}
}

// TestSumsOfCells: a matrix is stored in 16 bits only if only products write it and only cells read
// it.
func TestSumsOfCells(t *testing.T) {
	for _, c := range []struct {
		technique string
		problem   rnn.Problem
		want      []string
	}{
		{"cudnnstyle", rnn.Problem{Cell: cell.LSTM, Precision: schedule.FP16}, []string{"h·R0", "x·W0", "h·R1", "x·W1"}},
		{"cudnnstyle", rnn.Problem{Cell: cell.GRU, Precision: schedule.BF16, Pass: rnn.Train}, []string{"h·R0", "x·W0", "h·R1", "x·W1"}},
		{"cudnnstyle", rnn.Problem{Cell: cell.LSTM, Precision: schedule.BF16, OneHot: true}, []string{"h·R0", "h·R1", "x·W1"}}, // gathered
		{"cudnnstyle", rnn.Problem{Cell: cell.QRNN2, Precision: schedule.BF16}, nil},                                           // products of two steps are added
		{"cudnnstyle", rnn.Problem{Cell: cell.LSTM, Precision: schedule.TF32}, nil},
		{"persistent", rnn.Problem{Cell: cell.LSTM, Precision: schedule.FP16}, nil}, // a layer reads them
	} {
		p := c.problem
		p.Input, p.Hidden, p.Layers, p.Batch, p.Steps = 8, 8, 2, 3, 4
		_, s, err := rnn.Layout(impl.Lookup(c.technique), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, n := range gemm.CellSums(s) {
			if n > 0 {
				if want := p.Batch * 8 * len(p.Cell.Gates); n > want || gemm.Narrow(n, 0) || !gemm.Narrow(n, 1) || gemm.Narrow(n, 2) {
					t.Errorf("%s, %v: a cell reads %d sums of %s at once, of %d", c.technique, p, n, s.Matrices[i].Name, want)
				}
				got = append(got, s.Matrices[i].Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %v: %q, want %q", c.technique, p, got, c.want)
		}
	}
}

// TestManySums: products are stored in 16 bits by default if a cell reads 2¹⁹ values of one.
func TestManySums(t *testing.T) {
	if gemm.Narrow(1<<19-1, 0) || !gemm.Narrow(1<<19, 0) || gemm.Narrow(1<<30, 2) || gemm.Narrow(0, 1) || gemm.Narrow(0, 0) {
		t.Error("the rule is another one")
	}
	d, err := cuda.Machine("h200")
	if err != nil {
		t.Fatal(err)
	}
	memory := func(batch int, k knob.Params) int64 {
		t.Helper()
		p := rnn.Problem{Cell: cell.LSTM, Input: 1024, Hidden: 1024, Layers: 1, Batch: batch, Steps: 4, Precision: schedule.FP16}
		_, s, err := rnn.Layout(impl.Lookup("cudnnstyle"), p, knob.Params{"inputbatch": 0})
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := d.Memory(s, k)
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	const saved = 2 * 4096 * (4 + 1) // bytes a sequence: of four steps' inputs and a step's states
	for _, c := range []struct {
		batch int
		knobs knob.Params
		less  int64
	}{{128, nil, 128 * saved}, {128, knob.Params{"sums": 1}, 128 * saved}, {64, nil, 0}, {64, knob.Params{"sums": 1}, 64 * saved}} {
		if less := memory(c.batch, knob.Params{"sums": 2}) - memory(c.batch, c.knobs); less != c.less {
			t.Errorf("%d sequences, %v: products take %d bytes less, want %d", c.batch, c.knobs, less, c.less)
		}
	}
}

func TestNarrowSums(t *testing.T) {
	every := 2
	if testing.Short() {
		every = 9
	}
	d, _ := emulated(t)
	narrowSums(t, d, 21, every)
}

// TestGPUNarrowSums runs them on a GPU.
func TestGPUNarrowSums(t *testing.T) { narrowSums(t, openGPU(t, time.Minute), 133, 2) }
