package worker

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// newWindow makes a window. The system frees it when the last process that has it ends.
func newWindow() (*window, error) {
	fd, err := unix.MemfdCreate("rnnbench", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("worker: no shared memory: %w", err)
	}
	return &window{file: os.NewFile(uintptr(fd), "window")}, nil
}

// openWindow opens the window that the worker has inherited from its parent.
func openWindow() (*window, error) {
	w := &window{file: os.NewFile(windowFile, "window")}
	if _, err := w.file.Stat(); err != nil {
		return nil, fmt.Errorf("worker: no shared memory: %w", err)
	}
	return w, nil
}

// remap maps at least so many bytes. With grow, it first enlarges the window, to at least one and a
// half times its size.
func (w *window) remap(bytes int, grow bool) error {
	const page = 1 << 21
	fail := func(err error) error { return fmt.Errorf("worker: %d bytes of shared memory: %w", bytes, err) }
	if grow {
		bytes = (max(bytes, len(w.memory)*3/2) + page - 1) / page * page
		if err := w.file.Truncate(int64(bytes)); err != nil {
			return fail(err)
		}
	} else {
		info, err := w.file.Stat()
		if err != nil {
			return fail(err)
		}
		if info.Size() < int64(bytes) {
			return fail(unix.EFAULT)
		}
		bytes = int(info.Size())
	}
	if err := w.unmap(); err != nil {
		return fail(err)
	}
	var err error
	if w.memory, err = unix.Mmap(int(w.file.Fd()), 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fail(err)
	}
	_ = unix.Madvise(w.memory, unix.MADV_HUGEPAGE) // only advice
	return nil
}

func (w *window) unmap() error {
	if w.memory == nil {
		return nil
	}
	memory := w.memory
	w.memory = nil
	return unix.Munmap(memory)
}

func (w *window) close() {
	_ = w.unmap()
	_ = w.file.Close() // it is not needed any more
}
