package impl_test

import (
	"errors"
	"strings"
	"testing"

	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// uncut is a technique that does not say where its backward pass begins.
type uncut struct{ rnn.Technique }

func (u uncut) Plan(p *rnn.Plan, _ knob.Params) error {
	p.Do(0, schedule.Map{Op: cell.Zero, Out: p.Layer[0].State[0].All()})
	return nil
}

// TestDirectionDeclines: what cannot be laid out in a direction is declined for that, in a sentence.
func TestDirectionDeclines(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 3, Hidden: 4, Layers: 2, Batch: 2, Steps: 5, Output: 3, Direction: rnn.BothWays}
	long, linear := p, p
	long.Batch, long.Steps, linear.Cell, linear.Layers = 1<<12, 1<<13, cell.QRNN, 1
	naive := impl.Lookup("naive")
	for _, c := range []struct {
		tech rnn.Technique
		p    rnn.Problem
		k    knob.Params
		is   error
		want string
	}{
		{naive, long, nil, schedule.ErrDirection, "orders at most 16777216 rows of steps and sequences, not 33554432"},
		{impl.Lookup("cudnn"), p, nil, schedule.ErrDirection, "from the first step only, not in direction both"},
		{impl.Lookup("scan"), linear, knob.Params{"alone": 1, "inputbatch": 0}, schedule.ErrKnob, "timed alone only where all layers read from the first step"},
		{uncut{naive}, p, nil, schedule.ErrDirection, "lays out layers one by one"},
	} {
		if _, _, err := rnn.Layout(c.tech, c.p, c.k); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.tech.Name(), err, c.want)
		}
	}
	if _, _, err := rnn.LayoutTraining(naive, p, nil, rnn.Optimizer{Carry: true}); !errors.Is(err, schedule.ErrDirection) {
		t.Errorf("states that are carried: %v", err)
	}
	if _, _, err := rnn.LayoutForward(naive, p, true); !errors.Is(err, schedule.ErrDirection) {
		t.Errorf("states that are carried: %v", err)
	}
}

// TestBothWaysRunSideBySide: with several streams no operation of one way of a layer waits for
// the other way's. Each has half of the streams.
func TestBothWaysRunSideBySide(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 1, Batch: 2, Steps: 5, Direction: rnn.BothWays}
	for _, c := range []struct {
		tech          string
		streams, used int
	}{{"cudnnstyle", 1, 1}, {"cudnnstyle", 2, 2}, {"cudnnstyle", 4, 4}, {"persistent", 2, 2}} {
		_, s, err := rnn.Layout(impl.Lookup(c.tech), p, knob.Params{"streams": c.streams})
		if err != nil {
			t.Fatal(err)
		}
		used, waits := map[int]bool{}, 0
		for _, n := range s.Nodes {
			used[n.Stream] = true
			for _, w := range n.Wait {
				if half := (c.streams + 1) / 2; c.streams > 1 && (n.Stream < half) != (s.Nodes[w].Stream < half) {
					waits++
				}
			}
		}
		if len(used) != c.used || waits > 0 {
			t.Errorf("%s with %d streams uses %d and has %d waits of one way for the other", c.tech, c.streams, len(used), waits)
		}
	}
}
