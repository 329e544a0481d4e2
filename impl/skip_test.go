package impl_test

import (
	"errors"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// TestSkip runs layers with shortcuts by each technique.
func TestSkip(t *testing.T) {
	directOf(t, impltest.Bypassed)
}

// TestEmulatedSkip runs them on the CUDA device without a GPU, by the vendor's library too.
func TestEmulatedSkip(t *testing.T) {
	emulatedOf(t, 20, impltest.Bypassed)
}

// TestSkipAdds: in a network whose layers give nothing, outputs are inputs, and gradients of inputs are
// those of outputs.
func TestSkipAdds(t *testing.T) {
	one, _ := openWorkers(t)
	p := rnn.Problem{Cell: cell.LSTM, Skip: 2, Input: 5, Hidden: 5, Layers: 6, Batch: 2, Steps: 3, Pass: rnn.Train}
	data := rnn.NewData(p, 1, 2, "normal")
	for _, x := range data.Tensors {
		if x.Name != "x" && x.Name != "dy" {
			clear(x.Values)
		}
	}
	for _, name := range []string{"naive", "cudnnstyle", "persistent", "scc"} {
		plan, prog := ran(t, one, name, p, data)
		answer, err := oracle.Read(plan, prog)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range answer {
			want := map[string]string{"y": "x", "dx": "dy"}[got.Name]
			if want == "" {
				continue
			}
			for i, v := range data.Get(want) {
				if got.Values[i] != float64(v) {
					t.Errorf("%s: %s[%d] is %v, want %v", name, got.Name, i, got.Values[i], v)
					break
				}
			}
		}
	}
}

// TestSkipStepwise checks layers with shortcuts step by step, and plants faults in states, in the sum and
// in gradients.
func TestSkipStepwise(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.SRU, cell.RNNReLU} {
		p := rnn.Problem{Cell: c, Input: 11, Hidden: 11, Layers: 5, Skip: 2, Batch: 3, Steps: 9, Output: 4 * (i % 2), Pass: rnn.Train, Direction: rnn.Direction(i % 3)}
		data := rnn.NewData(p, 1, 2, "normal")
		plan, prog := ran(t, d, "cudnnstyle", p, data)
		plantFaults(t, plan, prog, data, map[string]float64{"h_l1": 3, "h_l2": 3, "y": 3, "grad_weight_ih_l1": 3, "grad_bias_ih_l4": 3, "dx": 3})
	}
}

// TestSkipDeclines: what does not go with shortcuts is declined.
func TestSkipDeclines(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Skip: 2, Input: 3, Hidden: 4, Layers: 4, Batch: 2, Steps: 5}
	kept, linear := p, p
	kept.History = 2
	linear.Cell, linear.Layers, linear.Skip = cell.SRU, 1, 1
	for _, c := range []struct {
		technique string
		p         rnn.Problem
		k         knob.Params
		is        error
		want      string
	}{
		{"scc", kept, nil, schedule.ErrSkip, "set history to 0, or skip to none"},
		{"scan", linear, knob.Params{"alone": 1, "inputbatch": 0}, schedule.ErrKnob, "without shortcuts"},
	} {
		if _, _, err := rnn.Layout(impl.Lookup(c.technique), c.p, c.k); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.technique, err, c.want)
		}
	}
	if _, _, err := rnn.LayoutHosted(impl.Lookup("naive"), p, nil); !errors.Is(err, schedule.ErrUnsupported) || !strings.Contains(err.Error(), "shortcuts") {
		t.Errorf("a host program: %v", err)
	}
}

// TestSkipOperations: shortcuts cost one addition a module in the forward pass, and one in the backward
// pass. Nothing is copied.
func TestSkipOperations(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 5, Hidden: 5, Layers: 6, Batch: 2, Steps: 3}
	count := func(p rnn.Problem) int {
		_, s, err := rnn.Layout(impl.Lookup("persistent"), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Nodes)
	}
	plain := count(p)
	for _, skip := range []int{1, 2, 3, 6} {
		p.Skip = skip
		if modules, more := 6/skip, count(p)-plain; more != 2*modules {
			t.Errorf("skip=%d takes %d operations more, want %d", skip, more, 2*modules)
		}
	}
}
