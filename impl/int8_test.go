package impl_test

import (
	"errors"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// TestInt8: at each instruction set, on one worker and two, int8 is right by its own tolerance.
func TestInt8(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 37, Hidden: 101, Layers: 2, Batch: 2, Steps: 3, Precision: rnn.INT8}
	data := rnn.NewData(p, 1, 2, "normal")
	want := oracle.Reference(data)
	for l := simd.Generic; l <= simd.Detect(); l++ {
		for threads := 1; threads <= 2; threads++ {
			d, err := cpu.Open(cpu.Options{Threads: threads, Level: &l, InTurn: true})
			if err != nil {
				t.Fatal(err)
			}
			got, err := answerOn(d, impl.Lookup("cudnnstyle"), p, data)
			if err != nil {
				t.Fatal(err)
			}
			if dev, err := oracle.Compare(p, got, want); err != nil || !dev.OK() {
				t.Errorf("%v, %d threads: %v, %v", l, threads, dev, err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestInt8Declines: what int8 does not fit is declined, by the precision.
func TestInt8Declines(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	fits := rnn.Problem{Cell: cell.LSTM, Input: 5, Hidden: 7, Layers: 1, Batch: 1, Steps: 64, Precision: rnn.INT8}
	long, many, train := fits, fits, fits
	long.Steps, many.Batch, train.Pass = 65, 65, rnn.Train
	all := knob.Params{"inputbatch": 0}
	for _, test := range []struct {
		name      string
		technique string
		problem   rnn.Problem
		knobs     knob.Params
		fits      bool
	}{
		{"all steps at once", "cudnnstyle", fits, all, true},
		{"too many steps at once", "cudnnstyle", long, all, false},
		{"two of them at once", "cudnnstyle", long, knob.Params{"inputbatch": 2}, true},
		{"too many sequences", "cudnnstyle", many, nil, false},
		{"training", "cudnnstyle", train, nil, false},
		{"weights not packed", "cudnnstyle", fits, knob.Params{"transposed": 0}, false},
		{"a persistent layer", "persistent", fits, nil, false},
	} {
		_, s, err := rnn.Layout(impl.Lookup(test.technique), test.problem, test.knobs)
		if err == nil {
			_, err = d.Memory(s, nil)
		}
		if test.fits && err != nil || !test.fits && !errors.Is(err, schedule.ErrPrecision) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
