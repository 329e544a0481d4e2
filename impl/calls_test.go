package impl_test

import (
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/emulator"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// A listening driver has no memory and no kernels: it records what the last program would send.
type listening struct {
	*emulator.Driver
	run []driver.Call
}

func (d *listening) Properties() driver.Properties {
	p := d.Driver.Properties()
	p.SMs = 132
	return p
}

func (d *listening) Alloc(int64) (driver.Pointer, error)        { return 1 << 20, nil }
func (d *listening) Free(driver.Pointer) error                  { return nil }
func (d *listening) Clear(...driver.Extent) error               { return nil }
func (d *listening) Load([]byte, string) (driver.Kernel, error) { return driver.Kernel{}, nil }
func (d *listening) Compile(string, string) ([]byte, error)     { return []byte{0}, nil }
func (d *listening) Version() string                            { return "" }
func (d *listening) Sequence(c []driver.Call) (driver.Sequence, error) {
	d.run = c // the last sequence that a program makes is its run
	return 1, nil
}

// TestCalls limits what a run sends to a GPU without a graph, since each call takes time to launch.
// It covers naive, the last stage of Appleyard's ladder, and the language model of Hwang and Sung
// with one sequence.
func TestCalls(t *testing.T) {
	driver, err := emulator.New(132, 1)
	if err != nil {
		t.Fatal(err)
	}
	listen := &listening{Driver: driver}
	d := cuda.New(listen, listen, "")
	defer d.Close()
	stack := rnn.Problem{Cell: cell.LSTM, Input: 512, Hidden: 512, Layers: 4, Batch: 64, Steps: 100}
	model := rnn.Problem{Cell: cell.LSTMC, Pass: rnn.Train, Input: 3000, Hidden: 512, Layers: 1, Output: 2000, OneHot: true, Batch: 1, Steps: 256, History: 256}
	wave := knob.Params{"streams": 8, "inputbatch": 2}
	type calls struct{ launches, products, records, waits int }
	for _, test := range []struct {
		technique string
		problem   rnn.Problem
		knobs     knob.Params
		device    knob.Params
		most      calls
	}{
		{"naive", stack, nil, nil, calls{8400, 3200, 0, 0}},
		{"cudnnstyle", stack, wave, nil, calls{608, 0, 406, 556}},
		{"cudnnstyle", stack, wave, knob.Params{"narrow": 2}, calls{408, 600, 406, 556}},
		{"scc", model, nil, nil, calls{270, 3, 0, 0}},
		{"scc", model, knob.Params{"fused": 0}, nil, calls{7250, 3, 0, 0}},
	} {
		_, s, err := rnn.Layout(impl.Lookup(test.technique), test.problem, test.knobs)
		if err != nil {
			t.Fatal(err)
		}
		p, err := d.Compile(s, test.device)
		if err != nil {
			t.Fatal(err)
		}
		var got calls
		for _, c := range listen.run {
			switch {
			case c.Launch != nil:
				got.launches++
			case c.Product != nil:
				got.products++
			case c.Wait:
				got.waits++
			default:
				got.records++
			}
		}
		if m := test.most; got.launches > m.launches || got.products > m.products || got.records > m.records || got.waits > m.waits {
			t.Errorf("%s %v %v sends %+v, want %+v at most", test.technique, test.knobs, test.device, got, m)
		}
		p.Close()
	}
}
