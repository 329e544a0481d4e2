package device

import (
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Predictor is a device that knows about how long a run takes before it compiles or
// runs anything.
type Predictor interface {
	// Predict declines what Compile would decline, as far as that shows without
	// compiling kernels.
	Predict(s *schedule.Schedule, k knob.Params) (Prediction, error)
}

// A Prediction is what a cost model expects of a run.
type Prediction struct {
	Seconds float64 // of one run among many; 0: no model knows it
	Error   float64 // relative error of the model where it was fitted: the standard deviation of the logarithm
}
