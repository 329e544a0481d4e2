package device

import "rnnbench/rnn/schedule"

// A Fed program takes the values of its next run while it makes this one. A program that is not
// Fed is written and run.
type Fed interface {
	// Feed brings values to a place beside their matrices, where the next Start takes them from.
	// They are as those of Write. It returns once the caller may change the values. A run may be
	// under way, and does not see them.
	Feed(values ...Filled) error

	// Start copies what was fed into place, begins a run and returns. Of what was fed and what was
	// written before, the last holds. Until Wait, only Feed and Close may be called.
	Start() error

	// Wait waits for the end of the run, and returns its error.
	Wait() error
}

// A Filled matrix is one with values for its first rows, whole ones.
type Filled struct {
	Matrix *schedule.Matrix
	Values []float32
}
