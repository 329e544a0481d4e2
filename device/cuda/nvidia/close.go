//go:build cuda

package nvidia

import (
	"errors"

	"gorgonia.org/cu"

	"rnnbench/device/cuda/driver"
)

// Close frees all that the driver holds and gives the primary context back, which may go on with
// the work of others. Programs must have been closed.
func (d *gpu) Close() error {
	leave, err := d.Enter()
	if err != nil {
		return err
	}
	errs := []error{failure(cu.Synchronize())}
	errs = append(errs, d.dnn.close(), d.blas.close())
	for id := range d.graphs {
		errs = append(errs, d.FreeGraph(id))
	}
	for _, space := range d.spaces {
		errs = append(errs, failure(cu.MemFree(cu.DevicePtr(space))))
	}
	for i := range d.streams {
		errs = append(errs, failure(d.streams[i].Destroy()))
	}
	if d.copies != nil {
		errs = append(errs, failure(d.copies.Destroy()))
	}
	for i := range d.events {
		errs = append(errs, d.do("cuEventDestroy_v2", handle(&d.events[i])))
	}
	for _, b := range d.stage.buffer {
		if b != nil {
			errs = append(errs, d.FreeHostMemory(b))
		}
	}
	for _, m := range d.modules {
		errs = append(errs, failure(m.Unload()))
	}
	clear(d.sequences)
	d.spaces, d.streams, d.copies, d.events, d.stage, d.modules = nil, nil, nil, nil, stage{}, nil
	d.unused, d.timed = map[bool][]driver.Event{}, map[driver.Event]bool{}
	leave()
	return errors.Join(append(errs, d.release())...)
}

func (b *blas) close() error {
	if b == nil {
		return nil
	}
	var errs []error
	for _, h := range b.handles {
		errs = append(errs, b.do("cublasDestroy_v2", h))
	}
	b.handles = nil
	return errors.Join(errs...)
}

// close ends the builders and destroys networks and handles.
func (d *dnn) close() error {
	if d == nil {
		return nil
	}
	for n := range d.building {
		if w := d.take(n); w != nil {
			d.networks = append(d.networks, w)
		}
	}
	if d.jobs != nil {
		close(d.jobs)
		d.jobs = nil
	}
	var errs []error
	for _, w := range d.networks {
		errs = append(errs, d.do("cudnnDestroyRNNDescriptor", w.rnn), d.do("cudnnDestroyRNNDataDescriptor", w.x), d.do("cudnnDestroyRNNDataDescriptor", w.y),
			d.do("cudnnDestroyTensorDescriptor", w.h), d.do("cudnnDestroyTensorDescriptor", w.talk.weight), d.do("cudnnDestroyTensorDescriptor", w.talk.bias),
			failure(cu.MemFree(w.lengths)))
	}
	if d.dropout != 0 {
		errs = append(errs, d.do("cudnnDestroyDropoutDescriptor", d.dropout))
	}
	for _, h := range d.handles {
		errs = append(errs, d.do("cudnnDestroy", h))
	}
	d.networks, d.dropout, d.handles = nil, 0, nil
	return errors.Join(errs...)
}
