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
