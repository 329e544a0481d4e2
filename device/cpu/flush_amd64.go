//go:build amd64 && !noasm

package cpu

// flushes reports whether workers take denormal numbers for zeros.
const flushes = true

// flush has the calling thread take denormal numbers for zeros and store zeros instead, as GPUs do. Gradients that die away
// over many steps become denormal, and an instruction with one takes more than a hundred cycles.
//
//go:noescape
func flush()
