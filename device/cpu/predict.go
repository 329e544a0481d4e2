package cpu

import (
	"fmt"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device"
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/predict"
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

var _ device.Predictor = (*Device)(nil)

// Predict implements device.Predictor.
func (d *Device) Predict(s *schedule.Schedule, k knob.Params) (device.Prediction, error) {
	f, k, err := d.settle(s, k)
	if err != nil {
		return device.Prediction{}, err
	}
	d = d.limited(k)
	sec, err := predict.Seconds(d.outline(s, f, k), host(d.kernels.Level()))
	return device.Prediction{Seconds: sec, Error: predict.Error}, err
}

// settle fills in the defaults of knobs and returns the format of packed weights. It declines what
// d cannot run.
func (d *Device) settle(s *schedule.Schedule, k knob.Params) (simd.Format, knob.Params, error) {
	k, err := k.Complete(d.Knobs(s))
	if err != nil {
		return 0, nil, fmt.Errorf("cpu: %w", err)
	}
	f, err := format(s)
	if err == nil {
		err = d.limited(k).declined(s, f, k)
	}
	return f, k, err
}

// host describes the host, with kernels of a level, to the cost model.
func host(l simd.Level) predict.Machine {
	own := int64(gemm.DetectL2())
	if own == 0 {
		own = 256 << 10
	}
	return predict.Machine{Level: l, Near: int64(nearest()), Own: own, Last: max(int64(cpuid.CPU.Cache.L3), leastL3)}
}
