package worker

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"rnnbench/device"
)

// Call implements device.Caller. The worker makes the calls, so no time includes the pipe. The time
// limit is computed as in Run.
func (p *remote) Call(c device.Calls) (device.Called, error) {
	if err := c.Check(); err != nil {
		return device.Called{}, err
	}
	if err := errors.Join(p.fits(c.In, c.Each), p.fits(c.Out, c.Read)); err != nil {
		return device.Called{}, err
	}
	q := request{Call: callCalls, Matrix: c.In.ID, Out: c.Out.ID, Each: c.Each, Read: c.Read, Runs: c.N}
	limit := p.device.o.Timeout + time.Duration(c.N)*(10*p.perRun+transfer(c.Each+c.Read))
	inputs := c.Inputs
	if p.device.shared {
		through, err := p.device.window.reach(len(inputs), true)
		if err != nil {
			return device.Called{}, err
		}
		device.Copy(through, inputs)
		q.Window, q.Size, inputs = true, 4*len(inputs), nil
	}
	r, err := p.call(limit, q, inputs, nil)
	if err == nil && (len(r.Called.Wall) != c.N || len(r.Called.Run) != c.N) {
		return device.Called{}, fmt.Errorf("worker: it timed %d of %d calls", len(r.Called.Wall), c.N)
	}
	for _, d := range r.Called.Run {
		p.perRun = max(p.perRun, d)
	}
	return r.Called, err
}

// calls makes the calls, without garbage collection meanwhile.
func (s *server) calls(p program, c call, r *response) (err error) {
	if c.Out < 0 || c.Out >= len(p.schedule.Matrices) || c.Size < 0 || c.Size%4 != 0 {
		return fmt.Errorf("worker: calls with %d bytes and matrix %d", c.Size, c.Out)
	}
	if c.Window {
		if s.window == nil {
			return errors.New("worker: no shared memory")
		}
		if c.data, err = s.window.reach(c.Size/4, false); err != nil {
			return err
		}
	}
	in, out := p.schedule.Matrices[c.Matrix], p.schedule.Matrices[c.Out]
	if c.Each > in.Elements() || c.Read > out.Elements() || c.Runs > mostCalls {
		return fmt.Errorf("worker: %d calls write %d elements of matrix %s and read %d of %s", c.Runs, c.Each, in.Name, c.Read, out.Name)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	r.Called, err = device.Call(p.Program, device.Calls{In: in, Inputs: c.data, Each: c.Each, Out: out, Read: c.Read, N: c.Runs})
	return err
}

// mostCalls is the most calls of one request.
const mostCalls = 1 << 16
