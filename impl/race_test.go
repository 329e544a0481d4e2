//go:build race

package impl_test

import (
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestRaces runs the schedule of each technique on two workers, for the race detector, under which all problems
// of TestTechniques would take half an hour. The problems have what runs side by side: layers, streams, gates, both
// directions, and gradients beside the steps before.
func TestRaces(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var problems []rnn.Problem
	for _, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.QRNN} {
		p := rnn.Problem{Cell: c, Pass: rnn.Train, Input: 5, Hidden: 17, Layers: 2, Batch: 3, Steps: 4, Output: 3}
		both := p
		both.Direction, both.Pass = rnn.BothWays, rnn.Forward
		problems = append(problems, p, both)
	}
	for _, tech := range impl.Direct() {
		t.Run(tech.Name(), func(t *testing.T) { impltest.Run(t, d, tech, problems, settings[tech.Name()]...) })
	}
}
