package device

import (
	"errors"
	"time"

	"rnnbench/rnn/schedule"
)

// Calls are runs of a program one by one, as a server makes them. Before each run the host writes
// an input, and after it the host reads an output. The next call begins at once.
type Calls struct {
	In     *schedule.Matrix // each call writes its first rows
	Inputs []float32        // inputs of several calls, one after another; calls use them in rotation
	Each   int              // values that a call writes
	Out    *schedule.Matrix // each call reads its first rows
	Read   int              // values that a call reads
	N      int              // calls
}

// Check returns an error if a number is invalid.
func (c Calls) Check() error {
	if c.N < 1 || c.Each < 1 || c.Read < 1 || len(c.Inputs) < c.Each || len(c.Inputs)%c.Each != 0 {
		return errors.New("device: calls need at least one value to write and one to read, and a whole number of inputs")
	}
	return nil
}

// Called holds the time of each call, by the host's monotonic clock.
type Called struct {
	Wall      []time.Duration // from before the input is written until the output is read
	Run       []time.Duration // the run's part of it: by the device's own clock, or until the host knows that the run has ended
	Throttled bool            // any call was; see Sample
}

// Append appends the times of more calls.
func (c *Called) Append(more Called) {
	c.Wall, c.Run = append(c.Wall, more.Wall...), append(c.Run, more.Run...)
	c.Throttled = c.Throttled || more.Throttled
}

// A Caller is a program that makes calls closer to the device, such as in the worker process.
// Inputs and outputs may be in the device's own format, so no conversion is timed.
type Caller interface {
	Call(c Calls) (Called, error)
}

// mostCalls limits the calls of one request, whose times come back in one answer.
const mostCalls = 1 << 13

// Call runs p c.N times and times each call.
func Call(p Program, c Calls) (Called, error) {
	if err := c.Check(); err != nil {
		return Called{}, err
	}
	near, ok := p.(Caller)
	if !ok {
		return callHere(p, c)
	}
	all := Called{}
	for left := c.N; left > 0; left -= mostCalls {
		c.N = min(left, mostCalls)
		some, err := near.Call(c)
		if err != nil {
			return all, err
		}
		all.Append(some)
	}
	return all, nil
}

// callHere makes the calls through Write, Run and Read.
func callHere(p Program, c Calls) (Called, error) {
	all := Called{Wall: make([]time.Duration, c.N), Run: make([]time.Duration, c.N)}
	out := make([]float32, c.Read)
	inputs := len(c.Inputs) / c.Each
	for i := range c.N {
		x := c.Inputs[i%inputs*c.Each:][:c.Each]
		start := time.Now()
		if err := p.Write(c.In, x); err != nil {
			return all, err
		}
		begin := time.Now()
		one, err := p.Run(1)
		end := time.Now()
		if err == nil {
			err = p.Read(c.Out, out)
		}
		if err != nil {
			return all, err
		}
		all.Wall[i], all.Run[i] = time.Since(start), end.Sub(begin)
		all.Throttled = all.Throttled || one.Throttled
	}
	return all, nil
}
