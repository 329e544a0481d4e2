package worker

import (
	"os"
	"unsafe"
)

// A window is memory that both ends share, which matrices pass through: a copy
// is several times as fast as a pipe, and a call does not wait for the other end
// to read. Calls are one at a time, and so is what is in the window. A nil window
// is none: matrices follow their calls through the pipe.
type window struct {
	file   *os.File
	memory []byte
}

// windowFile is where a worker finds the window among its files.
const windowFile = 3

// reach is n elements of the window. The parent makes the window larger where
// they are more than it has; the worker looks at what it has become.
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
