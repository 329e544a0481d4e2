package tuner

import (
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestAnswers: problems cut to the same steps share an answer. Large answers displace the oldest, and
// the next answer displaces that of a whole problem.
func TestAnswers(t *testing.T) {
	var known answers
	of := func(steps, checked, distinct int) *float64 {
		p := rnn.Problem{Cell: cell.GRU, Pass: rnn.Train, Input: 3, Hidden: 5, Layers: 1, Batch: 4, Steps: steps}
		d := rnn.NewData(p, 1, distinct, "normal")
		p.Steps = checked
		return &known.of(d.Cut(p), steps == checked)[0].Values[0]
	}
	first := of(9, 4, 3)
	if of(12, 4, 3) != first {
		t.Error("the same steps of a longer problem are computed anew")
	}
	if of(9, 5, 3) == first || of(9, 4, 2) == first {
		t.Error("another problem has the same answer")
	}
	known.values = keptValues
	of(9, 6, 3)
	if of(9, 4, 3) == first || len(known.list) > 2 {
		t.Errorf("%d answers are kept, the oldest among them", len(known.list))
	}
	known = answers{}
	for steps := 1; steps < 4; steps++ {
		whole := of(steps, steps, 3)
		if of(steps, steps, 3) != whole {
			t.Error("the same problem at once again is computed anew")
		}
	}
	if n := len(known.list); n != 1 || known.values != known.list[0].values {
		t.Errorf("%d answers of whole problems are kept, of %d values", n, known.values)
	}
}
