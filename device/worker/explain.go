package worker

import (
	"rnnbench/device"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Explain implements device.Explainer; a device that is none has nothing to say.
func (d *Device) Explain(s *schedule.Schedule, k knob.Params) (device.Explanation, error) {
	r, err := d.about(compiling*d.o.Timeout, request{Call: callExplain, Knobs: k}, s)
	return r.Explained, err
}

// Predict implements device.Predictor; a device that is none knows no time.
func (d *Device) Predict(s *schedule.Schedule, k knob.Params) (device.Prediction, error) {
	r, err := d.about(d.o.Timeout, request{Call: callPredict, Knobs: k}, s)
	return r.Predicted, err
}
