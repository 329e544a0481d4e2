package impl_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/emulator"
	"rnnbench/device/worker"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

var update = flag.Bool("update", false, "rewrite golden files")

// settings are combinations of knobs that the suite runs besides each knob
// alone: the stages of Appleyard's ladder and what they leave out.
var settings = map[string][]knob.Params{
	"cudnnstyle": {
		{"grouped": 0, "streams": 1, "fused": 0, "transposed": 0, "inputbatch": 1, "overlap": 0},
		{"grouped": 1, "streams": 1, "fused": 0, "transposed": 0, "inputbatch": 1, "overlap": 0},
		{"grouped": 0, "streams": 4, "fused": 0, "transposed": 2, "inputbatch": 0, "overlap": 1},
		{"grouped": 0, "streams": 8, "fused": 1, "transposed": 1, "inputbatch": 1, "overlap": 1},
	},
	"persistent": {
		{"inputbatch": 1, "transposed": 2},
		{"inputbatch": 1, "streams": 3},
		{"inputbatch": 1, "streams": 4},
	},
	"scc": {
		{"intra": 0, "transposed": 0},
		{"intra": 0, "transposed": 2},
	},
}

// TestTechniques runs the techniques on one worker and on two.
func TestTechniques(t *testing.T) {
	one, two := openWorkers(t)
	impltest.RunShared(t, one, two, impl.Direct(), impltest.ProblemsOn(one), settings)
}

// openWorkers opens the CPU with one worker and with two, which take turns.
func openWorkers(t *testing.T) (one, two device.Device) {
	open := func(threads int) device.Device {
		d, err := cpu.Open(cpu.Options{Threads: threads, InTurn: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	return open(1), open(2)
}

// TestLongSequences runs persistent layers over ten thousand steps: their errors
// may not grow with time beyond the derived tolerance.
func TestLongSequences(t *testing.T) {
	steps := 10_000
	if testing.Short() {
		steps = 1_000
	}
	one, two := openWorkers(t)
	impltest.RunShared(t, one, two, []rnn.Technique{impl.Lookup("persistent")}, long(steps), nil)
}

// long returns layers that read so many steps.
func long(steps int) (ps []rnn.Problem) {
	for _, c := range []*cell.Cell{cell.RNNTanh, cell.GRU, cell.LSTM} {
		ps = append(ps, rnn.Problem{Cell: c, Input: 3, Hidden: 17, Layers: 1, Batch: 3, Steps: steps, Pass: rnn.Train})
	}
	folded := ps[2]
	folded.Projection = 5
	return append(ps, folded)
}

// wide runs layers that take all of a GPU, which the suite's sizes do not: the
// blocks of a group wait for each other over the whole chip. Among them is the
// one that once failed on an H200 (docs/notebook/persistent.md, Safe).
func wide(t *testing.T, d device.Device) {
	var ps []rnn.Problem
	for _, c := range []*cell.Cell{cell.RNNTanh, cell.GRU, cell.LSTM} {
		for _, precision := range []rnn.Precision{rnn.FP32, rnn.BF16} {
			ps = append(ps, rnn.Problem{Cell: c, Input: 9, Hidden: 1024, Layers: 1, Batch: 1, Steps: 16, Pass: rnn.Train, Precision: precision})
		}
	}
	impltest.Run(t, d, impl.Lookup("persistent"), ps)
}

// TestVendorsDecline: a CPU declines to run a vendor's library.
func TestVendorsDecline(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, tech := range impl.Vendors() {
		_, s, err := rnn.Layout(tech, rnn.Problem{Cell: cell.GRU, Input: 2, Hidden: 3, Layers: 1, Batch: 1, Steps: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Compile(s, nil); !errors.Is(err, schedule.ErrUnsupported) {
			t.Errorf("%s: %v", tech.Name(), err)
		}
	}
}

// emulated opens the CUDA device on the emulator. It skips the test unless make emulate runs it.
func emulated(t *testing.T) device.Device {
	t.Helper()
	if os.Getenv("RNNBENCH_EMULATE") == "" {
		t.Skip("make emulate runs it")
	}
	compiler, err := emulator.NewCompiler()
	if err != nil {
		t.Skip(err)
	}
	driver, err := emulator.New(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := cuda.New(driver, compiler, "")
	t.Cleanup(func() { d.Close() })
	return d
}

// TestEmulated runs the techniques on the emulated CUDA device: each on a third of the suite's
// smallest problems, always another. make emulate runs it, since compiling the kernels one by one
// takes minutes.
func TestEmulated(t *testing.T) {
	d := emulated(t)
	all := slices.Concat(impltest.Few(rnn.FP32), impltest.Few(rnn.BF16), impltest.Embedded(rnn.FP32), impltest.Embedded(rnn.BF16),
		impltest.Headed(rnn.FP32), impltest.Headed(rnn.BF16))
	for i, tech := range slices.Concat(impl.Direct(), impl.Vendors()) {
		var some []rnn.Problem
		for j := i % 3; j < len(all); j += 3 {
			some = append(some, all[j])
		}
		t.Run(tech.Name(), func(t *testing.T) { impltest.Run(t, d, tech, some) })
	}
}

// TestEmulatedDirections does so with layers that read from the last step, in turn or both ways.
func TestEmulatedDirections(t *testing.T) {
	d := emulated(t)
	for _, tech := range slices.Concat(impl.Direct(), impl.Vendors()) {
		p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 5, Hidden: 17, Layers: 2, Batch: 3, Steps: 4, Output: 3}
		if tech.Name() == "scan" {
			p.Cell = cell.QRNN2 // of two steps of the input
		}
		single, half, symbols := p, p, p
		single.Direction, single.Layers, single.Output = rnn.BothWays, 1, 0
		half.Direction, half.Precision = rnn.BothWays, rnn.BF16
		symbols.Direction, symbols.Precision, symbols.OneHot = rnn.Alternating, rnn.FP16, p.Cell.Window == 1 && tech.Name() != "cudnn"
		t.Run(tech.Name(), func(t *testing.T) { impltest.Run(t, d, tech, []rnn.Problem{single, half, symbols}) })
	}
}

// splitAlone is a device whose only knob says how products are split.
type splitAlone struct{ device.Device }

func (d splitAlone) Knobs(s *schedule.Schedule) []knob.Knob {
	return slices.DeleteFunc(d.Device.Knobs(s), func(k knob.Knob) bool { return k.Name != "split" })
}

// TestEmulatedSums does the same with weight gradients whose sums are long enough to be split.
func TestEmulatedSums(t *testing.T) {
	d := emulated(t)
	for _, c := range []struct {
		tech string
		p    rnn.Problem
	}{
		{"scan", rnn.Problem{Cell: cell.LSLSTM, Input: 5, Output: 10, Hidden: 24, Layers: 2, Batch: 1, Steps: 640}},
		{"scan", rnn.Problem{Cell: cell.QRNN, Input: 8, Hidden: 16, Layers: 2, Batch: 3, Steps: 260}},
		{"persistent", rnn.Problem{Cell: cell.GRU, Input: 7, Output: 9, Hidden: 16, Layers: 2, Batch: 4, Steps: 160}},
		{"cudnnstyle", rnn.Problem{Cell: cell.LSTM, Input: 7, Output: 9, Hidden: 16, Layers: 2, Batch: 40, Steps: 16}},
	} {
		c.p.Pass = rnn.Train
		t.Run(c.tech, func(t *testing.T) {
			impltest.Run(t, splitAlone{d}, impl.Lookup(c.tech), []rnn.Problem{c.p})
		})
	}
}

// openGPU opens the first GPU through a worker.
func openGPU(t *testing.T, path string) device.Device {
	d, err := worker.Open(worker.Options{Device: "cuda:0", Command: func() *exec.Cmd { return exec.Command(path) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestGPU runs the techniques on a GPU. RNNBENCH_CUDA names the worker. Several workers run at once,
// since compiling kernels and checking on the processor take the longest.
func TestGPU(t *testing.T) {
	path := os.Getenv("RNNBENCH_CUDA")
	if path == "" {
		t.Skip("RNNBENCH_CUDA does not name the worker")
	}
	open := func(t *testing.T) device.Device { return openGPU(t, path) }
	const workers = 4
	for _, tech := range slices.Concat(impl.Direct(), impl.Vendors()) {
		for w := range workers {
			t.Run(fmt.Sprintf("%s/%d of %d", tech.Name(), w+1, workers), func(t *testing.T) {
				t.Parallel()
				d := open(t)
				var some []rnn.Problem
				for _, p := range impltest.ProblemsOn(d) {
					if slices.Index(cell.All(), p.Cell)%workers == w { // whose kernels no other worker compiles
						some = append(some, p)
					}
				}
				impltest.Run(t, d, tech, some, settings[tech.Name()]...)
			})
		}
	}
	for _, tech := range slices.Concat(impl.Direct(), impl.Vendors()) {
		t.Run(tech.Name()+"/training", func(t *testing.T) {
			t.Parallel()
			impltest.RunTraining(t, open(t), tech)
		})
	}
	t.Run("long", func(t *testing.T) {
		t.Parallel()
		impltest.Run(t, open(t), impl.Lookup("persistent"), long(10_000))
	})
	t.Run("wide", func(t *testing.T) {
		t.Parallel()
		wide(t, open(t))
	})
}

// TestSchedules compares each technique's schedule for a small problem with a golden file, so that a
// change of schedule is read in review.
func TestSchedules(t *testing.T) {
	for _, tech := range slices.Concat(impl.Direct(), impl.Vendors()) {
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 2, Batch: 2, Steps: 3, Pass: pass}
			if tech.Name() == "scan" {
				p.Cell = cell.LSLSTM // of two scans; it declines an LSTM
			}
			k := knob.Params{}
			for _, kn := range tech.Knobs(p) {
				if kn.Name == "streams" {
					k["streams"] = 4
				}
			}
			_, s, err := rnn.Layout(tech, p, k)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := s.Dump(&got); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", fmt.Sprintf("%s-%v.golden", tech.Name(), pass))
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s: the schedule differs from %s (go test ./impl -update rewrites it):\n%s", tech.Name(), path, got.Bytes())
			}
		}
	}
}

// TestNaiveCountsAsThePaper checks the naive schedule against section 2.1: eight
// products for a step of an LSTM, and no fused cell.
func TestNaiveCountsAsThePaper(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 2, Batch: 2, Steps: 5}
	_, s, err := rnn.Layout(impl.Lookup("naive"), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range s.Summarize().Kinds {
		if k.Name == "gemm" && k.Count != 8*2*5 {
			t.Errorf("%d products, want %d", k.Count, 8*2*5)
		}
		if k.Name == "cell" {
			t.Error("a fused cell")
		}
	}
}
