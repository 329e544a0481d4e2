package cuda_test

import (
	"fmt"
	"testing"
	"time"

	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// BenchmarkGPUStreams times layers whose weights exceed the chip, as they are chosen and in
// other forms.
func BenchmarkGPUStreams(b *testing.B) {
	d := openGPU(b, time.Minute)
	layer := func(c *cell.Cell, hidden, batch int, p schedule.Precision) devicetest.Layer {
		return devicetest.Layer{Cell: c, Hidden: hidden, Batch: batch, Steps: 200, Precision: p}
	}
	short := func(l devicetest.Layer) devicetest.Layer { l.Steps = 20; return l }
	back := func(l devicetest.Layer) devicetest.Layer { l.Backward = true; return l }
	const all = 99
	for _, l := range []struct {
		layer devicetest.Layer
		forms []knob.Params
	}{
		{layer(cell.LSTM, 2304, 8, schedule.BF16), []knob.Params{{}, {"near": 6}, {"ring": 3}, {"stage": 2, "ring": 1}, {"look": 1, "ahead": 4}, {"look": 3, "ahead": 2}, {"look": 4, "ahead": 2}}},
		{short(layer(cell.LSTM, 2304, 8, schedule.BF16)), []knob.Params{{}}},
		{layer(cell.LSTM, 2304, 1, schedule.BF16), []knob.Params{{}, {"look": 4, "ahead": 2}}},
		{layer(cell.LSTM, 3072, 8, schedule.BF16), []knob.Params{{}, {"ring": 2}, {"ring": 4}, {"stage": 2, "ring": 2}, {"near": 5, "ring": 3}, {"look": 4, "ahead": 2}}},
		{layer(cell.GRU, 2304, 8, schedule.BF16), []knob.Params{{}, {"near": 9}, {"look": 4, "ahead": 2}}},
		{layer(cell.GRU, 2816, 8, schedule.BF16), []knob.Params{{}, {"ring": 2}, {"ring": 4}}},
		{layer(cell.GRU, 3072, 8, schedule.BF16), []knob.Params{{}}},
		{layer(cell.LSTM, 2304, 32, schedule.BF16), []knob.Params{{}, {"ahead": 3}, {"ring": 4}, {"stage": 2, "ring": 2}}},
		{layer(cell.LSTM, 3072, 32, schedule.BF16), []knob.Params{{}, {"samples": 32}, {"samples": 32, "kept": all}, {"samples": 32, "ring": 4}}},
		{layer(cell.GRU, 2816, 32, schedule.BF16), []knob.Params{{}}},
		{short(layer(cell.GRU, 2816, 32, schedule.BF16)), []knob.Params{{}}},
		{layer(cell.LSTM, 2048, 8, schedule.FP32), []knob.Params{{}, {"ring": 2}, {"ring": 4}}},
		{layer(cell.LSTM, 2304, 8, schedule.FP32), []knob.Params{{}, {"kept": all}, {"ring": 2}, {"ring": 2, "kept": all}}},
		{back(layer(cell.LSTM, 2304, 8, schedule.BF16)), []knob.Params{{}}},
		{back(layer(cell.LSTM, 3072, 8, schedule.BF16)), []knob.Params{{}, {"kept": all}, {"ring": 2}}},
	} {
		for _, k := range l.forms {
			b.Run(fmt.Sprint(l.layer, " ", k), func(b *testing.B) {
				s, err := l.layer.Schedule(1)
				if err != nil {
					b.Fatal(err)
				}
				k["resident"], k["tensor"] = 7, 1
				p, err := d.Compile(s, k)
				if err != nil {
					b.Fatal(err)
				}
				defer p.Close()
				if err := p.Prepare(); err != nil {
					b.Fatal(err)
				}
				t, err := p.Run(b.N)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(t.Device.Seconds()*1e6/float64(b.N*l.layer.Steps), "µs/step")
			})
		}
	}
}
