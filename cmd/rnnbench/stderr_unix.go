//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// stderr returns standard error under another file descriptor. Writing to a broken pipe ends a Go
// program only on descriptors 1 and 2; on others it returns an error. So a sweep whose stderr is
// closed goes on.
func stderr() *os.File {
	fd, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.Stderr
	}
	return os.NewFile(uintptr(fd), os.Stderr.Name())
}
