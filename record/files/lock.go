package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ErrLocked says that another process has the lock.
var ErrLocked = errors.New("locked")

// patience is how long Lock waits. Reading, changing and writing a file takes a fraction of a second.
const patience = 30 * time.Second

// Lock waits until no other process holds the lock of the file at path, and takes it. The lock ends
// when unlock is called or the process ends. It is a file of its own beside path, because Write
// replaces the file at path.
func Lock(path string) (unlock func(), err error) {
	const pause = 2 * time.Millisecond
	to, err := Resolve(path)
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	name := filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+".lock")
	for start := time.Now(); ; time.Sleep(pause) {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		switch err = TryLock(f); {
		case err == nil && current(f, name):
			// Remove the file while it is locked, so that waiting processes see that it is gone.
			// A system that cannot remove open files keeps an empty file.
			return func() { _, _ = os.Remove(name), f.Close() }, nil
		case err != nil && !errors.Is(err, ErrLocked):
			return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", path, err), f.Close())
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		if time.Since(start) > patience {
			return nil, fmt.Errorf("%s is being written by another process: wait for it or end it", path)
		}
	}
}

// current reports whether f is still the file called name. The previous holder of the lock may have
// removed it.
func current(f *os.File, name string) bool {
	was, err := f.Stat()
	if err != nil {
		return false
	}
	is, err := os.Stat(name)
	return err == nil && os.SameFile(was, is)
}
