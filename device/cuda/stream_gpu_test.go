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

// BenchmarkGPUStreams times layers whose weights exceed the chip, in the default form and in
// others.
func BenchmarkGPUStreams(b *testing.B) {
	d := openGPU(b, time.Minute)
	layer := func(c *cell.Cell, hidden, batch int, p schedule.Precision) devicetest.Layer {
		return devicetest.Layer{Cell: c, Hidden: hidden, Batch: batch, Steps: 200, Precision: p}
	}
	short := func(l devicetest.Layer) devicetest.Layer { l.Steps = 20; return l }
	back := func(l devicetest.Layer) devicetest.Layer { l.Backward = true; return l }
	for _, l := range []struct {
		layer devicetest.Layer
		forms []knob.Params
	}{
		{layer(cell.LSTM, 2304, 8, schedule.BF16), []knob.Params{{}, {"look": 2, "ahead": 3}, {"ring": 3}}},
		{short(layer(cell.LSTM, 2304, 8, schedule.BF16)), []knob.Params{{}}},
		{layer(cell.LSTM, 2304, 1, schedule.BF16), []knob.Params{{}}},
		{layer(cell.LSTM, 3072, 8, schedule.BF16), []knob.Params{{}, {"look": 3, "ahead": 2}}},
		{layer(cell.GRU, 2304, 8, schedule.BF16), []knob.Params{{}}},
		{layer(cell.GRU, 2816, 8, schedule.BF16), []knob.Params{{}, {"look": 2, "ahead": 3}, {"ring": 2}}},
		{layer(cell.GRU, 3072, 8, schedule.BF16), []knob.Params{{}, {"look": 4, "ahead": 2}, {"ring": 3}}},
		{layer(cell.LSTM, 2304, 32, schedule.BF16), []knob.Params{{}, {"parts": 1}, {"ahead": 3}, {"ring": 2}, {"parts": 4}}},
		{layer(cell.LSTM, 3072, 32, schedule.BF16), []knob.Params{{}, {"parts": 1, "samples": 32}, {"ring": 2}}},
		{layer(cell.GRU, 2816, 32, schedule.BF16), []knob.Params{{}, {"parts": 1}, {"ring": 2}}},
		{short(layer(cell.GRU, 2816, 32, schedule.BF16)), []knob.Params{{}}},
		{layer(cell.LSTM, 2048, 8, schedule.FP32), []knob.Params{{}}},
		{layer(cell.LSTM, 2304, 8, schedule.FP32), []knob.Params{{}, {"ring": 2}, {"ring": 3}}},
		{back(layer(cell.LSTM, 2304, 8, schedule.BF16)), []knob.Params{{}, {"ring": 2}, {"ring": 4}}},
		{back(layer(cell.LSTM, 3072, 8, schedule.BF16)), []knob.Params{{}}},
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
