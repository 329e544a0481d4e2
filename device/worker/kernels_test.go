package worker_test

import (
	"reflect"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
)

// TestKernels: a program in another process lists the kernels that it lists in this one.
func TestKernels(t *testing.T) {
	here, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	there, err := open(t, "serve", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	s, err := devicetest.Case{Layer: devicetest.Layer{Cell: cell.LSTM, Hidden: 20, Batch: 2, Steps: 3}, Stepwise: true}.Build()
	if err != nil {
		t.Fatal(err)
	}
	var lists [2][]device.Kernel
	for i, d := range []device.Device{here, there} {
		p, err := d.Compile(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if lists[i] = p.Kernels(); p.Close() != nil {
			t.Error("a program does not close")
		}
	}
	if len(lists[0]) == 0 || !reflect.DeepEqual(lists[0], lists[1]) {
		t.Errorf("here %+v, there %+v", lists[0], lists[1])
	}
	for _, k := range lists[0] {
		if want := map[string]int{"gemm": 3, "cell": 3}[k.Name]; k.Variant == "" || want > 0 && k.Launches != want {
			t.Errorf("of three steps, kernel %+v", k)
		}
	}
}
