//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package files

import (
	"errors"
	"os"
	"syscall"
)

// TryLock locks f until it is closed or the process ends, however it ends. It returns ErrLocked if
// another process holds the lock. On a file system without locks it does nothing.
func TryLock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EWOULDBLOCK:
			return ErrLocked
		case err == syscall.ENOLCK || errors.Is(err, errors.ErrUnsupported):
			return nil
		}
		return err
	}
}
