//go:build !amd64 || noasm

package cpu

// flushes reports whether workers treat denormal numbers as zeros.
const flushes = false

// flush does nothing: this build has no assembly.
func flush() {}

// borrowFloats and returnFloats do nothing, like flush.
func borrowFloats() (mode uint32) { return 0 }
func returnFloats(uint32)         {}
