package fused

import "unsafe"

// A Vector is where a Loop finds one of its program's vectors, in floats.
type Vector struct {
	Data []float32
	From int // the first row's first unit
	Row  int // from a row to the next of the same step
	Step int // from a step's last row to the first row of the next step
}

// Aligned reports whether each of v's rows begins on a cache line.
func (v *Vector) Aligned() bool {
	const bytes, floats = 64, 16
	return uintptr(unsafe.Pointer(&v.Data[v.From]))%bytes == 0 && v.Row%floats == 0 && v.Step%floats == 0
}
