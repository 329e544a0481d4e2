//go:build !linux

package cpu

import (
	"runtime"
	"time"
)

// processors is unknown: threads are not bound.
func processors() []int { return nil }

func bind(int) {}

// leader matters where threads are bound.
func leader() bool { return false }

func yield() { runtime.Gosched() }

// nap sleeps for some microseconds.
func nap() { time.Sleep(20 * time.Microsecond) }

// available is unknown.
func available() int64 { return 0 }

// model is unknown; see Open.
func model() string { return "" }

// allocate returns n zeroed floats and the function that frees them.
func allocate(n int) ([]float32, func() error, error) {
	return make([]float32, n), func() error { return nil }, nil
}
