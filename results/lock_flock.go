//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package results

import (
	"errors"
	"os"
	"syscall"
)

// lock takes f until it is closed or the process ends, however it ends. A file
// system without locks is written without one.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EWOULDBLOCK:
			return errLocked
		case err == syscall.ENOLCK || errors.Is(err, errors.ErrUnsupported):
			return nil
		}
		return err
	}
}
