package impl_test

import (
	"fmt"
	"slices"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// BenchmarkShapes times techniques at the shapes that docs/notebook/cpu-products.md
// compares with oneDNN. Weights are packed ahead, as oneDNN's are.
func BenchmarkShapes(b *testing.B) {
	d, err := cpu.Open(cpu.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for _, shape := range [][4]int{{512, 64, 100, 4}, {1152, 64, 50, 1}, {512, 16, 100, 1}, {512, 1, 256, 1}} {
		for _, c := range []*cell.Cell{cell.RNNTanh, cell.GRU, cell.LSTM} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				p := rnn.Problem{Cell: c, Pass: pass, Input: shape[0], Hidden: shape[0], Batch: shape[1], Steps: shape[2], Layers: shape[3]}
				b.Run(fmt.Sprintf("cell=%v/pass=%v/shape=%v", c, pass, shape), func(b *testing.B) {
					run(b, d, p, "cudnnstyle", knob.Params{"transposed": 2, "inputbatch": min(4, p.Steps), "overlap": 0, "streams": 1})
				})
			}
		}
	}
}

// BenchmarkPersistent compares the persistent technique with the cuDNN-style one at small batches,
// where the recurrent weights decide.
func BenchmarkPersistent(b *testing.B) {
	d, err := cpu.Open(cpu.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for _, shape := range [][4]int{{512, 1, 256, 1}, {256, 1, 1024, 2}, {1024, 1, 256, 1}, {1152, 4, 100, 1}} {
		for _, c := range []*cell.Cell{cell.RNNTanh, cell.GRU, cell.LSTM} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				p := rnn.Problem{Cell: c, Pass: pass, Input: shape[0], Hidden: shape[0], Batch: shape[1], Steps: shape[2], Layers: shape[3]}
				name := fmt.Sprintf("cell=%v/pass=%v/shape=%v", c, pass, shape)
				for _, precision := range []rnn.Precision{rnn.FP32, rnn.FP16, rnn.BF16} {
					p := p
					p.Precision = precision
					b.Run(fmt.Sprintf("%s/impl=persistent-%v", name, precision), func(b *testing.B) {
						run(b, d, p, "persistent", knob.Params{"transposed": 2})
					})
				}
				b.Run(name+"/impl=cudnnstyle", func(b *testing.B) {
					run(b, d, p, "cudnnstyle", knob.Params{"transposed": 2, "inputbatch": 0, "overlap": 0, "streams": 1})
				})
			}
		}
	}
}

func run(b *testing.B, d *cpu.Device, p rnn.Problem, tech string, k knob.Params) {
	plan, s, err := rnn.Layout(impl.Lookup(tech), p, k)
	if err != nil {
		b.Fatal(err)
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer prog.Close()
	if err := plan.Write(prog, rnn.NewData(p, 1, 1, "normal")); err != nil {
		b.Fatal(err)
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
		seconds = append(seconds, sample.Wall.Seconds())
	}
	slices.Sort(seconds)
	median := seconds[len(seconds)/2]
	b.ReportMetric(float64(p.FLOPs())/median/1e9, "GFLOP/s")
	b.ReportMetric(median*1e3, "median-ms")
	b.ReportMetric(seconds[0]*1e3, "best-ms")
}
