package cuda_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

func TestStacks(t *testing.T) {
	compiler, driver := emulation(t, 20)
	d := cuda.New(driver, compiler, t.TempDir())
	defer d.Close()
	cases := devicetest.Stacks("stack")
	if testing.Short() {
		cases = cases[11:12] // the fastest one
	}
	devicetest.Layers(t, d, sample(cases, 2))
}

// TestStackChoice checks which layers run as one kernel.
func TestStackChoice(t *testing.T) {
	wide := devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 64, Steps: 100, Layers: 4, Precision: schedule.BF16}
	with := func(change func(l *devicetest.Layer)) devicetest.Layer {
		l := wide
		change(&l)
		return l
	}
	for _, test := range []struct {
		layer devicetest.Layer
		knobs knob.Params
		want  []int // blocks of each stack
	}{
		{wide, knob.Params{"stack": 1}, []int{128}},
		{wide, knob.Params{"stack": 2}, nil},
		{wide, nil, []int{128}},
		{wide, knob.Params{"resident": 1}, nil},
		{with(func(l *devicetest.Layer) { l.Train = true }), nil, nil},
		{with(func(l *devicetest.Layer) { l.Batch = 256 }), nil, []int{128}},
		{with(func(l *devicetest.Layer) { l.Batch = 257 }), nil, nil},
		{with(func(l *devicetest.Layer) { l.Precision = schedule.FP32 }), nil, nil},
		{with(func(l *devicetest.Layer) { l.Layers = 6 }), knob.Params{"stack": 1}, []int{96, 96}},
		{with(func(l *devicetest.Layer) { l.Layers = 2 }), knob.Params{"stack": 1}, []int{128}}, // two groups
		{with(func(l *devicetest.Layer) { l.Layers = 1 }), nil, nil},
		{with(func(l *devicetest.Layer) { l.Hidden = 1536 }), nil, nil},
		{with(func(l *devicetest.Layer) { l.Steps = 1 }), nil, nil},
	} {
		s, err := test.layer.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		launches, _, err := cuda.Sources(s, test.knobs, h200())
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, l := range launches {
			if strings.HasPrefix(l.Name, "stack") {
				got = append(got, l.Grid[0])
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v %v: stacks of %v blocks, want %v", test.layer, test.knobs, got, test.want)
		}
	}
}

// TestStackForms checks which stacks have their h copied whole, by clusters of two.
func TestStackForms(t *testing.T) {
	for _, test := range []struct {
		cell      *cell.Cell
		batch     int
		precision schedule.Precision
		form      int
		cluster   int
	}{
		{cell.LSTM, 64, schedule.BF16, 0, 2},
		{cell.GRU, 64, schedule.FP16, 0, 2},
		{cell.LSTM, 32, schedule.BF16, 0, 2},
		{cell.LSTM, 31, schedule.BF16, 0, 0},
		{cell.GRU, 32, schedule.BF16, 0, 0},
		{cell.LSTM, 64, schedule.BF16, 1, 0},
		{cell.LSTM, 16, schedule.BF16, 0, 0},
		{cell.LSTM, 16, schedule.BF16, 3, 2},
		{cell.RNNTanh, 32, schedule.BF16, 0, 0},
		{cell.LSTM, 8, schedule.FP32, 0, 0},
	} {
		l := devicetest.Layer{Cell: test.cell, Hidden: 512, Batch: test.batch, Steps: 100, Layers: 4, Precision: test.precision}
		s, err := l.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		launches, _, err := cuda.Sources(s, knob.Params{"stack": test.form}, h200())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(launches, func(l *driver.Launch) bool { return strings.HasPrefix(l.Name, "stack") })
		if i < 0 || launches[i].Cluster != test.cluster {
			t.Errorf("%v stack=%d: launch %d of %d, not in clusters of %d", l, test.form, i, len(launches), test.cluster)
		}
	}
}

// TestStackDeclined: layers that a knob asks to run as one kernel and that cannot are declined, not
// run otherwise.
func TestStackDeclined(t *testing.T) {
	for _, test := range []struct {
		layer   devicetest.Layer
		form    int
		samples int
	}{
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 64, Steps: 100, Precision: schedule.BF16}, 1, 0},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 1536, Batch: 64, Steps: 100, Layers: 4, Precision: schedule.BF16}, 1, 0},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 64, Steps: 1, Layers: 4, Precision: schedule.BF16}, 1, 0},
		{devicetest.Layer{Cell: cell.RNNReLU, Hidden: 64, Batch: 4, Steps: 9, Layers: 2}, 1, 0},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 1024, Batch: 64, Steps: 100, Layers: 2, Precision: schedule.BF16}, 3, 0},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 64, Steps: 100, Layers: 4}, 3, 0},
		{devicetest.Layer{Cell: cell.RNNTanh, Hidden: 512, Batch: 64, Steps: 100, Layers: 4, Precision: schedule.BF16}, 3, 0},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 64, Steps: 100, Layers: 4, Precision: schedule.BF16}, 3, 8},
	} {
		s, err := test.layer.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := cuda.Sources(s, knob.Params{"stack": test.form, "samples": test.samples}, h200()); !errors.Is(err, schedule.ErrUnsupported) {
			t.Errorf("%v stack=%d:samples=%d: %v", test.layer, test.form, test.samples, err)
		}
	}
}

// TestLargeStacks: the first states may exceed ±1, however states within ±1 are exchanged.
func TestLargeStacks(t *testing.T) {
	d, _ := emulated(t)
	for _, c := range sample([]*cell.Cell{cell.LSTM, cell.GRU}, 2) {
		layer := devicetest.Layer{Cell: c, Hidden: 20, Batch: 3, Steps: 3, Layers: 2, Precision: schedule.BF16}
		s, err := layer.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		var all [3][]float32
		for i, k := range []knob.Params{{"stack": 2, "tensor": 1, "resident": 1}, {"stack": 1}, {"stack": 3}} {
			p, err := d.Compile(s, k)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for _, m := range s.Matrices {
				v := make([]float32, m.Elements())
				for i := range v {
					v[i] = float32(i*37%64-32) / 256
				}
				if !m.Private() {
					err = errors.Join(err, p.Write(m, v))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, first := range []float32{0.5, 6, 0.5} { // the program runs with each of them in turn
				for _, n := range s.Nodes {
					if op, ok := n.Op.(schedule.Persistent); ok {
						m := op.State[0].M
						if err := p.Write(m, slices.Repeat([]float32{first}, m.Elements())); err != nil {
							t.Fatal(err)
						}
					}
				}
				if _, err := p.Run(2); err != nil {
					t.Fatal(err)
				}
				m := s.Nodes[len(s.Nodes)-1].Op.(schedule.Persistent).State[0].M
				h := make([]float32, m.Elements())
				if err := p.Read(m, h); err != nil {
					t.Fatal(err)
				}
				all[i] = append(all[i], h...)
			}
		}
		for i, want := range all[0] {
			for _, got := range all[1:] {
				if !(math.Abs(float64(got[i]-want)) <= 0.02) {
					t.Fatalf("%v: %v, not %v", c, got, all[0])
				}
			}
		}
	}
}
