package lower

import (
	"fmt"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// declineResets declines resets of sequences if a scan has no kernel for them.
func declineResets(s *schedule.Schedule, k knob.Params) error {
	for op := range s.Operations() {
		if schedule.Keeping(op).Empty() {
			continue
		}
		switch op.(type) {
		case schedule.Scan, schedule.ScanBackward:
			if k["scanserial"] != 0 {
				return fmt.Errorf("cuda: scanserial=1: %w: the rival of a scan carries states through all steps: set resets to none", schedule.ErrKnob)
			}
		}
	}
	return nil
}

// withResets declines a layer with resets (column keep) if its kernel ignores them: grouped ones do not.
func (l *layer) withResets(keep schedule.View) {
	switch {
	case keep.Empty() || l.err != nil || l.stepwise:
	case l.config.Grouped():
	case l.refused != nil:
		l.err = l.refused
	default:
		l.err = fmt.Errorf("cuda: %w: the kernel with a barrier over the whole GPU carries states through all steps: set resets to none, or resident to another", schedule.ErrKnob)
	}
}
