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

// wides are layers whose warpgroups multiply many sequences at once: in one turn and in several,
// with unused places for sequences, and with several groups if the GPU has room for them.
func wides(hidden int) (cases []devicetest.Case) {
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh, cell.RNNReLU, cell.LSTMPeephole} {
		for j, batch := range []int{65, 96, 129, 200} {
			for n, precision := range []schedule.Precision{schedule.BF16, schedule.FP16} {
				k := knob.Params{"resident": 9}
				if s := []int{0, 48, 64, 112}[(i+j+n)%4]; s > 0 {
					k["samples"] = s
				}
				l := devicetest.Layer{Cell: c, Hidden: hidden, Batch: batch, Steps: []int{4, 1, 3}[(i+j)%3], Train: (i+j+n)%2 == 0, Precision: precision}
				cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
			}
		}
	}
	return cases
}

func TestWides(t *testing.T) {
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
		for j, c := range wides(gpu.hidden) {
			if j%every == i {
				cases = append(cases, c)
			}
		}
		devicetest.Layers(t, d, cases)
	}
}

// partners are layers of one gate whose columns two blocks share: of an odd number of products, in
// one turn and in several, in one group and in two if the GPU has 16 multiprocessors.
func partners() (cases []devicetest.Case) {
	for i, hidden := range []int{70, 130, 200} {
		for j, batch := range []int{33, 43, 48, 97} {
			for n, samples := range []int{0, 16, 32} {
				l := devicetest.Layer{
					Cell: []*cell.Cell{cell.RNNReLU, cell.RNNTanh}[(i+j+n)%2], Hidden: hidden, Batch: batch, Steps: []int{4, 1, 3}[(i+j)%3], Train: (i+n)%2 == 0,
					Precision: []schedule.Precision{schedule.BF16, schedule.FP16}[(j+n/2)%2],
				}
				k := knob.Params{"resident": 9, "cluster": 2}
				if samples > 0 {
					k["samples"] = samples
				}
				cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
			}
		}
	}
	return cases
}

func TestPartners(t *testing.T) {
	compiler, driver := emulation(t, 16)
	d := cuda.New(driver, compiler, t.TempDir())
	t.Cleanup(func() { d.Close() })
	cases := partners()
	if testing.Short() {
		cases = []devicetest.Case{cases[4], cases[21], cases[35]}
	}
	properties := driver.Properties()
	properties.Clusters = map[int]int{1: 16, 2: 8, 4: 4, 8: 2}
	for _, c := range cases {
		s, err := c.Build()
		if err != nil {
			t.Fatal(err)
		}
		if _, texts, err := cuda.Sources(s, c.Knobs, properties); err != nil || !strings.Contains(strings.Join(texts, ""), "PARTNERS = 2") {
			t.Errorf("%v %v runs without partners: %v", c.Layer, c.Knobs, err)
		}
	}
	devicetest.Layers(t, d, cases)
}

// TestGPUPartners runs them on a GPU, and one that fills most of it.
func TestGPUPartners(t *testing.T) {
	large := devicetest.Layer{Cell: cell.RNNReLU, Hidden: 3008, Batch: 43, Steps: 5, Train: true, Precision: schedule.BF16}
	devicetest.Layers(t, openGPU(t, time.Minute), append(partners(), devicetest.Case{Layer: large, Knobs: knob.Params{"resident": 9, "cluster": 2}}))
}

// TestGPUWides runs them on a GPU, at sizes that fill neither the last block nor the last product.
func TestGPUWides(t *testing.T) {
	d := openGPU(t, time.Minute)
	for i, hidden := range []int{72, 333, 640} {
		devicetest.Layers(t, d, sample(wides(hidden)[i:], 9))
	}
}

// TestSpillsWides: layers that run by warpgroups by default do not spill registers.
func TestSpillsWides(t *testing.T) {
	c := hopper(t)
	for i, l := range []devicetest.Layer{
		{Cell: cell.LSTM, Hidden: 1696, Batch: 96, Precision: schedule.BF16},
		{Cell: cell.LSTM, Hidden: 1696, Batch: 96, Train: true, Precision: schedule.BF16},
		{Cell: cell.GRU, Hidden: 1536, Batch: 54, Precision: schedule.FP16},
		{Cell: cell.RNNTanh, Hidden: 1536, Batch: 128, Train: true, Precision: schedule.BF16},
		{Cell: cell.LSTM, Hidden: 1184, Batch: 393, Train: true, Precision: schedule.FP16},
		{Cell: cell.LSTM, Hidden: 1440, Batch: 200, Precision: schedule.BF16},
	} {
		if testing.Short() && i%4 != 0 {
			continue
		}
		l.Steps = 16
		t.Run(l.String(), func(t *testing.T) {
			s, err := l.Schedule(1)
			if err != nil {
				t.Fatal(err)
			}
			launches, texts, err := cuda.Sources(s, knob.Params{"resident": 9}, h200())
			if err != nil {
				t.Fatal(err)
			}
			last := slices.IndexFunc(launches, func(l *driver.Launch) bool { return strings.Contains(l.Name, "_wide_") })
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

// BenchmarkGPUWides times layers by the sequences per turn, and reports the phases of a step in
// both warpgroups. 0: the default.
func BenchmarkGPUWides(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, l := range []struct {
		cell          *cell.Cell
		hidden, batch int
		samples       []int
	}{
		{cell.LSTM, 1696, 96, []int{0, 32, 48, 96}},
		{cell.LSTM, 1440, 200, []int{0, 64, 80, 112, 208}},
		{cell.LSTM, 1184, 393, []int{0, 64, 80, 144, 208}},
		{cell.LSTM, 1024, 128, []int{0, 64, 128}},
		{cell.GRU, 1536, 54, []int{0, 32, 64}},
		{cell.RNNTanh, 1536, 128, []int{0, 32, 64}},
		{cell.RNNReLU, 3008, 43, []int{0, 32}},
	} {
		layer := devicetest.Layer{Cell: l.cell, Hidden: l.hidden, Batch: l.batch, Steps: 200, Precision: schedule.BF16}
		s, err := layer.Schedule(1)
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range l.samples {
			for clocks := range 2 {
				b.Run(fmt.Sprintf("%v/%d/clocks=%d", layer, n, clocks), func(b *testing.B) {
					k := knob.Params{"resident": 9, "clocks": clocks}
					if n > 0 {
						k["samples"] = n
					}
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
					if clocks == 0 {
						return
					}
					op := s.Nodes[len(s.Nodes)-1].Op.(schedule.Persistent)
					m := op.State[op.Cell.Through].M
					h := make([]float32, m.Elements())
					if err := p.Read(m, h); err != nil {
						b.Fatal(err)
					}
					for i, phase := range []string{"wait", "product", "sum", "cell", "send", "rest"} {
						b.ReportMetric(float64(h[l.batch*m.Cols+i]), phase)
						b.ReportMetric(float64(h[l.batch*m.Cols+6+i]), phase+"-second")
					}
				})
			}
		}
	}
}
