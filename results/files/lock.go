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

// patience is for how long Lock waits: who reads a file, changes it and writes it
// needs a fraction of a second.
const patience = 30 * time.Second

// Lock waits until no other process has the lock of the file at path and takes
// it, until unlock is called or the process ends. The lock is a file beside the
// one of path, which Write replaces.
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
			// Removed while it is locked, so that who waits for it sees that it is gone;
			// a system that does not remove what is open keeps an empty file.
			return func() { _, _ = os.Remove(name), f.Close() }, nil
		case err != nil && !errors.Is(err, ErrLocked):
			return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", path, err), f.Close())
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		if time.Since(start) > patience {
			return nil, fmt.Errorf("%s is being written by another process: wait for that or end it", path)
		}
	}
}

// current reports whether f is still the file of that name: who had it locked
// before has removed it.
func current(f *os.File, name string) bool {
	was, err := f.Stat()
	if err != nil {
		return false
	}
	is, err := os.Stat(name)
	return err == nil && os.SameFile(was, is)
}
