package explain

import (
	"fmt"

	"rnnbench/plots/quantity"
	"rnnbench/rnn"
	"rnnbench/tuner"
)

// A Call is what one call moves besides its run, in bytes; values have four bytes.
type Call struct {
	Written int64 `json:"written_bytes"` // of input, by the host
	Read    int64 `json:"read_bytes"`    // of output, by the host
	Kept    int64 `json:"kept_bytes"`    // of states, which the run copies to where the next run starts
}

// callOf describes a call of l; nil where a run is a whole sequence.
func callOf(l *tuner.Layout) *Call {
	p := l.Problem
	if p.Calls == 0 {
		return nil
	}
	_, n := rnn.CallOutput(l.Plan)
	return &Call{
		Written: 4 * int64(l.Plan.Given.Elements()), Read: 4 * int64(n),
		Kept: 4 * int64(p.Layers*len(p.Cell.States)*p.Batch) * int64(p.Hidden),
	}
}

// notes describes c in words.
func (c *Call) notes() []string {
	if c == nil {
		return nil
	}
	bytes := func(n int64) string { return quantity.Bytes(float64(n)) }
	return []string{fmt.Sprintf("a call: the host writes %s, one run, the host reads %s; states of %s stay on the device", bytes(c.Written), bytes(c.Read), bytes(c.Kept))}
}
