package device

import "rnnbench/rnn/schedule"

// Ahead is how many runs of a Fed program may be under way: one that the device makes, and one that
// waits for it.
const Ahead = 2

// A Fed program takes the values of its next run while it makes this one. A program that is not
// Fed is written and run.
type Fed interface {
	// Feed brings values to a place beside their matrices, where the next Start takes them from.
	// They are as those of Write. It returns once the caller may change the values. Runs may be
	// under way, and do not see them.
	Feed(values ...Filled) error

	// Start begins a run behind those under way, of which there may be Ahead, and returns. The run
	// begins by copying what was fed into place. Of what was fed and what was written before, the last
	// holds. Until Wait was called for each run, only Feed, Start and Close may be called.
	Start() error

	// Wait waits for the end of the oldest run under way, and returns its error. A run behind one
	// that failed may fail as well.
	Wait() error
}

// A Filled matrix is one with values for its first rows, whole ones.
type Filled struct {
	Matrix *schedule.Matrix
	Values []float32
}
