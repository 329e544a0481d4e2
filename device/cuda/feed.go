package cuda

import (
	"errors"
	"fmt"
	"slices"

	"rnnbench/device"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/lower"
	"rnnbench/rnn/schedule"
)

var _ device.Fed = (*program)(nil)

// A feeder has what the next run of a program is given. Values go through memory of the host that
// the GPU reaches by itself to places on the GPU, on a stream of their own. The run copies them
// from there, ahead of all else.
type feeder struct {
	places       []*place
	copied       driver.Event // the latest values are in their places
	taken        driver.Event // the latest run, or Write, has copied what was in the places
	runs         [device.Ahead]started
	begun, ended int // runs; the n-th is runs[n % device.Ahead]
}

// A started run is one that Wait tells the end of.
type started struct {
	end    driver.Event
	status []byte // where the GPU copies the status word behind the run
}

// A place is where the values of a matrix wait.
type place struct {
	matrix *schedule.Matrix
	at     driver.Pointer
	host   []byte
	bytes  int // that wait; 0: none
}

// Feed implements device.Fed.
func (p *program) Feed(values ...device.Filled) error {
	var places []*place // all of them before the first copy: there may be no memory
	for _, v := range values {
		if err := p.fits(v.Matrix, len(v.Values)); err != nil {
			return err
		}
		at, err := placeOf(p, v.Matrix)
		if err != nil {
			return fmt.Errorf("cuda: a place for the next values of matrix %s: %w", v.Matrix.Name, err)
		}
		places = append(places, at)
	}
	if len(places) == 0 {
		return nil
	}
	d, f := p.device.driver, p.feeder
	err := d.WaitFor(f.taken, driver.Copies)
	if err == nil {
		err = d.Await(f.copied) // the host's memory is free again
	}
	for i, v := range values {
		if err != nil {
			break
		}
		at, e := places[i], p.plan.Elements[v.Matrix.ID]
		bytes := at.host[:len(v.Values)*e.Bytes()]
		driver.EncodeTo(bytes, v.Values, e)
		err = d.CopyIn(at.at, bytes, driver.Copies)
		at.bytes = max(at.bytes, len(bytes)) // rows behind these were fed before
	}
	if err == nil {
		err = d.Record(f.copied, driver.Copies)
	}
	if err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// feeds readies the feeder of p, once.
func feeds(p *program) error {
	if p.feeder != nil {
		return nil
	}
	f := &feeder{}
	var err error
	if f.copied, err = p.event(false); err != nil {
		return err
	}
	if f.taken, err = p.event(false); err != nil {
		return err
	}
	// Events are used again, and nobody can wait for one that an earlier program recorded in a graph.
	d := p.device.driver
	if err = errors.Join(d.Record(f.copied, driver.Copies), d.Record(f.taken, 0)); err != nil {
		return err
	}
	for i := range f.runs {
		at := &f.runs[i]
		if at.end, err = p.event(false); err != nil {
			return err
		}
		if at.status, err = d.HostMemory(4); err != nil {
			return err
		}
	}
	p.feeder = f
	return nil
}

// placeOf is that of m, which is made at its first use.
func placeOf(p *program, m *schedule.Matrix) (*place, error) {
	if err := feeds(p); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(p.feeder.places, func(at *place) bool { return at.matrix.ID == m.ID }); i >= 0 {
		return p.feeder.places[i], nil
	}
	d, bytes := p.device.driver, m.Elements()*p.plan.Elements[m.ID].Bytes()
	host, err := d.HostMemory(bytes)
	if err != nil {
		return nil, err
	}
	at, err := d.Alloc(int64(bytes))
	if err != nil {
		return nil, errors.Join(err, d.FreeHostMemory(host))
	}
	new := &place{matrix: m, host: host, at: at}
	p.feeder.places = append(p.feeder.places, new)
	return new, nil
}

// take copies what waits, for m alone unless that is nil, to its matrix on stream 0.
func (p *program) take(m *schedule.Matrix) error {
	if p.feeder == nil {
		return nil
	}
	d, f, any := p.device.driver, p.feeder, false
	for _, at := range f.places {
		if at.bytes == 0 || m != nil && at.matrix.ID != m.ID {
			continue
		}
		if !any {
			if err := d.WaitFor(f.copied, 0); err != nil {
				return err
			}
		}
		if err := d.Copy(p.address(at.matrix), at.at, int64(at.bytes)); err != nil {
			return err
		}
		at.bytes, any = 0, true
		p.stale = p.stale || lower.CountsOn(p.plan, at.matrix)
	}
	if any {
		return d.Record(f.taken, 0)
	}
	return nil
}

// Start implements device.Fed.
func (p *program) Start() error {
	if p.closed {
		return errClosed
	}
	if err := feeds(p); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	d, f := p.device.driver, p.feeder
	if f.begun-f.ended == len(f.runs) {
		return fmt.Errorf("cuda: %d runs are under way", len(f.runs))
	}
	if p.graphed {
		if err := p.capture(); err != nil {
			return fmt.Errorf("cuda: capturing a graph: %w", err)
		}
	}
	if err := p.take(nil); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	if err := freshen(p); err != nil {
		return err
	}
	run := func() error { return p.issue(&p.run) }
	if p.graphed {
		run = func() error { return d.Replay(p.graph) }
	}
	err := run()
	at := &f.runs[f.begun%len(f.runs)]
	if err == nil {
		err = d.CopyOut(at.status, p.base+driver.Pointer(p.plan.StatusOffset))
	}
	if err == nil {
		err = d.Record(at.end, 0)
	}
	if err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	f.begun++
	return nil
}

// Wait implements device.Fed.
func (p *program) Wait() error {
	switch {
	case p.closed:
		return errClosed
	case p.feeder == nil || p.feeder.begun == p.feeder.ended:
		return errors.New("cuda: no run was started")
	}
	f := p.feeder
	at := &f.runs[f.ended%len(f.runs)]
	f.ended++
	if err := p.device.driver.Await(at.end); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return p.heard([4]byte(at.status))
}

// free frees the feeder of p once nothing is copied any more.
func (f *feeder) free(p *program) error {
	if f == nil {
		return nil
	}
	d := p.device.driver
	errs := []error{d.Await(f.copied)}
	for ; f.ended < f.begun; f.ended++ {
		errs = append(errs, d.Await(f.runs[f.ended%len(f.runs)].end))
	}
	for _, at := range f.runs {
		errs = append(errs, d.FreeHostMemory(at.status))
	}
	for _, at := range f.places {
		errs = append(errs, d.FreeHostMemory(at.host), d.Free(at.at))
	}
	return errors.Join(errs...)
}
