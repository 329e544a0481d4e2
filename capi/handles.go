package main

/*
#include <stdlib.h>
#include "rnnbench.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

var errHandle = errors.New("invalid handle")

// A handle stands for a device, a layer or a plan. Numbers are never used twice, so that a closed
// handle is known as such.
type handle struct {
	object any
	of     C.rnnbench_handle  // the handle that it belongs to; 0: none
	texts  map[string]*C.char // given out; they live as long as the handle
}

// A table holds the open handles.
type table struct {
	mu     sync.RWMutex
	latest C.rnnbench_handle
	open   map[C.rnnbench_handle]*handle
	number map[any]C.rnnbench_handle // of objects
}

var handles = table{open: map[C.rnnbench_handle]*handle{}, number: map[any]C.rnnbench_handle{}}

// add returns the handle of an object, which belongs to another one.
func (t *table) add(object any, of C.rnnbench_handle) C.rnnbench_handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, ok := t.number[object]; ok {
		return n
	}
	t.latest++
	t.open[t.latest] = &handle{object: object, of: of, texts: map[string]*C.char{}}
	t.number[object] = t.latest
	return t.latest
}

// get returns what a handle stands for.
func get[T any](what string, n C.rnnbench_handle) (object T, err error) {
	handles.mu.RLock()
	defer handles.mu.RUnlock()
	h := handles.open[n]
	switch {
	case h != nil:
		if object, ok := h.object.(T); ok {
			return object, nil
		}
		return object, fmt.Errorf("%w %d: it is not %s", errHandle, n, what)
	case n == 0 || n > handles.latest:
		return object, fmt.Errorf("%w %d: it was never given out", errHandle, n)
	}
	return object, fmt.Errorf("%w %d: it was closed", errHandle, n)
}

// text returns text for C.
func (t *table) text(n C.rnnbench_handle, text string) *C.char {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.open[n]
	if h == nil {
		return nil
	}
	if h.texts[text] == nil {
		h.texts[text] = C.CString(text)
	}
	return h.texts[text]
}

// remove forgets a handle and those that belong to it.
func (t *table) remove(n C.rnnbench_handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(n)
}

func (t *table) drop(n C.rnnbench_handle) {
	h := t.open[n]
	if h == nil {
		return
	}
	delete(t.open, n)
	delete(t.number, h.object)
	for _, text := range h.texts {
		C.free(unsafe.Pointer(text))
	}
	for m, o := range t.open {
		if o.of == n {
			t.drop(m)
		}
	}
}
