package lower

import (
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/schedule"
)

// control is where the blocks of the persistent operation at hand meet.
func (b *emitter) control() uint64 {
	return uint64(b.Base) + uint64(b.plan.meeting[b.at])
}

// forwards is op by the kernel that knobs name, or the one expected to be the
// fastest of those that fit.
func (b *emitter) forwards(op schedule.Persistent) ([]launch.Command, error) {
	l := b.plan.layers[b.at]
	switch form := l.config; {
	case l.err != nil:
		return nil, l.err
	case form.Grouped():
		return []launch.Command{persistent.LaunchForward(b.Target, op, form, b.control(), b.ordered(op, form), b.plan.sides > 1)}, nil
	}
	return persistent.Fit(b.Target, persistent.LaunchBarrierForward(b.Target, op, b.control()))
}

// backwards is op by the kernel that knobs name, or the one expected to be the
// fastest of those that fit.
func (b *emitter) backwards(op schedule.PersistentBackward) ([]launch.Command, error) {
	l := b.plan.layers[b.at]
	switch form := l.config; {
	case l.err != nil:
		return nil, l.err
	case form.Grouped():
		return []launch.Command{persistent.LaunchBackward(b.Target, op, form, b.control(), b.plan.sides > 1)}, nil
	}
	return persistent.Fit(b.Target, persistent.LaunchBarrierBackward(b.Target, op, b.control()))
}

// ordered reports whether op's weights are all packed as t takes them.
func (b *emitter) ordered(op schedule.Persistent, t persistent.Config) bool {
	for _, r := range op.R {
		if b.plan.weights[r.M.ID] != t.Order {
			return false
		}
	}
	return true
}
