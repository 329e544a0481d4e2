package cuda_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// wideBacks are gradients whose warpgroups multiply many sequences at once: in one turn and in
// several, with unused places for sequences, in clusters of several sizes, in every division that
// is listed.
func wideBacks(hidden int) (cases []devicetest.Case) {
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh, cell.RNNReLU, cell.LSTMPeephole} {
		for j, batch := range []int{33, 63, 65, 200} {
			for n, precision := range []schedule.Precision{schedule.BF16, schedule.FP16} {
				k := knob.Params{"wideback": 1, "back": (2*i + 3*j + n) % 5}
				if s := []int{0, 32, 16, 64}[(i+j+n)%4]; s > 0 {
					k["samples"] = s
				}
				if s := []int{0, 2, 4, 8}[(i+2*j+n)%4]; s > 0 {
					k["cluster"], k["back"] = s, k["back"]%2
				}
				if (i+j)%2 == 0 { // weights of other products come from memory
					k["near"], k["far"] = 1+i%2, 1+j%2
				}
				l := devicetest.Layer{Cell: c, Hidden: hidden, Batch: batch, Steps: []int{4, 1, 3}[(i+j)%3], Backward: true, Precision: precision}
				cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
			}
		}
	}
	return cases
}

func TestWideBacks(t *testing.T) {
	for i, gpu := range []struct{ hidden, sms int }{{72, 8}, {100, 16}, {333, 24}, {640, 40}} {
		if testing.Short() && i > 0 {
			break
		}
		compiler, driver := emulation(t, gpu.sms)
		d := cuda.New(driver, compiler, t.TempDir())
		t.Cleanup(func() { d.Close() })
		every := 9 + 4*i
		if testing.Short() {
			every = 18
		}
		var cases []devicetest.Case
		for j, c := range wideBacks(gpu.hidden) {
			if j%every == i {
				cases = append(cases, c)
			}
		}
		devicetest.Layers(t, d, cases)
	}
}

// TestGPUWideBacks runs them on a GPU, at sizes that fill neither the last block nor the last
// product.
func TestGPUWideBacks(t *testing.T) {
	d := openGPU(t, time.Minute)
	for i, hidden := range []int{72, 333, 640} {
		devicetest.Layers(t, d, sample(wideBacks(hidden)[i:], 9))
	}
}

// TestGPUWideBackWeights runs layers whose weights come from memory in each turn, all or some.
// NVRTC dropped a division where these two find their weights.
func TestGPUWideBackWeights(t *testing.T) {
	d := openGPU(t, time.Minute)
	all := wideBacks(72)
	for _, i := range []int{1, 32} {
		devicetest.Layers(t, d, all[i:i+1])
	}
}

// TestSpillsWideBacks: gradients by warpgroups do not spill registers, whether their weights fit
// the chip or exceed it.
func TestSpillsWideBacks(t *testing.T) {
	c := hopper(t)
	for i, l := range []devicetest.Layer{
		{Cell: cell.LSTM, Hidden: 2304, Batch: 32, Precision: schedule.BF16},
		{Cell: cell.LSTM, Hidden: 1696, Batch: 96, Precision: schedule.BF16},
		{Cell: cell.LSTM, Hidden: 3072, Batch: 64, Precision: schedule.FP16},
		{Cell: cell.RNNTanh, Hidden: 3072, Batch: 200, Precision: schedule.BF16},
		{Cell: cell.GRU, Hidden: 2816, Batch: 32, Precision: schedule.FP16},
		{Cell: cell.LSTM, Hidden: 1184, Batch: 393, Precision: schedule.BF16},
		{Cell: cell.LSTMPeephole, Hidden: 2048, Batch: 64, Precision: schedule.BF16},
		{Cell: cell.GRU, Hidden: 2304, Batch: 96, Precision: schedule.BF16},
		{Cell: cell.LSTM, Hidden: 3072, Batch: 32, Precision: schedule.BF16},
		{Cell: cell.RNNReLU, Hidden: 3008, Batch: 43, Precision: schedule.BF16},
	} {
		if testing.Short() && i%4 != 0 {
			continue
		}
		l.Steps, l.Backward = 16, true
		t.Run(l.String(), func(t *testing.T) {
			s, err := l.Schedule(1)
			if err != nil {
				t.Fatal(err)
			}
			launches, texts, err := cuda.Sources(s, knob.Params{"wideback": 1}, h200())
			if err != nil {
				t.Fatal(err)
			}
			last := slices.IndexFunc(launches, func(l *driver.Launch) bool { return strings.Contains(l.Name, "_backward_wide_") })
			if last < 0 {
				t.Fatal("it runs by another kernel")
			}
			t.Logf("%d registers; %s", recorded(t, c, registerRecord, launches[last], texts[last]), strings.SplitN(texts[last][strings.Index(texts[last], "struct Config"):], "\n", 2)[0])
			if n := recorded(t, c, stackRecord, launches[last], texts[last]); n > 0 {
				t.Errorf("%d bytes of stack", n)
			}
		})
	}
}

// BenchmarkGPUWideBacks times gradients by the default kernels and in the first three divisions of
// backward-wide.
func BenchmarkGPUWideBacks(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, l := range []struct {
		cell                    *cell.Cell
		hidden, batch, resident int
	}{
		{cell.LSTM, 2304, 16, 7}, {cell.LSTM, 2304, 32, 7}, {cell.LSTM, 2304, 64, 7}, {cell.LSTM, 2304, 128, 7}, {cell.LSTM, 2304, 200, 7},
		{cell.LSTM, 3072, 32, 7}, {cell.LSTM, 3072, 64, 7}, {cell.GRU, 2304, 32, 7}, {cell.GRU, 3072, 32, 7}, {cell.GRU, 3072, 96, 7}, {cell.LSTM, 1696, 96, 4}, {cell.LSTM, 1184, 393, 4}, {cell.RNNTanh, 2304, 200, 4}, {cell.RNNReLU, 3008, 43, 4},
	} {
		layer := devicetest.Layer{Cell: l.cell, Hidden: l.hidden, Batch: l.batch, Steps: 60, Backward: true, Precision: schedule.BF16}
		s, err := layer.Schedule(1)
		if err != nil {
			b.Fatal(err)
		}
		for _, k := range []knob.Params{{"resident": l.resident}, {"wideback": 1}, {"wideback": 1, "back": 1}, {"wideback": 1, "back": 2}} {
			b.Run(fmt.Sprintf("%v/%v", layer, k), func(b *testing.B) {
				p, err := d.Compile(s, k)
				if err != nil {
					b.Skip(err)
				}
				defer p.Close()
				if err := p.Prepare(); err != nil {
					b.Fatal(err)
				}
				t, err := p.Run(b.N)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(t.Device.Seconds()*1e6/float64(b.N*layer.Steps), "µs/step")
			})
		}
	}
}
