//go:build amd64 && !noasm

package cpu

// flushes reports whether workers treat denormal numbers as zeros.
const flushes = true

// flush makes the calling thread treat denormal operands and results as zeros, as GPUs do.
// Gradients that vanish over many steps become denormal, and an instruction with a denormal number
// takes more than a hundred cycles.
//
//go:noescape
func flush()

// borrowFloats sets the calling thread to what a worker has: rounding to nearest, denormal numbers
// as zeros, no traps. It returns what the thread had, for returnFloats.
//
//go:noescape
func borrowFloats() (mode uint32)

// returnFloats sets the calling thread back.
//
//go:noescape
func returnFloats(mode uint32)
