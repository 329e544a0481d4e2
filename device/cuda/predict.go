package cuda

import (
	"errors"

	"rnnbench/device"
	"rnnbench/device/cuda/lower"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

var _ device.Predictor = (*Device)(nil)

// Predict implements device.Predictor.
func (d *Device) Predict(s *schedule.Schedule, k knob.Params) (device.Prediction, error) {
	p, err := d.lower(s, k)
	if err != nil {
		return device.Prediction{}, err
	}
	_, nodes, err := p.Emit(0)
	if err != nil {
		return device.Prediction{}, err
	}
	dispatch, err := dispatchOn(d)
	if err != nil {
		return device.Prediction{}, err
	}
	return device.Prediction{Seconds: p.Predict(nodes, p.Knobs["graph"] != 0, dispatch), Error: predictionError}, nil
}

// predictionError is the relative error of Lowering.Predict.
const predictionError = 0.25

// TimeLaunches makes predictions use the cost of launches on this device, which the first
// prediction measures. Without it, predictions assume the H200 of the model's fit.
func (d *Device) TimeLaunches() { d.timed = true }

// dispatchOn measures the cost of launches on d once. If it fails, predictions use the cost at the fit.
func dispatchOn(d *Device) (lower.Dispatch, error) {
	if !d.timed {
		return d.dispatch, nil
	}
	d.timed = false
	m := meter{device: d}
	err := m.ready()
	if err == nil {
		d.dispatch, err = m.dispatch()
	}
	if err = errors.Join(err, m.free()); errors.Is(err, device.ErrFault) {
		return d.dispatch, err
	}
	return d.dispatch, nil
}
