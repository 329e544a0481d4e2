//go:build !linux

package cpu

import (
	"runtime"
	"time"
)

// processors returns nil, for unknown: threads are not bound.
func processors() []int { return nil }

func bind(int) {}

func borrowProcessor(int) (giveBack func()) { return func() {} }

// leader returns false: it matters only if threads are bound.
func leader() bool { return false }

func yield() { runtime.Gosched() }

// nap sleeps for 20 microseconds.
func nap() { time.Sleep(20 * time.Microsecond) }

// model returns "", for unknown; see Info.
func model() string { return "" }

// allocate returns n zeroed floats and the function that frees them.
func allocate(n int) ([]float32, func() error, error) {
	return make([]float32, n), func() error { return nil }, nil
}
