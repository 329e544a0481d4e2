package worker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"rnnbench/device"
)

// A fedRemote is a program in the worker that accepts values while it runs. Only the call of Wait
// waits for a run.
type fedRemote struct {
	*remote
	started []time.Time // start times of the runs under way
}

// limit is the time limit of a call that may have to wait for a run.
func (p *fedRemote) limit() time.Duration { return p.device.o.Timeout + 10*p.perRun }

// Feed implements device.Fed. All values travel with one call.
func (p *fedRemote) Feed(values ...device.Filled) error {
	q := request{Call: callFeed}
	var n int
	for _, v := range values {
		if err := p.fits(v.Matrix, len(v.Values)); err != nil {
			return err
		}
		q.Fills = append(q.Fills, fill{v.Matrix.ID, 4 * len(v.Values)})
		n += len(v.Values)
	}
	var all []float32
	if p.device.shared {
		through, err := p.device.window.reach(n, true)
		if err != nil {
			return err
		}
		for _, v := range values {
			through = through[device.Copy(through, v.Values):]
		}
		q.Window, q.Size = true, 4*n
	} else {
		for _, v := range values {
			all = append(all, v.Values...)
		}
	}
	_, err := p.call(p.limit()+transfer(n), q, all, nil)
	return err
}

// Start implements device.Fed.
func (p *fedRemote) Start() error {
	now := time.Now()
	_, err := p.call(p.limit(), request{Call: callStart}, nil, nil)
	if err == nil {
		p.started = append(p.started, now)
	}
	return err
}

// Wait implements device.Fed. Its time limit is computed as in Run.
func (p *fedRemote) Wait() error {
	_, err := p.call(p.limit(), request{Call: callWait}, nil, nil)
	if len(p.started) == 0 {
		return err
	}
	if err == nil { // a run that waited for another one seems to take the time of both
		p.perRun = max(p.perRun, time.Since(p.started[0]))
	}
	p.started = slices.Delete(p.started, 0, 1)
	return err
}

// fed makes a call of device.Fed.
func (s *server) fed(p program, c call) error {
	f, ok := p.Program.(device.Fed)
	if !ok {
		return errors.New("worker: the program cannot be fed while it runs")
	}
	switch c.Call {
	case callStart:
		return f.Start()
	case callWait:
		return f.Wait()
	}
	values, err := s.filled(p, c)
	if err != nil {
		return err
	}
	return f.Feed(values...)
}

// filled returns the matrices of a feed call with their values.
func (s *server) filled(p program, c call) (values []device.Filled, err error) {
	all := c.data
	if c.Window {
		if s.window == nil {
			return nil, errors.New("worker: no shared memory")
		}
		if c.Size < 0 {
			return nil, fmt.Errorf("worker: %d bytes to feed", c.Size)
		}
		if all, err = s.window.reach(c.Size/4, false); err != nil {
			return nil, err
		}
	}
	for _, f := range c.Fills {
		if f.Matrix < 0 || f.Matrix >= len(p.schedule.Matrices) {
			return nil, fmt.Errorf("worker: unknown matrix %d to feed", f.Matrix)
		}
		m := p.schedule.Matrices[f.Matrix]
		if f.Size < 0 || f.Size%4 != 0 || f.Size/4 > min(m.Elements(), len(all)) {
			return nil, fmt.Errorf("worker: %d bytes to feed do not match matrix %s", f.Size, m.Name)
		}
		values = append(values, device.Filled{Matrix: m, Values: all[:f.Size/4]})
		all = all[f.Size/4:]
	}
	if len(all) != 0 {
		return nil, fmt.Errorf("worker: %d bytes to feed belong to no matrix", 4*len(all))
	}
	return values, nil
}
