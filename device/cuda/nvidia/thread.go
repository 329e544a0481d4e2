//go:build cuda

package nvidia

import (
	"errors"
	"runtime"

	"gorgonia.org/cu"

	"rnnbench/device/cuda/driver"
)

// A context is the GPU's primary context, which threads enter. Its calls are prepared, since a host
// program makes them around each call.
type context struct {
	cu.CUContext
	of   cu.Device
	now  uintptr // the current context of the thread that asked last
	get  prepared
	push prepared
	pop  prepared

	stay, leave func() // undo Enter where the context was current, and where it was not
}

// ready prepares the calls.
func (c *context) ready(d *gpu) error {
	var err [3]error
	c.get, err[0] = prepare(d.call("cuCtxGetCurrent", address(&c.now)))
	c.push, err[1] = prepare(d.call("cuCtxPushCurrent_v2", contextHandle(c)))
	c.pop, err[2] = prepare(d.call("cuCtxPopCurrent_v2", address(&c.now)))
	c.stay = runtime.UnlockOSThread
	c.leave = func() {
		_ = c.pop.make() // there is nothing else that a caller could do
		runtime.UnlockOSThread()
	}
	return errors.Join(err[:]...)
}

// Enter implements driver.Host.
func (d *gpu) Enter() (leave func(), err error) {
	runtime.LockOSThread()
	c := &d.context
	if err = c.get.make(); err == nil && c.now == contextHandle(c) {
		return c.stay, nil
	}
	if err == nil {
		err = c.push.make()
	}
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return c.leave, nil
}

// release gives the primary context back. It is destroyed when nobody in the process uses it.
func (d *gpu) release() error { return failure(d.context.of.ReleasePrimaryCtx()) }

// A hosting has the prepared calls by which streams wait for those of a host program.
type hosting struct {
	record, wait, ask prepared
	status            int32 // answer of ask
}

// ready prepares the calls, once.
func (h *hosting) ready(d *gpu) error {
	if h.ask.of != nil {
		return nil
	}
	var err [3]error
	h.record, err[0] = prepare(d.call("cuEventRecord", 0, 0))
	h.wait, err[1] = prepare(d.call("cuStreamWaitEvent", 0, 0, 0))
	h.ask, err[2] = prepare(d.call("cuStreamIsCapturing", 0, address(&h.status)))
	return errors.Join(err[:]...)
}

// order makes later work of a stream wait for all earlier work of another.
func (h *hosting) order(d *gpu, first, then uintptr, e driver.Event) error {
	if err := h.ready(d); err != nil {
		return err
	}
	event := handle(&d.events[e])
	h.record.set(0, event)
	h.record.set(1, first)
	h.wait.set(0, then)
	h.wait.set(1, event)
	if err := h.record.make(); err != nil {
		return err
	}
	return h.wait.make()
}

// Fork implements driver.Host.
func (d *gpu) Fork(stream uintptr, e driver.Event) error {
	return d.hosting.order(d, stream, handle(&d.streams[0]), e)
}

// Join implements driver.Host.
func (d *gpu) Join(stream uintptr, e driver.Event) error {
	return d.hosting.order(d, handle(&d.streams[0]), stream, e)
}

// Capturing implements driver.Host. The default stream cannot be captured.
func (d *gpu) Capturing(stream uintptr) (bool, error) {
	if stream == 0 {
		return false, nil
	}
	h := &d.hosting
	if err := h.ready(d); err != nil {
		return false, err
	}
	h.ask.set(0, stream)
	err := h.ask.make()
	return h.status != 0, err
}
