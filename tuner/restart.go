package tuner

import (
	"errors"
	"fmt"

	"rnnbench/device"
	"rnnbench/record"
)

// mostRestarts is how many times a candidate's runs are started again, since blocks of a kernel gave up
// waiting for each other.
const mostRestarts = 3

// run makes n runs of c's program. If blocks of a kernel give up waiting for each other, it removes what
// they left, writes inputs and weights anew, and starts the runs again, as the runtime of persistent RNNs
// does (Diamos et al., blog of 2016). Only runs that end well are timed. Calls are not started again,
// since they go on from states that are lost.
func (c *candidate) run(n int) (device.Sample, error) {
	for {
		b, err := c.prog.Run(n)
		switch {
		case !errors.Is(err, device.ErrStuck) || c.Problem.Calls > 0:
			return b, err
		case c.restarts == mostRestarts:
			return b, fmt.Errorf("%w, though they were started again %d times", err, c.restarts)
		}
		c.restarts++
		c.warn(record.WarnRestarted)
		if err := c.rewrite(); err != nil {
			return b, err
		}
	}
}
