//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// stderr is standard error under another number. A write to a pipe that nobody reads any
// more ends a Go program where its number is 1 or 2; elsewhere it is an error like any
// other. So a sweep goes on, whose data does not go there.
func stderr() *os.File {
	fd, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.Stderr
	}
	return os.NewFile(uintptr(fd), os.Stderr.Name())
}
