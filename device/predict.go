package device

import (
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Predictor is a device that can predict the time of a run before compiling or running anything.
type Predictor interface {
	// Predict declines whatever Compile would decline, as far as this can be known without
	// compiling kernels.
	Predict(s *schedule.Schedule, k knob.Params) (Prediction, error)
}

// A Prediction is a cost model's prediction for a run.
type Prediction struct {
	Seconds float64 // of one run among many; 0: there is no model
	Error   float64 // relative error of the model on the data that it was fitted to: the standard deviation of the logarithm
}
