package files

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// TryLock locks f until it is closed or the process ends. It returns ErrLocked if another process holds
// the lock. The locked byte lies far behind the end of the file, since Windows locks keep readers out.
func TryLock(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}
