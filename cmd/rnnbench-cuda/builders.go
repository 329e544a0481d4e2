//go:build cuda

package main

import (
	"runtime"

	"gorgonia.org/cu"

	"rnnbench/device/cuda/driver"
)

// A building is a network that a builder readies: cuDNN compiles the kernels of
// some, which takes a second.
type building struct {
	of   driver.Network
	done chan struct{}
	w    *network
	err  error
}

// builders is how many networks are readied side by side. Each builder has a
// handle of its own, as threads must, and that takes memory.
const builders = 8

// begin has a builder ready n, unless one does. It starts the builders when the
// first is needed.
func (d *dnn) begin(n driver.Network, context cu.CUContext) {
	if d.building[n] != nil {
		return
	}
	if d.jobs == nil {
		d.jobs = make(chan *building, 1<<12)
		for range min(builders, runtime.NumCPU()) {
			go d.build(context)
		}
	}
	b := &building{of: n, done: make(chan struct{})}
	select {
	case d.jobs <- b:
		d.building[n] = b
	default: // so many wait that there is no hurry
	}
}

// build is a builder.
func (d *dnn) build(context cu.CUContext) {
	runtime.LockOSThread() // a context belongs to a thread
	var handle uintptr
	err := failure(cu.SetCurrentContext(context))
	if err == nil {
		err = d.do("cudnnCreate", address(&handle))
	}
	for b := range d.jobs {
		if b.err = err; err == nil {
			b.w, b.err = d.network(b.of, handle)
		}
		close(b.done)
	}
}

// take is n as a builder has readied it, nil if none did.
func (d *dnn) take(n driver.Network) *network {
	b := d.building[n]
	if b == nil {
		return nil
	}
	delete(d.building, n)
	<-b.done
	return b.w
}
