//go:build unix

package worker

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pollable returns r or, if r is a pipe, a copy that the runtime can poll, so that no read blocks
// in a system call. When Go 1.26 stops the world for garbage collection, it overlooks a thread that
// enters a system call at that very moment. Then all threads wait for that one until the runtime's
// monitor wakes up: a minute, if there are no timers. A call that returns at once does no harm.
func pollable(r io.Reader) io.Reader {
	f, ok := r.(*os.File)
	if !ok {
		return r
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return r // a terminal is shared with the shell
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return r
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd) // fall back to r
		return r
	}
	return os.NewFile(uintptr(fd), f.Name())
}
