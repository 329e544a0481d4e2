package cuda_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// groups runs every every-th configuration of cells, at sizes that fill neither the last thread nor
// the last block. Some have so small a share of the GPU that a few groups take turns with the
// sequences.
func groups(t *testing.T, d device.Device, hidden, share, every int) {
	params, tensors, turns, backs := groupSettings(share)
	for _, s := range persistent.Strategies {
		if !slices.ContainsFunc(slices.Concat(params, tensors, turns), func(k knob.Params) bool { return k["resident"] == s.Value }) {
			t.Errorf("no case runs resident=%d (%s)", s.Value, s.Name)
		}
	}
	var cases []devicetest.Case
	mixed, err := equations.Parse("mixed.cell", "mixed", "gate z = sigmoid(W x + R h + b)\ngate n = relu(W x + R h + b)\ngate y = W x + z * (R h) + b\nh' = z * h + (1 - z) * tanh(n + 0.5 * y)\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range append(cell.BuiltIn(), mixed) {
		if c.Recurrent == 0 {
			continue
		}
		for j, k := range params {
			if (i+j)%every != 0 {
				continue
			}
			l := devicetest.Layer{Cell: c, Hidden: hidden, Batch: 3 + 6*(j%2), Steps: 5, Train: j%2 == 0}
			cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
		}
		for j, k := range tensors {
			if (i+j)%every != 0 {
				continue
			}
			l := devicetest.Layer{Cell: c, Hidden: hidden, Batch: 3 + 18*(j%2), Steps: 5, Train: j%2 == 0, Precision: schedule.Precision((i + j) % 4)}
			cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
		}
		for j, k := range turns {
			if (i+j)%every != 0 {
				continue
			}
			l := devicetest.Layer{Cell: c, Hidden: hidden, Batch: 3 + 17*j, Steps: 5, Train: j%2 == 0, Precision: schedule.Precision((i + j) % 4)}
			cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
		}
		for j, k := range backs {
			if (i+j)%every != 0 {
				continue
			}
			l := devicetest.Layer{Cell: c, Hidden: hidden, Batch: 3 + 18*(j%2), Steps: 5, Backward: true, Precision: schedule.Precision((i + j) % 4)}
			cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
		}
	}
	devicetest.Layers(t, d, cases)
}

// groupSettings returns settings of knobs: without tensor cores and with them, with parts that take
// turns, and for gradients.
func groupSettings(share int) (params, tensors, turns, backs []knob.Params) {
	params = []knob.Params{
		{"resident": 1},
		{"resident": 2},
		{"resident": 3},
		{"resident": 1, "cluster": 4, "samples": 1, "tile": 1, "lanes": 8},
		{"resident": 1, "cluster": 2, "samples": 2, "tile": 2, "lanes": 16},
		{"resident": 1, "cluster": 8, "samples": 8, "tile": 1, "lanes": 4},
		{"resident": 1, "cluster": 2, "samples": 4, "tile": 2, "lanes": 8},
		{"resident": 1, "cluster": 1, "samples": 2, "tile": 1, "lanes": 8},
		{"resident": 2, "groups": 2, "samples": 1, "tile": 1, "lanes": 16},
		{"resident": 2, "groups": 4, "samples": 4, "tile": 4, "lanes": 32},
		{"resident": 1, "share": share, "cluster": 2, "samples": 2, "tile": 1, "lanes": 8},
		{"resident": 2, "groups": 2, "samples": 1, "tile": 5, "lanes": 32},
		{"resident": 1, "cluster": 4, "samples": 2, "tile": 3, "lanes": 16},
	}
	tensors = []knob.Params{
		{"tensor": 1, "resident": 1},
		{"tensor": 1, "resident": 1, "cluster": 2, "samples": 3, "lanes": 16},
		{"tensor": 1, "resident": 1, "cluster": 4, "samples": 8, "lanes": 4, "tile": 8},
		{"tensor": 1, "resident": 1, "cluster": 8, "samples": 16, "lanes": 8},
		{"tensor": 1, "resident": 1, "cluster": 1, "samples": 8, "lanes": 4},
		{"tensor": 1, "resident": 1, "cluster": 2, "samples": 24},
		{"tensor": 1, "resident": 2, "groups": 2, "samples": 8, "lanes": 8, "tile": 4},
		{"tensor": 1, "resident": 1, "share": share, "cluster": 2, "samples": 8, "lanes": 8},
		{"tensor": 1, "resident": 2, "groups": 1, "samples": 16, "lanes": 32},
		{"tensor": 1, "resident": 5, "groups": 1, "samples": 16, "lanes": 16},
		{"tensor": 1, "resident": 5, "groups": 2, "samples": 5, "lanes": 8, "tile": 8},
		{"tensor": 1, "resident": 5, "groups": 4, "samples": 8, "lanes": 4},
		{"resident": 6},
		{"resident": 8},
		{"resident": 6, "share": share, "cluster": 2, "samples": 3},
		{"tensor": 1, "resident": 7, "lanes": 8},
		{"tensor": 1, "resident": 9, "samples": 16},
	}
	turns = []knob.Params{ // for one, two and five times as many sequences
		{"tensor": 1, "resident": 4, "groups": 1, "samples": 16, "lanes": 4},
		{"tensor": 1, "resident": 4, "groups": 2, "samples": 8, "lanes": 16, "tile": 8},
		{"tensor": 1, "resident": 4, "groups": 1, "samples": 8, "lanes": 32, "tile": 4},
	}
	backs = []knob.Params{
		{"resident": 1},
		{"resident": 1, "cluster": 2},
		{"resident": 1, "cluster": 1},
		{"resident": 2, "groups": 2},
		{"resident": 2, "groups": 4, "cluster": 1},
		{"resident": 2, "groups": 1, "cluster": 2},
		{"resident": 2, "groups": 2, "cluster": 2, "tensor": 1},
		{"resident": 2, "groups": 2, "cluster": 1, "tensor": 2, "samples": 4},
		{"resident": 1, "cluster": 4, "tensor": 2, "samples": 2},
		{"resident": 1, "cluster": 8, "tensor": 1, "back": 3},
		{"resident": 1, "cluster": 8, "tensor": 2, "back": 5},
		{"resident": 4, "cluster": 4, "samples": 8, "back": 1},
		{"resident": 4, "cluster": 2, "samples": 8, "groups": 1},
		{"resident": 4, "cluster": 2, "samples": 16, "groups": 2, "back": 1},
		{"wideback": 1, "samples": 16},
	}
	return params, tensors, turns, backs
}

// rows are layers whose warps multiply whole rows, with one sequence per cluster and as many as
// fit, over more and fewer steps than inputs are read ahead. Some have so small a share of the GPU
// that one cluster takes turns.
func rows(t *testing.T, d device.Device, every, share, cluster int, hiddens ...int) {
	var cases []devicetest.Case
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.LSTMPeephole} {
		for j, k := range []knob.Params{
			{"resident": 6},
			{"resident": 6, "cluster": 4, "samples": 3},
			{"resident": 6, "cluster": 2, "samples": 4},
			{"resident": 6, "cluster": 1, "samples": 2},
			{"resident": 6, "cluster": 16, "samples": 1},
			{"resident": 6, "cluster": cluster, "samples": 2, "share": share},
			{"resident": 6, "cluster": 8, "samples": 7},
		} {
			for n, precision := range []schedule.Precision{schedule.FP32, schedule.BF16, schedule.FP16} {
				if precision == schedule.FP32 && k["samples"] > 4 || n > 0 && (i+j+n)%2 > 0 {
					continue
				}
				l := devicetest.Layer{Cell: c, Hidden: hiddens[(i+j+n)%len(hiddens)], Batch: 3 + 6*(j%3), Steps: 1 + (i+j+n)%5, Train: (i+j)%2 == 0, Precision: precision}
				cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
			}
		}
	}
	devicetest.Layers(t, d, sample(cases, every))
}

func TestRows(t *testing.T) {
	d, _ := emulated(t)
	rows(t, d, 7, 4, 2, 37, 20, 64)
}

// TestGPURows runs them on a GPU, also at sizes at which they are the default.
func TestGPURows(t *testing.T) { rows(t, openGPU(t, time.Minute), 1, 8, 8, 37, 131, 256) }

func TestGroups(t *testing.T) {
	every := 11
	if testing.Short() {
		every = 23
	}
	d, _ := emulated(t)
	groups(t, d, 37, 4, every)
}

// TestGPUGroups runs them on a GPU, one after the other, on the memory that earlier ones left.
func TestGPUGroups(t *testing.T) {
	every := 2
	if testing.Short() {
		every = 3
	}
	groups(t, openGPU(t, time.Minute), 131, 32, every)
}

// TestFunctions: errors of coarse functions do not add up over many steps, in bf16, where they are
// the default, and in fp16, where a knob asks for them.
func TestFunctions(t *testing.T) {
	d, _ := emulated(t)
	steps := 300
	if testing.Short() {
		steps = 100
	}
	for _, c := range []*cell.Cell{cell.LSTM, cell.GRU} {
		l := devicetest.Layer{Cell: c, Hidden: 16, Batch: 2, Steps: steps, Precision: schedule.BF16}
		half, back := l, l
		half.Precision, half.Train, back.Backward = schedule.FP16, true, true
		devicetest.Layers(t, d, []devicetest.Case{{Layer: l}, {Layer: half, Knobs: knob.Params{"functions": 2}}, {Layer: back}, {Layer: l, Knobs: knob.Params{"functions": 1}}})
	}
}

// TestBeforeHopper: no clusters are used, whatever knobs ask for.
func TestBeforeHopper(t *testing.T) {
	p := driver.Properties{Capability: 80, SMs: 108, Shared: 163 << 10}
	for _, k := range []knob.Params{{"resident": 1}, {"resident": 1, "cluster": 1}} {
		if all, _ := cuda.Groupings(cell.LSTM, 64, 8, driver.Single, k, p); len(all) > 0 {
			t.Errorf("%v: %v", k, all)
		}
	}
	all, _ := cuda.Groupings(cell.LSTM, 256, 8, driver.Single, nil, p)
	if len(all) == 0 || all[0]["resident"] != 2 {
		t.Errorf("no groups over the GPU: %v", all)
	}
}

// TestTooLarge: values that fp16 halves cannot hold are reported, not multiplied.
func TestTooLarge(t *testing.T) {
	d, _ := emulated(t)
	s, err := devicetest.Layer{Cell: cell.RNNReLU, Hidden: 20, Batch: 2, Steps: 2}.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	for tensor, want := range map[int]string{1: "beyond 65504", 2: ""} {
		p, err := d.Compile(s, knob.Params{"tensor": tensor})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range s.Matrices {
			if m.Name == "weights" {
				err = p.Write(m, slices.Repeat([]float32{1e5}, m.Elements()))
			}
		}
		if err == nil {
			err = p.Prepare()
		}
		if err == nil {
			_, err = p.Run(1)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("tensor=%d: %v", tensor, err)
		}
		p.Close()
	}
}

// TestLargeStates: the first states may exceed ±1 even if later ones do not, and so are exchanged
// in fewer bits or split in fewer operations.
func TestLargeStates(t *testing.T) {
	d, _ := emulated(t)
	for _, c := range sample([]*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh}, 3) {
		t.Run(c.String(), func(t *testing.T) { large(t, d, c, schedule.BF16, 5, 0.02) })
		t.Run(c.String()+" streams", func(t *testing.T) { large(t, d, c, schedule.FP32, 7, 1e-5) })
		if c.Recurrent > 1 {
			t.Run(c.String()+" rows", func(t *testing.T) { large(t, d, c, schedule.FP32, 6, 1e-5) })
		}
	}
}

// large holds a configuration to that of resident=1.
func large(t *testing.T, d device.Device, c *cell.Cell, precision schedule.Precision, resident int, tolerance float64) {
	layer := devicetest.Layer{Cell: c, Hidden: 20, Batch: 3, Steps: 3, Precision: precision}
	s, err := layer.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	var want []float32
	for _, k := range []knob.Params{{"tensor": 1, "resident": 1}, {"tensor": 1, "resident": resident}} {
		p, err := d.Compile(s, k)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for _, first := range []float32{0.5, 6.1} { // the program runs with each of them in turn
			m := s.Nodes[len(s.Nodes)-1].Op.(schedule.Persistent).State[c.Through].M
			for _, x := range s.Matrices {
				v := slices.Repeat([]float32{first}, x.Elements())
				for i := range v {
					if x != m {
						v[i] = 0.1 * float32(i%7-3)
					}
				}
				if err := p.Write(x, v); err != nil && !x.Private() {
					t.Fatal(err)
				}
			}
			if err := p.Prepare(); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Run(2); err != nil {
				t.Fatal(err)
			}
			h := make([]float32, m.Elements())
			if err := p.Read(m, h); err != nil {
				t.Fatal(err)
			}
			if k["resident"] == 1 {
				want = append(want, h...)
				continue
			}
			for i, v := range h {
				if !(math.Abs(float64(v-want[i])) <= tolerance) { // sums are added in another order
					t.Fatalf("from %v: %v, not %v", first, h, want[:len(h)])
				}
			}
			want = want[len(h):]
		}
	}
}
