package impl_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// TestResets: sequences that begin anew have the reference's answers, by every technique that does not decline them.
func TestResets(t *testing.T) {
	one, two := openWorkers(t)
	precisions := []rnn.Precision{rnn.FP32, rnn.BF16, rnn.FP16}
	if testing.Short() {
		precisions = precisions[:2]
	}
	for _, precision := range precisions {
		impltest.RunShared(t, one, two, impl.Direct(), impltest.Resetting(precision), nil)
	}
}

// TestResetsDeclines: a problem that cannot begin sequences anew is declined with that reason.
func TestResetsDeclines(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 1, Batch: 3, Steps: 5, Resets: 3}
	window, projection, surrogate := p, p, p
	window.Cell, surrogate.Cell = cell.QRNN2, cell.LSLSTM
	projection.Projection = 2
	for _, c := range []struct {
		tech string
		p    rnn.Problem
		want string
	}{
		{"scc", p, "resets are 3%: set resets to none"},
		{"cudnn", p, "resets are 3%: set resets to none"},
		{"scan", surrogate, "ls-lstm has recurrent products of all steps at once"},
		{"naive", window, "qrnn2 reads 2 steps of its input"},
		{"cudnnstyle", projection, "set projection to none"},
	} {
		if _, _, err := rnn.Layout(impl.Lookup(c.tech), c.p, nil); !errors.Is(err, schedule.ErrResets) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.tech, err, c.want)
		}
	}
	naive, train := impl.Lookup("naive"), p
	train.Pass = rnn.Train
	if _, _, err := rnn.LayoutTraining(naive, train, nil, rnn.Optimizer{}); !errors.Is(err, schedule.ErrResets) {
		t.Errorf("training: %v", err)
	}
	if _, _, err := rnn.LayoutForward(naive, p, nil, false); !errors.Is(err, schedule.ErrResets) {
		t.Errorf("forward: %v", err)
	}
}

// TestResetsOfBands: workers that share the units of one sequence begin it anew at the same steps,
// also next to each other, at step 1 and at the last.
func TestResetsOfBands(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.LSTMPeephole, cell.RNNTanh} {
		for _, percent := range []int{3, 40, 100} {
			p := rnn.Problem{Cell: c, Pass: rnn.Train, Input: 3, Hidden: 37 + 16*(i%2), Layers: 2, Batch: 1, Steps: 41, Resets: percent}
			plan, s, err := rnn.Layout(impl.Lookup("persistent"), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			prog, err := d.Compile(s, knob.Params{"bands": 2 + i%2})
			if err != nil {
				t.Fatal(err)
			}
			defer prog.Close()
			data := rnn.NewData(p, uint64(i), 1, "normal")
			if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
				t.Fatal(err)
			}
			if _, err := prog.Run(3); err != nil { // each run begins with what the one before left
				t.Fatal(err)
			}
			got, err := oracle.Read(plan, prog)
			if err != nil {
				t.Fatal(err)
			}
			if dev, err := oracle.Compare(p, got, oracle.Reference(data)); err != nil || !dev.OK() {
				t.Errorf("%v, %d%%: %v %v", c, percent, dev, err)
			}
		}
	}
}

// TestResetsPairProducts: with resets too, the products for the gradients of W and R follow each
// other, so that a device packs the rows that both read once.
func TestResetsPairProducts(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 5, Hidden: 9, Layers: 2, Batch: 3, Steps: 8}
	for _, name := range []string{"persistent", "cudnnstyle"} {
		var pairs []int
		for _, p.Resets = range []int{0, 10} {
			_, s, err := rnn.Layout(impl.Lookup(name), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for i, node := range s.Nodes[1:] {
				a, first := s.Nodes[i].Op.(schedule.Gemm)
				b, second := node.Op.(schedule.Gemm)
				if first && second && a.TransA && b.TransA && a.A == b.A {
					n++
				}
			}
			pairs = append(pairs, n)
		}
		if pairs[0] < p.Layers || pairs[1] != pairs[0] {
			t.Errorf("%s: %d pairs of products without resets, %d with", name, pairs[0], pairs[1])
		}
	}
}

// TestResetsAreData: one program gives the right answers to several draws of resets.
func TestResetsAreData(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, c := range map[string]*cell.Cell{"cudnnstyle": cell.LSTM, "persistent": cell.GRU, "scan": cell.MinGRU} {
		p := rnn.Problem{Cell: c, Pass: rnn.Train, Input: 3, Hidden: 9, Layers: 2, Batch: 4, Steps: 11, Resets: 20}
		plan, s, err := rnn.Layout(impl.Lookup(name), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := d.Compile(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer prog.Close()
		for seed := range uint64(3) {
			data := rnn.NewData(p, seed, p.Batch, "normal")
			if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
				t.Fatal(err)
			}
			if _, err := prog.Run(1); err != nil {
				t.Fatal(err)
			}
			got, err := oracle.Read(plan, prog)
			if err != nil {
				t.Fatal(err)
			}
			if dev, err := oracle.Compare(p, got, oracle.Reference(data)); err != nil || !dev.OK() {
				t.Errorf("%s, seed %d: %v %v", name, seed, dev, err)
			}
		}
	}
}

// TestEmulatedResets runs sequences that begin anew by the CUDA kernels on the processor.
func TestEmulatedResets(t *testing.T) { runResets(t, emulated(t)) }

// TestGPUResets runs them on a GPU.
func TestGPUResets(t *testing.T) {
	path := os.Getenv("RNNBENCH_CUDA")
	if path == "" {
		t.Skip("RNNBENCH_CUDA does not name the worker")
	}
	runResets(t, openGPU(t, path))
}

func runResets(t *testing.T, d device.Device) {
	for _, tech := range impl.Direct() {
		p := rnn.Problem{Cell: cell.GRU, Pass: rnn.Train, Input: 5, Hidden: 17, Layers: 2, Batch: 3, Steps: 7, Output: 3, Resets: 40}
		if tech.Name() == "scan" {
			p.Cell, p.Steps = cell.MinGRU, 41
		}
		forward, both, half := p, p, p
		forward.Pass, forward.Hidden = rnn.Forward, 16
		both.Direction, both.Layers, both.Output = rnn.BothWays, 1, 0
		half.Direction, half.Precision, half.OneHot = rnn.Alternating, rnn.BF16, true
		problems := []rnn.Problem{p, forward, both, half}
		if tech.Name() == "scan" {
			second := p
			second.Cell = cell.RGLRU
			problems = append(problems, second)
		} else {
			heads := half
			heads.Hidden, heads.Heads, heads.OneHot = 18, 3, false
			problems = append(problems, heads)
		}
		t.Run(tech.Name(), func(t *testing.T) { impltest.Run(t, d, tech, problems) })
	}
}
