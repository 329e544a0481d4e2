package cuda

import (
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/schedule"
)

// control is where the blocks of the next persistent operation meet.
func (b *binder) control() uint64 {
	b.persistent++
	return uint64(b.Base) + uint64(b.layout.meeting[b.persistent-1])
}

// forwards is op by the kernel that knobs name, or the one expected to be the
// fastest of those that fit.
func (b *binder) forwards(op schedule.Persistent) ([]launch.Command, error) {
	form, _, err := b.Forward(op)
	switch {
	case err != nil:
		return nil, err
	case form.Grouped():
		return []launch.Command{persistent.LaunchForward(b.Target, op, form, b.control(), b.ordered(op, form), b.Sides > 1)}, nil
	}
	return persistent.Fit(b.Target, persistent.LaunchBarrierForward(b.Target, op, b.control()))
}

// backwards is op by the kernel that knobs name, or the one expected to be the
// fastest of those that fit.
func (b *binder) backwards(op schedule.PersistentBackward) ([]launch.Command, error) {
	form, _, err := b.Backward(op)
	switch {
	case err != nil:
		return nil, err
	case form.Grouped():
		return []launch.Command{persistent.LaunchBackward(b.Target, op, form, b.control(), b.Sides > 1)}, nil
	}
	return persistent.Fit(b.Target, persistent.LaunchBarrierBackward(b.Target, op, b.control()))
}

// ordered reports whether op's weights are all packed as t takes them.
func (b *binder) ordered(op schedule.Persistent, t persistent.Config) bool {
	for _, r := range op.R {
		if b.order[r.M.ID] != t.Order {
			return false
		}
	}
	return true
}
