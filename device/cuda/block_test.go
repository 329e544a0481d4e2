package cuda_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/nvrtc"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// gradientBlocks are gradients in single blocks. Units fill tiles or not. Cells have one gate to
// four. There are from one sequence to more than a block runs, and both more and fewer steps than
// inputs are read ahead.
func gradientBlocks(t *testing.T, d device.Device, every int, hiddens ...int) {
	var cases []devicetest.Case
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh, cell.RNNReLU, cell.LSTMPeephole} {
		for j, samples := range []int{8, 2, 4} {
			for n, batch := range []int{1, 7, 9, 75} {
				precision := []schedule.Precision{schedule.BF16, schedule.FP16}[(i+j+n)%2]
				l := devicetest.Layer{Cell: c, Hidden: hiddens[(i+j+n)%len(hiddens)], Batch: batch, Steps: []int{5, 1, 9, 2}[(i+n)%4], Backward: true, Precision: precision}
				cases = append(cases, devicetest.Case{Layer: l, Knobs: knob.Params{"resident": 8, "samples": samples}})
			}
		}
	}
	devicetest.Layers(t, d, sample(cases, every))
}

func TestBackwardBlocks(t *testing.T) {
	d, _ := emulated(t)
	every := 5
	if testing.Short() {
		every = 13
	}
	gradientBlocks(t, d, every, 17, 33, 16, 50)
}

// TestGPUBackwardBlocks runs them on a GPU, also at sizes at which they are the default.
func TestGPUBackwardBlocks(t *testing.T) {
	every := 1
	if testing.Short() {
		every = 4
	}
	gradientBlocks(t, openGPU(t, time.Minute), every, 17, 33, 64, 83, 100, 128)
}

// BenchmarkGPUBlocks times small layers in training, and their gradients, on the first GPU: in
// single blocks of 2, 4 and 8 sequences, and without tensor cores. All are held to double precision
// first.
func BenchmarkGPUBlocks(b *testing.B) {
	d := openGPU(b, time.Minute)
	settings := []knob.Params{{"resident": 8, "samples": 2}, {"resident": 8, "samples": 4}, {"resident": 8, "samples": 8}, {"resident": 1, "tensor": 2}, {"resident": 6}}
	layers := []devicetest.Layer{
		{Cell: cell.LSTM, Hidden: 64, Batch: 75}, {Cell: cell.LSTM, Hidden: 80, Batch: 25}, {Cell: cell.LSTM, Hidden: 128, Batch: 16}, {Cell: cell.LSTM, Hidden: 32, Batch: 600},
		{Cell: cell.RNNTanh, Hidden: 96, Batch: 28}, {Cell: cell.RNNTanh, Hidden: 32, Batch: 12}, {Cell: cell.GRU, Hidden: 120, Batch: 300},
	}
	for _, l := range slices.Clone(layers) {
		l.Backward = true
		layers = append(layers, l)
	}
	lists := make([][]knob.Params, len(layers))
	for i := range layers {
		l := &layers[i]
		l.Train, l.Precision, l.Steps = !l.Backward, schedule.FP16, 3
		s, err := l.Schedule(1)
		if err != nil {
			b.Fatal(err)
		}
		for _, k := range settings {
			if _, _, err := cuda.Sources(s, k, h200()); err == nil { // it fits
				d.Precompile(s, k)
				lists[i] = append(lists[i], k)
			}
		}
	}
	for i, l := range layers {
		l.HoldWith(b, d, lists[i])
		l.Steps = 100
		for _, k := range lists[i] {
			b.Run(fmt.Sprint(l, k), func(b *testing.B) { gradient(b, d, l, k) })
		}
	}
}

// TestBlocksFit: if knobs ask for single blocks, small layers in 16 bits and their gradients run in
// them, also on GPUs without clusters. None spills registers.
func TestBlocksFit(t *testing.T) {
	hopper, older := hopper(t), compilerFor(t, 80)
	for i, l := range []devicetest.Layer{
		{Cell: cell.RNNTanh, Hidden: 32, Batch: 12, Precision: schedule.FP16, Train: true},
		{Cell: cell.RNNTanh, Hidden: 32, Batch: 12, Precision: schedule.FP16, Backward: true},
		{Cell: cell.LSTM, Hidden: 64, Batch: 75, Precision: schedule.FP16, Train: true},
		{Cell: cell.LSTM, Hidden: 128, Batch: 16, Precision: schedule.BF16, Backward: true},
		{Cell: cell.LSTM, Hidden: 96, Batch: 900, Precision: schedule.BF16, Train: true},
		{Cell: cell.LSTM, Hidden: 80, Batch: 900, Precision: schedule.FP16, Backward: true},
		{Cell: cell.GRU, Hidden: 96, Batch: 300, Precision: schedule.FP16, Train: true},
		{Cell: cell.GRU, Hidden: 128, Batch: 300, Precision: schedule.FP16, Backward: true},
		{Cell: cell.LSTMPeephole, Hidden: 90, Batch: 600, Precision: schedule.FP16, Train: true},
		{Cell: cell.LSTMPeephole, Hidden: 100, Batch: 600, Precision: schedule.FP16, Backward: true},
	} {
		if testing.Short() && i > 2 {
			continue
		}
		l.Steps = 64
		t.Run(fmt.Sprint(l), func(t *testing.T) {
			s, err := l.Schedule(1)
			if err != nil {
				t.Fatal(err)
			}
			launches, texts, err := cuda.Sources(s, knob.Params{"resident": 8}, h200())
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(launches, func(l *driver.Launch) bool { return strings.HasPrefix(l.Name, "persistent_") })
			if name := launches[i].Name; !strings.HasPrefix(name, "persistent_block") && !strings.HasPrefix(name, "persistent_backward_block") {
				t.Errorf("it runs as %s", name)
			}
			for _, c := range []*nvrtc.Compiler{hopper, older} {
				if n := recorded(t, c, stackRecord, launches[i], texts[i]); n > 0 {
					t.Errorf("%d bytes of stack", n)
				}
			}
		})
	}
}

// blocks are layers in single blocks. Units fill a warp or not. Cells have one gate to four. There
// are from one sequence to more than a block runs, and both more and fewer steps than inputs are
// read ahead.
func blocks(t *testing.T, d device.Device, every int, hiddens ...int) {
	var cases []devicetest.Case
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh, cell.RNNReLU, cell.LSTMPeephole} {
		for j, samples := range []int{8, 4} {
			for n, batch := range []int{7, 1, 9, 75} {
				precision := []schedule.Precision{schedule.BF16, schedule.FP16}[(i+j+n)%2]
				l := devicetest.Layer{Cell: c, Hidden: hiddens[(i+j+n)%len(hiddens)], Batch: batch, Steps: []int{5, 1, 9, 2}[(i+n)%4], Train: (i+n)%2 == 0, Precision: precision}
				cases = append(cases, devicetest.Case{Layer: l, Knobs: knob.Params{"resident": 8, "samples": samples}})
			}
		}
	}
	devicetest.Layers(t, d, sample(cases, every))
}

func TestBlocks(t *testing.T) {
	d, _ := emulated(t)
	every := 5
	if testing.Short() {
		every = 11
	}
	blocks(t, d, every, 17, 33, 16, 50)
}

// TestGPUBlocks runs them on a GPU, also at sizes at which they are the default.
func TestGPUBlocks(t *testing.T) {
	every := 1
	if testing.Short() {
		every = 4
	}
	blocks(t, openGPU(t, time.Minute), every, 17, 33, 64, 83, 40, 100)
}

// TestBlocksBeforeHopper: single blocks are launched without clusters, which older GPUs lack.
func TestBlocksBeforeHopper(t *testing.T) {
	old := driver.Properties{Capability: 80, SMs: 108, Shared: 163 << 10, L2: 40 << 20}
	for _, l := range []devicetest.Layer{{Train: true}, {Backward: true}} {
		l.Cell, l.Hidden, l.Batch, l.Steps, l.Precision = cell.LSTM, 64, 75, 9, schedule.BF16
		s, err := l.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		launches, _, err := cuda.Sources(s, knob.Params{"resident": 8}, old)
		if err != nil {
			t.Fatal(err)
		}
		for _, launch := range launches {
			if launch.Cluster > 0 || launch.Cooperative {
				t.Errorf("%s is launched with a cluster of %d blocks, cooperative: %v", launch.Name, launch.Cluster, launch.Cooperative)
			}
		}
	}
}
