// Package main is the C library of rnnbench: see rnnbench.h. The functions in boundary.c call those
// that are exported here, which pass the calls on to package layer.
//
// Build it with make lib.
package main

/*
#include <stdlib.h>
#include "rnnbench.h"
void rnnbench_say(const char *sentence);
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"unsafe"

	"rnnbench/device"
	"rnnbench/layer"
	"rnnbench/rnn/schedule"
)

func main() {}

// Workers that wait for the next call poll on processors of Go's scheduler. The calls need others.
func init() { runtime.GOMAXPROCS(2*runtime.NumCPU() + 2) }

// version is that of the module, like the program's, whose wisdom the library reads.
var version = func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}()

// statuses maps errors to statuses. The first that an error wraps counts.
var statuses = []struct {
	err    error
	status C.int
}{
	{layer.ErrInvalid, C.RNNBENCH_INVALID},
	{errHandle, C.RNNBENCH_INVALID},
	{schedule.ErrUnsupported, C.RNNBENCH_UNSUPPORTED},
	{device.ErrMemory, C.RNNBENCH_MEMORY},
	{device.ErrFault, C.RNNBENCH_DEVICE},
	{device.ErrHang, C.RNNBENCH_DEVICE},
	{errPanic, C.RNNBENCH_INTERNAL},
}

var errPanic = errors.New("a mistake in this library")

// call runs f for an exported function. It keeps panics on this side of the boundary.
func call(f func() error) (status C.int) {
	defer func() {
		if r := recover(); r != nil {
			status = tell(fmt.Errorf("%w, please report it: %v\n%s", errPanic, r, debug.Stack()))
		}
	}()
	return tell(f())
}

// tell keeps the sentence of an error for rnnbench_error, and returns its status.
func tell(err error) C.int {
	if err == nil {
		C.rnnbench_say(nil)
		return C.RNNBENCH_OK
	}
	text := C.CString(strings.TrimPrefix(err.Error(), layer.ErrInvalid.Error()+": "))
	defer C.free(unsafe.Pointer(text))
	C.rnnbench_say(text)
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s.status
		}
	}
	return C.RNNBENCH_DEVICE
}

// word reads a C string; NULL is an error.
func word(what string, text *C.char) (string, error) {
	if text == nil {
		return "", fmt.Errorf("%w: %s is NULL", layer.ErrInvalid, what)
	}
	return C.GoString(text), nil
}

// null reports a NULL in place of where a result goes.
func null(what string, p unsafe.Pointer) error {
	if p == nil {
		return fmt.Errorf("%w: %s is NULL", layer.ErrInvalid, what)
	}
	return nil
}

//export goVersion
func goVersion() *C.char { return versionText }

// versionText lives as long as the process.
var versionText = C.CString(version)

//export goOpen
func goOpen(name *C.char, opened *C.rnnbench_handle) C.int {
	return call(func() error {
		text, err := word("the device", name)
		if err = errors.Join(err, null("opened", unsafe.Pointer(opened))); err != nil {
			return err
		}
		d, err := layer.Open(text, version)
		if err == nil {
			*opened = handles.add(d, 0)
		}
		return err
	})
}

//export goLayer
func goLayer(of C.rnnbench_handle, description *C.char, made *C.rnnbench_handle) C.int {
	return call(func() error {
		text, err := word("the description", description)
		if err = errors.Join(err, null("layer", unsafe.Pointer(made))); err != nil {
			return err
		}
		d, err := get[*layer.Device]("a device", of)
		if err != nil {
			return err
		}
		l, err := d.NewLayer(text)
		if err == nil {
			*made = handles.add(l, of)
		}
		return err
	})
}

// request reads the arguments of a request.
func request(batch, steps C.int, pass, technique *C.char, lengths *C.int32_t) (r layer.Request, err error) {
	r = layer.Request{Batch: int(batch), Steps: int(steps)}
	var wrong error
	r.Pass, err = word("the pass", pass)
	if r.Technique, wrong = word("the technique", technique); wrong != nil {
		err = wrong
	}
	if err == nil && lengths != nil {
		if batch < 1 || batch > 1<<20 {
			return r, fmt.Errorf("%w: the batch is %d: with lengths it must be 1 to %d", layer.ErrInvalid, batch, 1<<20)
		}
		for _, n := range unsafe.Slice(lengths, int(batch)) {
			r.Lengths = append(r.Lengths, int(n))
		}
	}
	return r, err
}

//export goPlan
func goPlan(of C.rnnbench_handle, batch, steps C.int, pass, technique *C.char, lengths *C.int32_t, made *C.rnnbench_handle) C.int {
	return call(func() error {
		r, err := request(batch, steps, pass, technique, lengths)
		if err = errors.Join(err, null("plan", unsafe.Pointer(made))); err != nil {
			return err
		}
		l, err := get[*layer.Layer]("a layer", of)
		if err != nil {
			return err
		}
		p, err := l.Plan(r)
		if err == nil {
			*made = handles.add(p, of)
		}
		return err
	})
}

//export goMemory
func goMemory(of C.rnnbench_handle, batch, steps C.int, pass, technique *C.char, lengths *C.int32_t, bytes *C.int64_t) C.int {
	return call(func() error {
		r, err := request(batch, steps, pass, technique, lengths)
		if err = errors.Join(err, null("bytes", unsafe.Pointer(bytes))); err != nil {
			return err
		}
		l, err := get[*layer.Layer]("a layer", of)
		if err != nil {
			return err
		}
		n, err := l.Memory(r)
		*bytes = C.int64_t(n)
		return err
	})
}

//export goTensor
func goTensor(of C.rnnbench_handle, index C.int, name **C.char, kind, rank *C.int, shape *C.int64_t) C.int {
	return call(func() error {
		if err := errors.Join(null("name", unsafe.Pointer(name)), null("kind", unsafe.Pointer(kind)), null("rank", unsafe.Pointer(rank)), null("shape", unsafe.Pointer(shape))); err != nil {
			return err
		}
		p, err := get[*layer.Plan]("a plan", of)
		if err != nil {
			return err
		}
		s, ok, err := p.Tensor(int(index))
		if *name = nil; err != nil || !ok {
			return err
		}
		*name, *kind, *rank = handles.text(of, s.Name), C.int(s.Kind), C.int(len(s.Shape))
		for i, n := range s.Shape {
			unsafe.Slice(shape, len(s.Shape))[i] = C.int64_t(n)
		}
		return nil
	})
}

//export goBind
func goBind(of C.rnnbench_handle, name *C.char, memory unsafe.Pointer, format C.int) C.int {
	return call(func() error {
		text, err := word("the name", name)
		if err != nil {
			return err
		}
		p, err := get[*layer.Plan]("a plan", of)
		if err != nil {
			return err
		}
		return p.Bind(text, memory, device.Type(format))
	})
}

//export goBindAll
func goBindAll(of C.rnnbench_handle, n C.int, memory *unsafe.Pointer, format *C.int) C.int {
	return call(func() error {
		p, err := get[*layer.Plan]("a plan", of)
		switch {
		case err != nil:
			return err
		case n < 0 || n > 1<<20:
			return fmt.Errorf("%w: the number of tensors is %d", layer.ErrInvalid, n)
		case n == 0:
			return nil
		}
		if err := errors.Join(null("memory", unsafe.Pointer(memory)), null("format", unsafe.Pointer(format))); err != nil {
			return err
		}
		return p.BindAll(unsafe.Slice(memory, int(n)), unsafe.Slice((*int32)(format), int(n)))
	})
}

// plan runs f on a plan.
func plan(of C.rnnbench_handle, f func(p *layer.Plan) error) C.int {
	return call(func() error {
		p, err := get[*layer.Plan]("a plan", of)
		if err != nil {
			return err
		}
		return f(p)
	})
}

//export goUpdate
func goUpdate(of C.rnnbench_handle) C.int { return plan(of, (*layer.Plan).Update) }

//export goForward
func goForward(of C.rnnbench_handle, stream unsafe.Pointer) C.int {
	return plan(of, func(p *layer.Plan) error { return p.Forward(uintptr(stream)) })
}

//export goBackward
func goBackward(of C.rnnbench_handle, stream unsafe.Pointer) C.int {
	return plan(of, func(p *layer.Plan) error { return p.Backward(uintptr(stream)) })
}

//export goRelease
func goRelease(of C.rnnbench_handle) C.int { return plan(of, (*layer.Plan).Release) }

//export goWait
func goWait(of C.rnnbench_handle) C.int { return plan(of, (*layer.Plan).Wait) }

//export goDescribe
func goDescribe(of C.rnnbench_handle, json **C.char) C.int {
	return call(func() error {
		if err := null("json", unsafe.Pointer(json)); err != nil {
			return err
		}
		d, err := get[interface{ Describe() (string, error) }]("a handle", of)
		if err != nil {
			return err
		}
		text, err := d.Describe()
		if err == nil {
			*json = handles.text(of, text)
		}
		return err
	})
}

//export goClose
func goClose(of C.rnnbench_handle) C.int {
	return call(func() error {
		c, err := get[interface{ Close() error }]("a handle", of)
		if err != nil {
			return err
		}
		handles.remove(of)
		return c.Close()
	})
}
