package worker

import (
	"os"
	"unsafe"
)

// A window is memory that both ends share and that matrices pass through. A copy is several times
// as fast as a pipe, and a call need not wait for the other end to read. Only one call is made at a
// time, so the window holds the data of one call. If the window is nil, matrices follow their calls
// through the pipe.
type window struct {
	file   *os.File
	memory []byte
}

// windowFile is the window's file descriptor in a worker.
const windowFile = 3

// reach returns n elements of the window. If the window is too small, the parent, with grow,
// enlarges it. The worker maps it again at its new size.
func (w *window) reach(n int, grow bool) ([]float32, error) {
	if n == 0 {
		return nil, nil
	}
	if 4*n > len(w.memory) {
		if err := w.remap(4*n, grow); err != nil {
			return nil, err
		}
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&w.memory[0])), n), nil
}
