package device

import "rnnbench/rnn/schedule"

// Ahead is the most runs of a Fed program under way: one that executes and one that waits.
const Ahead = 2

// A Fed program accepts the values of its next run while the current one executes. Other programs
// need a Write between runs.
type Fed interface {
	// Feed stages values for the next Start, with the meaning of Write. The caller may change the
	// values once Feed returns. Runs under way do not see them.
	Feed(values ...Filled) error

	// Start enqueues a run and returns; at most Ahead runs may be under way. The run begins by
	// copying the staged values into their matrices. If a matrix was both fed and written, the
	// later call counts. Until Wait has been called for each run, only Feed, Start and Close may be
	// called.
	Start() error

	// Wait waits for the end of the oldest run under way and returns its error. Runs after a failed
	// one may fail too.
	Wait() error
}

// A Filled is a matrix with values for its first rows. The values fill whole rows.
type Filled struct {
	Matrix *schedule.Matrix
	Values []float32
}
