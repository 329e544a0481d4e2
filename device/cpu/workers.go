package cpu

import (
	"fmt"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// limited returns d with as many workers as knobs ask for. The others sleep while its programs run.
func (d *Device) limited(k knob.Params) *Device {
	n := k["workers"]
	if n == 0 || n >= d.workers {
		return d
	}
	few := *d
	few.workers = n
	if len(d.meetings) > n {
		few.crew = crew{meetings: d.meetings[:n+1], handovers: d.handovers[:n+1]}
	}
	return &few
}

// workerKnob returns the knob "workers". With more than a few workers, powers of two are worth
// trying.
func workerKnob(workers int) []knob.Knob {
	if workers < 2 {
		return nil
	}
	values := []int{0}
	for n := 1; n < workers && workers > watched; n *= 2 {
		values = append(values, n)
	}
	return []knob.Knob{offer("workers", workers, values...)}
}

// seated declines more teams than there are workers.
func seated(pl *planner, k knob.Params) error {
	if n := k["teams"]; n > pl.workers {
		return fmt.Errorf("cpu: teams=%d: %w: more teams than workers (%d): set fewer teams", n, schedule.ErrKnob, pl.workers)
	}
	return nil
}
