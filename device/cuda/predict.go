package cuda

import (
	"rnnbench/device"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

var _ device.Predictor = (*Device)(nil)

// Predict implements device.Predictor.
func (d *Device) Predict(s *schedule.Schedule, k knob.Params) (device.Prediction, error) {
	p, err := d.plan(s, k)
	if err != nil {
		return device.Prediction{}, err
	}
	_, nodes, err := p.Emit(0)
	if err != nil {
		return device.Prediction{}, err
	}
	return device.Prediction{Seconds: p.Predict(nodes, p.Knobs["graph"] != 0), Error: predictionError}, nil
}

// predictionError is that of Plan.Predict.
const predictionError = 0.25
