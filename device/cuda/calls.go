package cuda

import (
	"errors"
	"fmt"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/schedule"
)

// Call implements device.Caller. Inputs and outputs are as the GPU stores them, in memory that it
// reaches by itself. Copies and runs follow each other on stream 0; the host waits once a call. The
// time of a run is that between two events.
func (p *program) Call(c device.Calls) (all device.Called, err error) {
	if err := errors.Join(c.Check(), p.fits(c.In, c.Each), p.fits(c.Out, c.Read)); err != nil {
		return all, err
	}
	d := p.device.driver
	if p.graphed {
		if err := p.capture(); err != nil {
			return all, fmt.Errorf("cuda: capturing a graph: %w", err)
		}
	}
	in, out, err := p.hostMemory(c)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, d.FreeHostMemory(in), d.FreeHostMemory(out)) }()
	done, err := d.NewEvent(false)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, d.FreeEvent(done)) }()
	all.Wall, all.Run = make([]time.Duration, c.N), make([]time.Duration, c.N)
	each := c.Each * p.plan.Elements[c.In.ID].Bytes()
	for i := range c.N {
		x := in[i%(len(in)/each)*each:][:each]
		start := time.Now()
		if err := p.callOnce(p.address(c.In), x, out, p.address(c.Out), done); err != nil {
			return all, err
		}
		all.Wall[i] = time.Since(start)
		seconds, err := d.Elapsed(p.begin, p.end)
		if err != nil {
			return all, fmt.Errorf("cuda: %w", err)
		}
		all.Run[i] = time.Duration(seconds * 1e9)
	}
	all.Throttled = d.Throttled()
	return all, p.told()
}

// callOnce copies x to in, runs, copies out from where it is, and waits for that.
func (p *program) callOnce(in driver.Pointer, x, out []byte, from driver.Pointer, done driver.Event) error {
	d := p.device.driver
	err := d.CopyIn(in, x, 0)
	if err == nil {
		err = d.Record(p.begin, 0)
	}
	switch {
	case err != nil:
	case p.graphed:
		err = d.Replay(p.graph)
	default:
		err = p.issue(&p.run)
	}
	if err == nil {
		err = d.Record(p.end, 0)
	}
	if err == nil {
		err = d.CopyOut(out, from)
	}
	if err == nil {
		err = d.Record(done, 0)
	}
	if err == nil {
		err = d.Await(done)
	}
	if err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// address is where m lies.
func (p *program) address(m *schedule.Matrix) driver.Pointer {
	return p.base + driver.Pointer(p.plan.Offsets[m.ID])
}

// hostMemory is memory for the inputs of calls, which it fills, and for an output.
func (p *program) hostMemory(c device.Calls) (in, out []byte, err error) {
	d := p.device.driver
	values := driver.Encode(c.Inputs, p.plan.Elements[c.In.ID])
	if in, err = d.HostMemory(len(values)); err != nil {
		return nil, nil, fmt.Errorf("cuda: %w", err)
	}
	copy(in, values)
	if out, err = d.HostMemory(c.Read * p.plan.Elements[c.Out.ID].Bytes()); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cuda: %w", err), d.FreeHostMemory(in))
	}
	return in, out, nil
}
