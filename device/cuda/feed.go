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

// A feeder holds the input of a program's next run. Values go from host memory that the GPU can
// reach to places on the GPU, on a stream of their own. The run first copies them from there.
type feeder struct {
	places       []*place
	copied       driver.Event // recorded when the latest values are in their places
	taken        driver.Event // recorded when the latest run or Write has emptied the places
	runs         [device.Ahead]started
	begun, ended int // counts of runs; run n is runs[n % device.Ahead]
}

// A started run has begun and awaits Wait.
type started struct {
	end    driver.Event
	status []byte // where the GPU copies the status word after the run
}

// A place is where the next values of a matrix wait on the GPU.
type place struct {
	matrix *schedule.Matrix
	at     driver.Pointer
	host   []byte
	bytes  int // number of waiting bytes; 0: none
}

// Feed implements device.Fed.
func (p *program) Feed(values ...device.Filled) error {
	var places []*place // all are made before the first copy, since memory may run out
	for _, v := range values {
		if err := p.fits(v.Matrix, len(v.Values)); err != nil {
			return err
		}
		at, err := placeOf(p, v.Matrix)
		if err != nil {
			return fmt.Errorf("cuda: memory for the next values of matrix %s: %w", v.Matrix.Name, err)
		}
		places = append(places, at)
	}
	if len(places) == 0 {
		return nil
	}
	d, f := p.device.driver, p.feeder
	err := d.WaitFor(f.taken, driver.Copies)
	if err == nil {
		err = d.Await(f.copied) // now the host's memory may be overwritten
	}
	for i, v := range values {
		if err != nil {
			break
		}
		at, e := places[i], p.lowering.Elements[v.Matrix.ID]
		bytes := at.host[:len(v.Values)*e.Bytes()]
		driver.EncodeTo(bytes, v.Values, e)
		err = d.CopyIn(at.at, bytes, driver.Copies)
		at.bytes = max(at.bytes, len(bytes)) // later rows may have been fed before
	}
	if err == nil {
		err = d.Record(f.copied, driver.Copies)
	}
	if err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// feeds makes the feeder of p, once.
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
	// Events are reused. Record them anew, since no one may wait for one that an earlier program
	// recorded in a graph.
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

// placeOf returns the place of m and makes it at first use.
func placeOf(p *program, m *schedule.Matrix) (*place, error) {
	if err := feeds(p); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(p.feeder.places, func(at *place) bool { return at.matrix.ID == m.ID }); i >= 0 {
		return p.feeder.places[i], nil
	}
	d, bytes := p.device.driver, m.Elements()*p.lowering.Elements[m.ID].Bytes()
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

// take copies waiting values to their matrices on stream 0; unless m is nil, only those of m.
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
		p.stale = p.stale || lower.CountsOn(p.lowering, at.matrix)
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
	if err := refreshStale(p); err != nil {
		return err
	}
	run := func() error { return p.issue(&p.run) }
	if p.graphed {
		run = func() error { return d.Replay(p.graph) }
	}
	err := run()
	at := &f.runs[f.begun%len(f.runs)]
	if err == nil {
		err = d.CopyOut(at.status, p.base+driver.Pointer(p.lowering.StatusOffset))
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
	return p.statusError([4]byte(at.status))
}

// free frees the feeder of p once all copies and runs have ended.
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
