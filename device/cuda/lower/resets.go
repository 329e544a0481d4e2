package lower

import (
	"fmt"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// declineResets declines sequences that begin anew where no kernel has them do so.
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
		case schedule.Persistent, schedule.PersistentBackward:
			return fmt.Errorf("cuda: %w: a kernel that keeps weights on chip carries states through all steps: set resets to none, or take cudnnstyle", schedule.ErrResets)
		}
	}
	return nil
}
