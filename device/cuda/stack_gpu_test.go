package cuda_test

import (
	"fmt"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestGPUStacks runs stacked layers on a GPU.
func TestGPUStacks(t *testing.T) {
	devicetest.Layers(t, openGPU(t, 20*time.Second), devicetest.Stacks("stack"))
}

// BenchmarkGPUStacks times stacked layers as one kernel, in both forms, and one after the other,
// with their input products except the first layer's.
func BenchmarkGPUStacks(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh} {
		for _, size := range [][2]int{{512, 4}, {256, 4}, {512, 2}, {128, 8}, {1024, 2}} {
			for _, batch := range []int{1, 8, 32, 64, 128, 256} {
				for _, precision := range []schedule.Precision{schedule.BF16, schedule.FP32} {
					l := devicetest.Layer{Cell: c, Hidden: size[0], Layers: size[1], Batch: batch, Steps: 100, Precision: precision}
					for _, k := range []knob.Params{{"stack": 2, "graph": 1}, {"stack": 1, "graph": 1}, {"stack": 3, "graph": 1}} {
						if k["stack"] == 3 && (c == cell.RNNTanh || precision == schedule.FP32 || size[0] > 512) {
							continue
						}
						b.Run(fmt.Sprint(l, "/", k), func(b *testing.B) { stack(b, d, l, k) })
					}
				}
			}
		}
	}
}

// stackPhases are the names of phases for each clock, six per clock, in both forms. Clocks are in
// warps that multiply and warps that run cells; or in warps for the h beneath, for the layer's own
// h and cells, for copies of either, and for counts of what was put.
var stackPhases = map[int][]string{
	1: {"wait", "product", "come", "again", "leave", "", "cell-wait", "", "cell-sum", "cell", "", "cell-rest"},
	3: {"lower-wait", "lower-product", "", "", "lower-place", "leave", "wait", "product", "come", "cell", "", "rest",
		"lower-free", "lower-come", "", "", "", "", "own-free", "own-come", "", "", "", "", "put", "", "", "", "count", ""},
}

// BenchmarkGPUStackPhases reports the phases of a step for each layer.
func BenchmarkGPUStackPhases(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, batch := range []int{1, 16, 64} {
		for _, form := range []int{1, 3} {
			l := devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Layers: 4, Batch: batch, Steps: 100, Precision: schedule.BF16}
			k := knob.Params{"stack": form, "clocks": 1}
			b.Run(fmt.Sprint(l, "/", k), func(b *testing.B) { stack(b, d, l, k) })
		}
	}
}

func stack(b *testing.B, d device.Device, l devicetest.Layer, k knob.Params) {
	s, err := l.Schedule(1)
	if err != nil {
		b.Fatal(err)
	}
	p, err := d.Compile(s, k)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	t, err := p.Run(3)
	if err == nil {
		t, err = p.Run(b.N)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(t.Device.Seconds()*1e6/float64(b.N*l.Steps), "µs/step")
	if k["clocks"] == 0 {
		return
	}
	layer := 0
	for _, n := range s.Nodes {
		op, ok := n.Op.(schedule.Persistent)
		if !ok {
			continue
		}
		v := op.State[op.Cell.Through]
		h := make([]float32, v.M.Elements())
		if err := p.Read(v.M, h); err != nil {
			b.Fatal(err)
		}
		cycles := h[(v.Row+l.Batch)*v.M.Cols+v.Col:]
		for i, phase := range stackPhases[k["stack"]] {
			if phase != "" {
				b.ReportMetric(float64(cycles[i]), fmt.Sprint(layer, phase))
			}
		}
		layer++
	}
}
