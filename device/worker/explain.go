package worker

import (
	"rnnbench/device"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Explain implements device.Explainer. The result is empty if the device is no Explainer.
func (d *Device) Explain(s *schedule.Schedule, k knob.Params) (device.Explanation, error) {
	r, err := d.about(compiling*d.o.Timeout, request{Call: callExplain, Knobs: k}, s)
	return r.Explained, err
}

// Predict implements device.Predictor. The result is zero if the device is no Predictor.
func (d *Device) Predict(s *schedule.Schedule, k knob.Params) (device.Prediction, error) {
	r, err := d.about(d.o.Timeout, request{Call: callPredict, Knobs: k}, s)
	return r.Predicted, err
}
