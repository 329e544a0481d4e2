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
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// TestLookahead runs layers with row convolutions by each technique.
func TestLookahead(t *testing.T) {
	directOf(t, impltest.Ahead)
}

// TestEmulatedLookahead runs them on the CUDA device without a GPU, by the vendor's library too.
func TestEmulatedLookahead(t *testing.T) {
	emulatedOf(t, 10, impltest.Ahead)
}

// TestLookaheadShifts: where one weight is 1 and the others 0, outputs are the states of a later step, and 0
// where there is none.
func TestLookaheadShifts(t *testing.T) {
	one, _ := openWorkers(t)
	const later = 2
	p := rnn.Problem{Cell: cell.LSTM, Lookahead: 4, Input: 5, Hidden: 6, Layers: 2, Batch: 3, Steps: 5}
	data := rnn.NewData(p, 1, 3, "normal")
	weights := data.Get("weight_ahead_l1")
	for i := range weights {
		if weights[i] = 0; i/p.Hidden == later {
			weights[i] = 1
		}
	}
	plan, prog := ran(t, one, "persistent", p, data)
	answer, err := oracle.Read(plan, prog)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]float64{}
	for _, x := range answer {
		of[x.Name] = x.Values
	}
	for i, y := range of["y"] {
		want := 0.0
		if from := i + later*p.Batch*p.Hidden; from < len(of["y"]) {
			want = of["h_l1"][from]
		}
		if y != want {
			t.Fatalf("y[%d] is %v, want %v", i, y, want)
		}
	}
}

// TestLookaheadOperations: a row convolution of 20 steps goes over its rows three times in the forward pass.
func TestLookaheadOperations(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 5, Hidden: 5, Layers: 2, Batch: 2, Steps: 8}
	count := func(p rnn.Problem) int {
		_, s, err := rnn.Layout(impl.Lookup("persistent"), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Nodes)
	}
	plain := count(p)
	if p.Lookahead = 20; count(p)-plain != 3 {
		t.Errorf("it takes %d operations, want 3", count(p)-plain)
	}
}

// TestLookaheadDeclines: what does not go with row convolutions is declined.
func TestLookaheadDeclines(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Lookahead: 3, Input: 4, Hidden: 4, Layers: 2, Batch: 2, Steps: 5}
	turned, ragged, kept, reset, called, alone := p, p, p, p, p, p
	turned.Direction, ragged.Lengths, kept.History, reset.Resets = rnn.BothWays, "3+5", 2, 20
	called.Pass, called.Calls = rnn.Forward, 3
	alone.Cell, alone.Layers = cell.SRU, 1
	for _, c := range []struct {
		technique string
		p         rnn.Problem
		k         knob.Params
		is        error
		want      string
	}{
		{"naive", turned, nil, schedule.ErrLookahead, "reads later steps already"},
		{"naive", ragged, nil, schedule.ErrLookahead, "no lengths and no history"},
		{"scc", kept, nil, schedule.ErrLookahead, "no lengths and no history"},
		{"naive", reset, nil, schedule.ErrLookahead, "another sequence"},
		{"naive", called, nil, schedule.ErrLookahead, "no later steps"},
		{"scan", alone, knob.Params{"alone": 1, "inputbatch": 0}, schedule.ErrKnob, "row convolutions"},
	} {
		if _, _, err := rnn.Layout(impl.Lookup(c.technique), c.p, c.k); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: %v, want %q", c.technique, c.p, err, c.want)
		}
	}
	if _, _, err := rnn.LayoutHosted(impl.Lookup("naive"), p, nil); !errors.Is(err, schedule.ErrUnsupported) || !strings.Contains(err.Error(), "row convolution") {
		t.Errorf("a host program: %v", err)
	}
}
