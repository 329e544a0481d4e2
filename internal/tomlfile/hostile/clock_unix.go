//go:build unix

package hostile

import (
	"syscall"
	"time"
)

// clock returns the time that the processors spent in this process's own code. Other processes do
// not lengthen it, nor does the time in which the system provides memory.
func clock() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}
