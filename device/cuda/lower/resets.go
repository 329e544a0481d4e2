package lower

import (
	"fmt"

	"rnnbench/rnn/schedule"
)

// declineResets declines sequences that begin anew where no kernel has them do so.
func declineResets(s *schedule.Schedule) error {
	for op := range s.Operations() {
		if schedule.Keeping(op).Empty() {
			continue
		}
		switch op.(type) {
		case schedule.Persistent, schedule.PersistentBackward, schedule.Scan, schedule.ScanBackward:
			return fmt.Errorf("cuda: %w: the kernels of %s carry states through all steps: set resets to none, or take cudnnstyle", schedule.ErrResets, op.Name())
		}
	}
	return nil
}
