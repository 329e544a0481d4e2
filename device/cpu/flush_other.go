//go:build !amd64 || noasm

package cpu

// flushes reports whether workers take denormal numbers for zeros.
const flushes = false

// flush does nothing: this build has no assembly.
func flush() {}
