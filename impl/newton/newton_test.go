package newton_test

import (
	"testing"

	"rnnbench/cells"
	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl/impltest"
	"rnnbench/impl/newton"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// problems are layers of cells whose units read their own states alone, with all that layers may have.
func problems(t *testing.T) (ps []rnn.Problem) {
	for _, name := range []string{"gru-diag", "indrnn", "lstm-diag"} {
		c, err := cells.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		plain := rnn.Problem{Cell: c, Input: 5, Hidden: 17, Layers: 2, Batch: 3, Steps: 40}
		one := rnn.Problem{Cell: c, Input: 1, Hidden: 1, Layers: 1, Batch: 1, Steps: 1, Precision: rnn.FP16}
		symbols, both, ragged, reset := plain, plain, plain, plain
		symbols.OneHot, symbols.Output, symbols.Precision = true, 4, rnn.BF16
		both.Direction, both.Hidden = rnn.BothWays, 9
		ragged.Lengths, ragged.Steps = "1+3+5", 5
		reset.Resets, reset.Layers = 30, 1
		for _, p := range []rnn.Problem{plain, one, symbols, both, ragged, reset} {
			ps = append(ps, p)
			p.Pass = rnn.Train
			ps = append(ps, p)
		}
	}
	return ps
}

func open(t *testing.T, threads int) device.Device {
	d, err := cpu.Open(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestNewton: iterations converge to the reference's answer, with its gradients.
func TestNewton(t *testing.T) {
	impltest.RunShared(t, open(t, 1), open(t, 2), newton.Technique{}, problems(t))
}

// TestDeclines: cells that need no Newton's method, or that it cannot run, are declined.
func TestDeclines(t *testing.T) {
	for _, c := range []*cell.Cell{cell.GRU, cell.GILR, cell.RGLRU, cell.LSLSTM} {
		p := rnn.Problem{Cell: c, Input: 3, Hidden: 4, Layers: 1, Batch: 1, Steps: 5}
		if _, _, err := rnn.Layout(newton.Technique{}, p, nil); err == nil {
			t.Errorf("%v is not declined", c)
		}
	}
}
