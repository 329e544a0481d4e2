package device

import (
	"errors"
	"time"

	"rnnbench/rnn/schedule"
)

// Calls are runs of a program one by one, as a server makes them: before each the host writes an
// input, and after each it reads an output. The next begins at once.
type Calls struct {
	In     *schedule.Matrix // whose first rows each call writes
	Inputs []float32        // for several calls, one after another; the calls take them in turns
	Each   int              // values that a call writes
	Out    *schedule.Matrix // whose first rows each call reads
	Read   int              // values that a call reads
	N      int              // calls
}

// Check reports the first number that makes no sense.
func (c Calls) Check() error {
	if c.N < 1 || c.Each < 1 || c.Read < 1 || len(c.Inputs) < c.Each || len(c.Inputs)%c.Each != 0 {
		return errors.New("device: calls need at least one input and one output, and the values of whole inputs")
	}
	return nil
}

// A Called is what calls took, each alone, by the host's monotonic clock.
type Called struct {
	Wall      []time.Duration // from before the input is written until the output is read
	Run       []time.Duration // of that, the run alone: by the device's own clock, or until the host knows of its end
	Throttled bool            // of any; see Sample
}

// Append adds what more calls took.
func (c *Called) Append(more Called) {
	c.Wall, c.Run = append(c.Wall, more.Wall...), append(c.Run, more.Run...)
	c.Throttled = c.Throttled || more.Throttled
}

// A Caller is a program that makes calls nearer to the device than its user is. Inputs and outputs
// may be in the device's own format: no conversion is timed.
type Caller interface {
	Call(c Calls) (Called, error)
}

// mostCalls is how many calls are asked for at once: their times travel together.
const mostCalls = 1 << 13

// Call makes calls of p.
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

// callHere makes calls one by one.
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
