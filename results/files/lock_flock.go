//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package files

import (
	"errors"
	"os"
	"syscall"
)

// TryLock takes f until it is closed or the process ends, however it ends. A file
// system without locks is written without one.
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
