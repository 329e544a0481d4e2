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

// BenchmarkGPUPhases measures the phases of a step by clocks in the kernel, in the first warps of
// the first and the last block. A clock itself costs a few cycles.
func BenchmarkGPUPhases(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, l := range []struct {
		cell          *cell.Cell
		hidden, batch int
	}{
		{cell.LSTM, 512, 8}, {cell.LSTM, 512, 64}, {cell.GRU, 512, 64}, {cell.LSTM, 1024, 4}, {cell.LSTM, 1024, 64},
		{cell.GRU, 1024, 8}, {cell.LSTM, 1536, 16}, {cell.LSTM, 1536, 64}, {cell.RNNTanh, 1760, 16}, {cell.RNNTanh, 1760, 64},
		{cell.LSTM, 2304, 8}, {cell.LSTM, 2304, 32}, {cell.LSTM, 3072, 8}, {cell.LSTM, 3072, 32}, {cell.GRU, 2816, 8}, {cell.GRU, 2816, 32},
	} {
		layer := devicetest.Layer{Cell: l.cell, Hidden: l.hidden, Batch: l.batch, Steps: 256, Precision: schedule.BF16}
		b.Run(fmt.Sprint(layer), func(b *testing.B) {
			s, err := layer.Schedule(1)
			if err != nil {
				b.Fatal(err)
			}
			p, err := d.Compile(s, knob.Params{"tensor": 1, "clocks": 1})
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
			b.ReportMetric(t.Device.Seconds()*1e6/float64(b.N*layer.Steps), "µs/step")
			for _, n := range s.Nodes {
				op, ok := n.Op.(schedule.Persistent)
				if !ok {
					continue
				}
				m := op.State[op.Cell.Through].M
				h := make([]float32, m.Elements())
				if err := p.Read(m, h); err != nil {
					b.Fatal(err)
				}
				cycles := h[l.batch*m.Cols:]
				for i, phase := range []string{"wait", "product", "sum", "cell", "send", "rest"} {
					b.ReportMetric(float64(cycles[i]), phase)
					b.ReportMetric(float64(cycles[6+i]), phase+"-last")
				}
			}
		})
	}
}
