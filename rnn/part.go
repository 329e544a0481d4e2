package rnn

import (
	"fmt"

	"rnnbench/rnn/schedule"
)

// A Part is the sequences [From, From+N) of a minibatch: what one replica trains on.
type Part struct{ From, N int }

// Parts divides a minibatch over so many replicas, as evenly as possible.
func Parts(batch, replicas int) ([]Part, error) {
	if replicas < 1 || replicas > schedule.MaxReplicas || batch < replicas {
		return nil, fmt.Errorf("rnn: %d replicas cannot share a minibatch of %d: each needs at least one sequence", replicas, batch)
	}
	parts := make([]Part, replicas)
	for i := range parts {
		from := batch * i / replicas
		parts[i] = Part{from, batch*(i+1)/replicas - from}
	}
	return parts, nil
}

// Rows copies a part's rows from values, which have steps × batch rows of cols columns.
func (p Part) Rows(values []float32, cols, batch int) []float32 {
	var out []float32
	for row := p.From * cols; row < len(values); row += batch * cols {
		out = append(out, values[row:row+p.N*cols]...)
	}
	return out
}

// Part returns d with the sequences of one part alone.
func (d *Data) Part(p Part) *Data {
	of := d.Problem
	of.Batch = p.N
	out := DataFor(of, p.N)
	for _, t := range d.Tensors {
		if t.PerSequence {
			t.Values = p.Rows(Repeat(t.Values, t.Cols, d.Distinct, d.Problem.Batch), t.Cols, d.Problem.Batch)
			t.Rows = len(t.Values) / t.Cols
		}
		out.Tensors = append(out.Tensors, t)
	}
	return out
}
