package impl_test

import (
	"testing"

	"rnnbench/cells"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestGain: layers whose recurrent weights are smaller or larger than usual have the reference's answers.
func TestGain(t *testing.T) {
	diagonal, err := cells.Load("gru-diag")
	if err != nil {
		t.Fatal(err)
	}
	one, _ := openWorkers(t)
	var problems []rnn.Problem
	for _, c := range []*cell.Cell{cell.LSTM, diagonal} {
		for _, gain := range []int{25, 400} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				problems = append(problems, rnn.Problem{Cell: c, Pass: pass, Input: 5, Hidden: 17, Layers: 2, Batch: 3, Steps: 40, Gain: gain})
			}
		}
	}
	for _, name := range []string{"naive", "cudnnstyle"} {
		t.Run(name, func(t *testing.T) { impltest.Run(t, one, impl.Lookup(name), problems) })
	}
}
