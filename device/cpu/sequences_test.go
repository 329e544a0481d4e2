package cpu

import (
	"math"
	"reflect"
	"testing"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestSequencesAloneAndSharedAgree: a sequence gives almost the same results whether one worker
// runs all its steps or workers share its units. If one call runs it, the results are the same on
// any worker.
func TestSequencesAloneAndSharedAgree(t *testing.T) {
	for _, c := range []*cell.Cell{cell.RNNTanh, cell.RNNReLU, cell.GRU, cell.LSTM, cell.LSTMPeephole} {
		for _, train := range []bool{false, true} {
			a := newLayer(t, c, train, 5, 37, 5, 19, []int{0, 0}, nil)
			var alone [][]float32
			for _, threads := range []int{1, 2, 3, 8} {
				d, err := Open(Options{Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				if threads == 1 {
					alone, _ = a.run(t, d, nil)
					continue
				}
				got, _ := a.run(t, d, knob.Params{"sequences": 2})
				if d.kernels.Level() > simd.Generic && !reflect.DeepEqual(got, alone) {
					t.Errorf("%v, %d workers: not what one worker comes to", c, threads)
				}
				shared, _ := a.run(t, d, knob.Params{"sequences": 1})
				for i := range got {
					for j, x := range got[i] {
						if diff := math.Abs(float64(x - shared[i][j])); !(diff <= 1e-5) {
							t.Fatalf("%v, %d workers: %v, and %v where they share units", c, threads, x, shared[i][j])
						}
					}
				}
			}
		}
	}
}

// TestNearWeightsGiveWorkersOwnSequences: workers run sequences of their own if the nearest cache
// holds the weights.
func TestNearWeightsGiveWorkersOwnSequences(t *testing.T) {
	d, err := Open(Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	most := line // the most units of an LSTM with weights in that cache
	for 4*4*(most+line)*(most+line) <= nearest() {
		most += line
	}
	for _, test := range []struct {
		hidden, batch int
		f             simd.Format
		k             knob.Params
		want          bool
	}{
		{most, 2, simd.F32, nil, true},
		{most, 100, simd.F32, nil, true},
		{most, 2, simd.BF16, nil, true},
		{most, 1, simd.F32, nil, false},
		{most, 1, simd.F32, knob.Params{"sequences": 2}, false},
		{most, 2, simd.F32, knob.Params{"bands": 2}, false},
		{most, 2, simd.F32, knob.Params{"sequences": 1}, false},
		{4 * most, 2, simd.F32, nil, false},
		{4 * most, 2, simd.F32, knob.Params{"sequences": 2}, true},
		{4 * most, 8, simd.F32, nil, 4*16*16*most*most <= 3*gemm.DetectL2()},
		{4 * most, 7, simd.F32, nil, false},
	} {
		a := newLayer(t, cell.LSTM, false, 16, test.hidden, test.batch, 8, []int{0, 0}, nil)
		if got := d.ownSequences(a.s.Nodes[1].Op.(schedule.Persistent), test.f, test.k); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
		if test.f != simd.F32 || test.batch == 1 {
			continue
		}
		prog := a.compile(t, d, test.k)
		if n := prog.nodes[1]; n.work.(*persistent).ownSequences != test.want || test.want && n.pieces != 1 {
			t.Errorf("%+v: %d pieces, of one worker: %v", test, n.pieces, n.work.(*persistent).ownSequences)
		}
		if err := prog.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSequencesThatMakeUpForWeights: tiles need more sequences than vectors do, and so do weights
// that fill L2.
func TestSequencesThatMakeUpForWeights(t *testing.T) {
	const l2, room, full = 2 << 20, 1 << 20, 2 << 20
	for _, test := range []struct {
		level simd.Level
		f     simd.Format
		bytes int
		want  int
	}{
		{simd.AVX2, simd.F32, room, 4},
		{simd.AVX2, simd.F32, full, 16},
		{simd.AVX512BF16, simd.BF16, room, 4},
		{simd.AMX, simd.F32, room, 4},
		{simd.AMX, simd.BF16, room, 8},
		{simd.AMX, simd.BF16, full, 32},
	} {
		if got := enough(test.bytes, l2, test.f, test.level); got != test.want {
			t.Errorf("%+v: %d sequences", test, got)
		}
	}
}

// TestSequencesOneByOne: with few steps, as in parts of a batch of many lengths, a step of several
// sequences is one product. Starting a call for each sequence would take as long. The same holds
// for many units with AVX-512.
func TestSequencesOneByOne(t *testing.T) {
	p := &program{device: &Device{planner: planner{kernels: simd.Model(simd.AMX)}}}
	for _, c := range []struct {
		steps, rows, units, gates int
		want                      bool
	}{
		{3, 2, 16, 4, false}, {1, 40, 16, 4, false}, {3, 1, 16, 4, true}, {4, 2, 16, 4, true}, {100, 40, 16, 4, true}, // few steps
		{50, 8, 50, 1, true}, {50, 8, 65, 1, false}, {50, 3, 60, 1, true}, {50, 8, 33, 3, true}, {50, 8, 49, 3, false}, // many units
	} {
		w := &persistent{band: band{program: p, steps: c.steps, batch: c.rows, hidden: c.units}, weights: make([][]float32, c.gates), recurrence: &fused.Recurrence{}}
		if got := w.oneByOne(c.rows); got != c.want {
			t.Errorf("%+v: one by one is %v", c, got)
		}
	}
}
