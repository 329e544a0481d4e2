package cuda_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/emulator"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// tight is a GPU with little shared memory, so that small layers exceed the chip.
type tight struct {
	*emulator.Driver
	shared int
}

func (d tight) Properties() driver.Properties {
	p := d.Driver.Properties()
	p.Shared = d.shared
	return p
}

// streams are layers whose weights pass through rings, of fewer copies than a step has and of more,
// with weights in all tiers and without some.
func streams(hidden int) (cases []devicetest.Case) {
	knobs := []knob.Params{
		{"resident": 7, "lanes": 4, "near": 1, "far": 1, "ring": 2},
		{"resident": 7, "lanes": 8, "ring": 3, "near": 1, "far": 1},
		{"resident": 7, "lanes": 4, "stage": 2, "ring": 1, "near": 1, "far": 1},
		{"resident": 7, "lanes": 4, "ring": 5, "look": 1, "ahead": 2, "kept": 1},
		{"resident": 7, "lanes": 4, "ring": 2, "parts": 2, "near": 1, "far": 1},
	}
	cells := []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh, cell.RNNReLU, cell.LSTMPeephole}
	for i, batch := range []int{1, 3, 8, 17, 35} {
		for j, c := range cells {
			for n, precision := range []schedule.Precision{schedule.BF16, schedule.FP32, schedule.FP16, schedule.TF32} {
				if (i+j+n)%3 == 0 {
					continue
				}
				k := maps.Clone(knobs[(i+2*j+n)%len(knobs)])
				if k["tensor"] = 1; batch <= 8 { // few sequences have no parts
					delete(k, "parts")
				}
				l := devicetest.Layer{Cell: c, Hidden: hidden, Batch: batch, Steps: []int{5, 1, 2, 6}[(i+j)%4], Train: (i+j+n)%2 == 0, Precision: precision}
				cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
			}
		}
	}
	return cases
}

// backwardStreams are gradients of such layers.
func backwardStreams(hidden int) (cases []devicetest.Case) {
	knobs := []knob.Params{
		{"resident": 7, "cluster": 2, "ring": 2, "stage": 1, "near": 1, "far": 1},
		{"resident": 7, "cluster": 4, "ring": 2, "stage": 2, "near": 1, "far": 1},
		{"resident": 7, "cluster": 2, "ring": 5, "stage": 1, "samples": 8, "near": 2, "far": 2},
	}
	for i, batch := range []int{1, 9, 35} {
		for j, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh, cell.LSTMPeephole} {
			for n, precision := range []schedule.Precision{schedule.BF16, schedule.FP32, schedule.FP16} {
				if (i+j+n)%3 == 0 {
					continue
				}
				k := maps.Clone(knobs[(i+2*j+n)%len(knobs)])
				if c.Recurrent == 1 { // it has few columns
					k["stage"] = 1
				}
				l := devicetest.Layer{Cell: c, Hidden: hidden, Batch: batch, Steps: []int{5, 1, 2, 6}[(i+j)%4], Backward: true, Precision: precision}
				cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
			}
		}
	}
	return cases
}

func TestStreams(t *testing.T) { emulateStreams(t, sample(streams(37), 45)) }

func TestBackwardStreams(t *testing.T) { emulateStreams(t, sample(backwardStreams(70), 24)) }

// emulateStreams runs cases with the least shared memory that suffices, or a little more.
func emulateStreams(t *testing.T, cases []devicetest.Case) {
	compiler, d := emulation(t, 8)
	var gpus []device.Device
	for kib := 3; kib < 160; kib += 1 + kib/4 {
		gpus = append(gpus, cuda.New(tight{d, kib << 10}, compiler, t.TempDir()))
	}
	for i, c := range cases {
		first := slices.IndexFunc(gpus, func(d device.Device) bool { return streamed(t, d, c) })
		if first < 0 {
			t.Errorf("%v %v: no weights are streamed", c.Layer, c.Knobs)
			continue
		}
		// The least memory has no room for weights; with more, some fit.
		devicetest.Layers(t, gpus[min(first+i%2, len(gpus)-1)], []devicetest.Case{c})
	}
}

// streamed reports whether a layer fits with its weights streamed.
func streamed(t *testing.T, d device.Device, c devicetest.Case) bool {
	t.Helper()
	s, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.(device.Explainer).Explain(s, c.Knobs)
	return err == nil && slices.ContainsFunc(e.Kernels, func(k device.Kernel) bool { return strings.HasSuffix(k.Variant, "-stream") })
}

// TestGPUStreams runs them on a GPU, and layers that exceed its chip.
func TestGPUStreams(t *testing.T) {
	d := openGPU(t, time.Minute)
	devicetest.Layers(t, d, sample(slices.Concat(streams(131), backwardStreams(131)), 4))
}
