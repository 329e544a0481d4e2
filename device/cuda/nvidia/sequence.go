//go:build cuda

package nvidia

/*
#include <stdint.h>

enum { words = 22 };

typedef struct {
	uintptr_t f, a[words];
} entry;

typedef int (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
	uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
	uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

typedef struct {
	int code, at;
} outcome;

// issue makes n calls and stops at the first that fails. It always passes as many words as the
// longest function takes; functions with fewer parameters ignore the rest.
static outcome issue(const entry* e, int n) {
	outcome o = {0, 0};
	for (; o.at < n; o.at++, e++) {
		const uintptr_t* a = e->a;
		o.code = ((function)e->f)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
			a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21]);
		if (o.code != 0) break;
	}
	return o;
}
*/
import "C"

import (
	"rnnbench/device/cuda/driver"
)

// A call is a function of a library with its arguments, which are all words.
type call struct {
	name string
	args []uintptr
	of   *library
	tell func(name string, code int) error
}

// entry returns c in the form in which C makes it.
func (c *call) entry() (C.entry, error) {
	at := c.of.find(c.name)
	if at == 0 {
		return C.entry{}, c.tell(c.name, missing)
	}
	e := C.entry{f: C.uintptr_t(at)}
	for i, a := range c.args {
		e.a[i] = C.uintptr_t(a)
	}
	return e, nil
}

// one makes a single call.
func one(c call) error {
	e, err := c.entry()
	if err != nil {
		return err
	}
	return c.tell(c.name, issue(&e))
}

// A prepared call is made again and again.
type prepared struct {
	call
	entry C.entry
}

func prepare(c call) (prepared, error) {
	e, err := c.entry()
	return prepared{c, e}, err
}

func (p *prepared) make() error {
	if code := issue(&p.entry); code != 0 {
		return p.tell(p.name, code)
	}
	return nil
}

// set changes an argument.
func (p *prepared) set(i int, word uintptr) { p.entry.a[i] = C.uintptr_t(word) }

// issue makes the call e and returns its status.
func issue(e *C.entry) int { return int(C.issue(e, 1).code) }

// A sequence is a list of calls that C makes without returning to Go in between. A return would take
// as long as a launch takes on the host.
type sequence struct {
	entries []C.entry
	of      []origin
	calls   []driver.Call // hold the arguments to which entries point
	configs []*launchConfig
}

// An origin says for which driver call an entry was made.
type origin struct {
	call int // index of calls
	name string
	tell func(name string, code int) error
}

// Sequence implements driver.Driver.
func (d *gpu) Sequence(calls []driver.Call) (driver.Sequence, error) {
	s := &sequence{calls: calls}
	for i := range calls {
		made, err := d.calls(&calls[i], s)
		if err != nil {
			return 0, err
		}
		for _, c := range made {
			e, err := c.entry()
			if err != nil {
				return 0, err
			}
			s.entries = append(s.entries, e)
			s.of = append(s.of, origin{i, c.name, c.tell})
		}
	}
	d.readied++
	d.sequences[d.readied] = s
	return d.readied, nil
}

// Issue implements driver.Driver.
func (d *gpu) Issue(id driver.Sequence) (int, error) {
	s := d.sequences[id]
	if len(s.entries) == 0 {
		return 0, nil
	}
	o := C.issue(&s.entries[0], C.int(len(s.entries)))
	if o.code == 0 {
		return 0, nil
	}
	from := &s.of[o.at]
	err := from.tell(from.name, int(o.code))
	if d.blas != nil {
		d.blas.reset()
	}
	return from.call, err
}

// FreeSequence implements driver.Driver.
func (d *gpu) FreeSequence(id driver.Sequence) error {
	delete(d.sequences, id)
	return nil
}

// calls returns the library calls of c. c and s keep alive what their arguments point to.
func (d *gpu) calls(c *driver.Call, s *sequence) ([]call, error) {
	on := handle(&d.streams[c.Stream])
	switch {
	case c.Launch != nil:
		return []call{d.launch(c.Launch, on, s)}, d.tensors(c.Launch)
	case c.Product != nil:
		return d.blas.product(c.Stream, c.Product), nil
	case c.Network != nil:
		if err := d.networks(c.Stream); err != nil {
			return nil, err
		}
		return d.dnn.run(c.Stream, on, c.Network, d.call), nil
	case c.Sum != nil:
		return d.sums.sum(c.Sum, on), nil
	case c.Graph != nil:
		return []call{d.call("cuGraphLaunch", d.graphs[*c.Graph].exec, on)}, nil
	case c.Copy != nil && c.Copy.Out:
		return []call{d.call("cuMemcpyDtoHAsync_v2", address(&c.Copy.Host[0]), uintptr(c.Copy.GPU), uintptr(len(c.Copy.Host)), on)}, nil
	case c.Copy != nil:
		return []call{d.call("cuMemcpyHtoDAsync_v2", uintptr(c.Copy.GPU), address(&c.Copy.Host[0]), uintptr(len(c.Copy.Host)), on)}, nil
	case c.Wait:
		return []call{d.call("cuStreamWaitEvent", on, handle(&d.events[c.Event]), 0)}, nil
	case c.Outside:
		return []call{d.call("cuEventRecordWithFlags", handle(&d.events[c.Event]), on, recordOutside)}, nil
	}
	return []call{d.call("cuEventRecord", handle(&d.events[c.Event]), on)}, nil
}

// recordOutside makes recording an event a node of the captured graph.
const recordOutside = 1

func (d *gpu) call(name string, args ...uintptr) call { return call{name, args, d.extra, d.code} }

func (d *gpu) launch(l *driver.Launch, on uintptr, s *sequence) call {
	g, b, f := l.Grid, l.Block, handle(&d.functions[l.Kernel.ID])
	var params uintptr
	if len(l.Params) > 0 {
		params = address(&l.Params[0])
	}
	switch {
	case l.Cluster > 0 || l.Urgent || l.Early:
		c := d.config(l, on)
		s.configs = append(s.configs, c)
		return d.call("cuLaunchKernelEx", address(c), f, params, 0)
	case l.Cooperative:
		return d.call("cuLaunchCooperativeKernel", f, uintptr(g[0]), uintptr(g[1]), uintptr(g[2]),
			uintptr(b[0]), uintptr(b[1]), uintptr(b[2]), uintptr(l.Shared), on, params)
	}
	return d.call("cuLaunchKernel", f, uintptr(g[0]), uintptr(g[1]), uintptr(g[2]),
		uintptr(b[0]), uintptr(b[1]), uintptr(b[2]), uintptr(l.Shared), on, params, 0)
}
