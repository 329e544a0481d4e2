package lower

import (
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/schedule"
)

// control is where the blocks of the persistent operation at hand meet.
func (e *emitter) control() uint64 {
	return uint64(e.Base) + uint64(e.plan.barriers[e.at])
}

// forwards is op by the kernel that knobs name, or the one expected to be the
// fastest of those that fit.
func (e *emitter) forwards(op schedule.Persistent) ([]launch.Command, error) {
	l := e.plan.layers[e.at]
	switch form := l.config; {
	case l.err != nil:
		return nil, l.err
	case form.Grouped():
		return []launch.Command{persistent.LaunchForward(e.Target, op, form, e.control(), e.ordered(op, form), e.plan.sides > 1)}, nil
	}
	return persistent.Fit(e.Target, persistent.LaunchBarrierForward(e.Target, op, e.control()))
}

// backwards is op by the kernel that knobs name, or the one expected to be the
// fastest of those that fit.
func (e *emitter) backwards(op schedule.PersistentBackward) ([]launch.Command, error) {
	l := e.plan.layers[e.at]
	switch form := l.config; {
	case l.err != nil:
		return nil, l.err
	case form.Grouped():
		return []launch.Command{persistent.LaunchBackward(e.Target, op, form, e.control(), e.plan.sides > 1)}, nil
	}
	return persistent.Fit(e.Target, persistent.LaunchBarrierBackward(e.Target, op, e.control()))
}

// ordered reports whether op's weights are all packed as t takes them.
func (e *emitter) ordered(op schedule.Persistent, t persistent.Config) bool {
	for _, r := range op.R {
		if e.plan.weights[r.M.ID] != t.Order {
			return false
		}
	}
	return true
}
