package impl_test

import (
	"errors"
	"strings"
	"testing"

	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestRaggedSizes runs sequences with lengths of their own with every value of batchsizes.
func TestRaggedSizes(t *testing.T) {
	one, two := openWorkers(t)
	for i, tech := range impl.Direct() {
		for j, c := range []*cell.Cell{cell.LSTM, cell.QRNN2, cell.LSLSTM} {
			p := rnn.Problem{Cell: c, Pass: rnn.Train, Input: 5, Hidden: 9, Layers: 2, Batch: 9, Steps: 8, Output: 3 * (j % 2),
				Direction: rnn.Direction((i + j) % 4), Lengths: "1+2+2*3+5+2*6+2*8"}
			var sizes []knob.Params
			for n := range 8 {
				if testing.Short() && n%3 > 0 || knob.Find(tech.Knobs(p), "batchsizes") == nil {
					continue
				}
				sizes = append(sizes, knob.Params{"batchsizes": n})
			}
			if tech.Name() == "scan" { // blocks that end between steps of equally many sequences
				sizes = append(sizes, knob.Params{"batchsizes": 0, "inputbatch": 1}, knob.Params{"batchsizes": 2, "inputbatch": 2})
			}
			t.Run(tech.Name(), func(t *testing.T) {
				impltest.RunShared(t, one, two, []rnn.Technique{tech}, []rnn.Problem{p}, map[string][]knob.Params{tech.Name(): sizes})
			})
		}
	}
}

// TestRaggedDeclines: a problem that cannot be laid out with lengths is declined with that reason.
func TestRaggedDeclines(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 1, Batch: 3, Steps: 5, Lengths: "1+3+5"}
	naive, train := impl.Lookup("naive"), p
	train.Pass = rnn.Train
	for want, o := range map[string]rnn.Optimizer{"no states can go on": {Carry: true}, "2 replicas cannot share": {Replicas: 2, Whole: 6}} {
		if _, _, err := rnn.LayoutTraining(naive, train, nil, o); !errors.Is(err, schedule.ErrLengths) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if _, _, err := rnn.LayoutForward(naive, p, nil, true); !errors.Is(err, schedule.ErrLengths) {
		t.Errorf("states that are carried: %v", err)
	}
}

// TestRaggedSkips: no product computes rows of sequences that have ended, unless batchsizes keeps
// them.
func TestRaggedSkips(t *testing.T) {
	full := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 1, Batch: 4, Steps: 8}
	half := full
	half.Lengths = "1+3+4+8"
	for _, name := range []string{"naive", "cudnnstyle", "scc"} {
		flops := func(p rnn.Problem, k knob.Params) int64 {
			_, s, err := rnn.Layout(impl.Lookup(name), p, k)
			if err != nil {
				t.Fatal(err)
			}
			var n int64
			for _, node := range s.Nodes {
				if g, ok := node.Op.(schedule.Gemm); ok {
					n += g.FLOPs()
				}
			}
			return n
		}
		if got, want := 2*flops(half, nil), flops(full, nil); got != want {
			t.Errorf("%s: half of the steps take %d operations, all %d", name, got/2, want)
		}
		if name == "naive" {
			continue
		}
		if got, want := flops(half, knob.Params{"batchsizes": 1}), flops(full, nil); got != want {
			t.Errorf("%s: of one batch size, half of the steps take %d operations, all %d", name, got, want)
		}
	}
}

// TestRaggedDefaults: by default cudnnstyle shrinks the batch whenever sequences end. Techniques
// with sequence operations use 16 batch sizes, and 4 where each is a launch.
func TestRaggedDefaults(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSLSTM, Input: 3, Hidden: 4, Layers: 1, Batch: 40, Steps: 90, Lengths: "uniform:50%"}
	for name, want := range map[string][2]int{"cudnnstyle": {0, 0}, "persistent": {16, 4}, "scan": {16, 4}} {
		for i, launched := range []bool{false, true} {
			k := knob.Find(rnn.KnobsOf(impl.Lookup(name), p, launched), "batchsizes")
			if k == nil || k.Values[0] != want[i] {
				t.Errorf("%s launched %v: %v, want %d first", name, launched, k, want[i])
			}
		}
	}
}

// TestEmulatedRagged runs sequences with lengths of their own by the CUDA kernels on the processor.
func TestEmulatedRagged(t *testing.T) {
	d := emulated(t)
	for _, tech := range impl.Direct() {
		p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 5, Hidden: 17, Layers: 2, Batch: 5, Steps: 6, Output: 3, Lengths: "1+2+2*4+6"}
		if tech.Name() == "scan" {
			p.Cell = cell.LSLSTM // of two scans
		}
		both, half, window := p, p, p
		both.Direction, both.Layers, both.Output = rnn.BothWays, 1, 0
		half.Direction, half.Precision, half.OneHot = rnn.Alternating, rnn.BF16, true
		window.Cell, window.Direction = cell.QRNN2, rnn.FromLast
		var sizes []knob.Params
		if knob.Find(tech.Knobs(p), "batchsizes") != nil {
			sizes = []knob.Params{{"batchsizes": 0}, {"batchsizes": 2}}
		}
		t.Run(tech.Name(), func(t *testing.T) { impltest.Run(t, d, tech, []rnn.Problem{p, both, half, window}, sizes...) })
	}
}
