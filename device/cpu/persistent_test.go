package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// BenchmarkPersistent measures a step of the recurrence alone, without input products and weight
// gradients. GB/s count the weights.
func BenchmarkPersistent(b *testing.B) {
	d, err := cpu.Open(cpu.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for _, size := range []struct {
		cell          *cell.Cell
		hidden, batch int
	}{
		{cell.RNNTanh, 64, 1}, {cell.RNNTanh, 256, 1}, {cell.RNNTanh, 512, 1}, {cell.RNNTanh, 512, 4}, {cell.RNNTanh, 1024, 1}, {cell.RNNTanh, 1152, 4},
		{cell.LSTM, 64, 1}, {cell.LSTM, 256, 1}, {cell.LSTM, 512, 1}, {cell.LSTM, 1152, 4}, {cell.GRU, 256, 1},
	} {
		for _, precision := range []schedule.Precision{schedule.FP32, schedule.FP16, schedule.BF16} {
			for _, backward := range []bool{false, true} {
				direction := map[bool]string{false: "forward", true: "backward"}[backward]
				name := fmt.Sprintf("cell=%v/hidden=%d/batch=%d/%s/%v", size.cell, size.hidden, size.batch, direction, precision)
				b.Run(name, func(b *testing.B) { persistentStep(b, d, size.cell, size.hidden, size.batch, precision, backward) })
			}
		}
	}
}

func persistentStep(b *testing.B, d *cpu.Device, c *cell.Cell, h, batch int, precision schedule.Precision, backward bool) {
	const steps = 100
	build := schedule.NewBuilder(1)
	build.SetPrecision(precision)
	rows, gates := steps*batch, len(c.Gates)
	seq := schedule.Sequence{Cell: c, Train: backward, Steps: steps,
		X: build.Matrix("x", rows, gates*h).All(), BX: build.Matrix("bx", 1, gates*h).All(), BR: build.Matrix("br", 1, c.Recurrent*h).All()}
	for range c.States {
		seq.State = append(seq.State, build.Matrix("state", rows+batch, h).All())
	}
	if backward && c.Saved > 0 {
		seq.Saved = build.Matrix("saved", rows, c.Saved*h).All()
	}
	weights := build.Matrix("R", c.Recurrent*h, h)
	pack := func(v schedule.View, trans bool) schedule.View {
		rows, cols := v.Rows, v.Cols
		if trans {
			rows, cols = cols, rows
		}
		p := build.Packed("packed", rows, cols).All()
		build.Prepare(schedule.Pack{Src: v, Dst: p, Trans: trans})
		return p
	}
	if backward {
		g := schedule.SequenceGrad{DOut: build.Matrix("dout", rows, h).All(), DX: build.Matrix("dx", rows, gates*h).All()}
		if c.SplitGrad {
			g.DR = build.Matrix("dr", rows, c.Recurrent*h).All()
		}
		for range c.States {
			g.Carry = append(g.Carry, build.Matrix("carry", batch, h).All())
		}
		build.Do(0, schedule.PersistentBackward{Sequence: seq, SequenceGrad: g, R: pack(weights.All(), false)})
	} else {
		var r []schedule.View
		for g := range c.Recurrent {
			r = append(r, pack(weights.Band(g*h, h), true))
		}
		build.Do(0, schedule.Persistent{Sequence: seq, R: r})
	}
	s, err := build.Schedule()
	if err != nil {
		b.Fatal(err)
	}
	prog, err := d.Compile(s, knob.Params{})
	if err != nil {
		b.Fatal(err)
	}
	defer prog.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, m := range s.Matrices {
		if !m.Private() {
			src := make([]float32, m.Elements())
			for i := range src {
				src[i] = float32((2*rng.Float64() - 1) / math.Sqrt(float64(h)))
			}
			if err := prog.Write(m, src); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := prog.Prepare(); err != nil {
		b.Fatal(err)
	}
	var seconds []float64
	for b.Loop() {
		sample, err := prog.Run(1)
		if err != nil {
			b.Fatal(err)
		}
		seconds = append(seconds, sample.Wall.Seconds()/steps)
	}
	slices.Sort(seconds)
	median := seconds[len(seconds)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median*1e6, "µs/step")
	b.ReportMetric(seconds[0]*1e6, "µs/step/best")
	b.ReportMetric(4*float64(c.Recurrent*h*h)/median/1e9, "GB/s")
}
