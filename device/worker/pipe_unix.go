//go:build unix

package worker

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pollable is r, but a pipe in such a way that nobody waits for it in a system
// call. What stops the world for the collector of garbage overlooks a thread that
// enters a call at this very moment (Go 1.26), and then waits for it, with
// everybody else, until the runtime's monitor wakes: a minute, where there are no
// timers. A call that returns at once is none to wait for.
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
		_ = unix.Close(fd) // that of r will do
		return r
	}
	return os.NewFile(uintptr(fd), f.Name())
}
