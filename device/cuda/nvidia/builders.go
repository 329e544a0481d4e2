//go:build cuda

package nvidia

import (
	"runtime"

	"gorgonia.org/cu"

	"rnnbench/device/cuda/driver"
)

// A building is a network that a builder creates in the background: cuDNN compiles kernels for some
// networks, which takes a second.
type building struct {
	of   driver.Network
	done chan struct{}
	w    *network
	err  error
}

// builders is the most threads that create networks. Each thread needs its own handle, which takes
// memory.
const builders = 8

// begin queues n for a builder, unless it is queued already. The first call starts the builders.
func (d *dnn) begin(n driver.Network, context cu.CUContext) {
	if d.building[n] != nil {
		return
	}
	if d.jobs == nil {
		d.jobs = make(chan *building, 1<<12)
		for range min(builders, runtime.NumCPU()) {
			go d.build(context, d.jobs)
		}
	}
	b := &building{of: n, done: make(chan struct{})}
	select {
	case d.jobs <- b:
		d.building[n] = b
	default: // the queue is full; NewNetwork will create n itself
	}
}

// build runs one builder: it creates the networks of jobs until there will be no more.
func (d *dnn) build(context cu.CUContext, jobs <-chan *building) {
	runtime.LockOSThread() // a context belongs to a thread, which ends with the builder
	var handle uintptr
	err := failure(cu.SetCurrentContext(context))
	if err == nil {
		err = d.do("cudnnCreate", address(&handle))
	}
	for b := range jobs {
		if b.err = err; err == nil {
			b.w, b.err = d.network(b.of, handle)
		}
		close(b.done)
	}
	if handle != 0 {
		_ = d.do("cudnnDestroy", handle) // nobody is left to tell
	}
}

// take waits for n's builder and returns the network; nil: not queued, or it failed.
func (d *dnn) take(n driver.Network) *network {
	b := d.building[n]
	if b == nil {
		return nil
	}
	delete(d.building, n)
	<-b.done
	return b.w
}
