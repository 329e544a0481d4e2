//go:build unix

package hostile

import (
	"syscall"
	"time"
)

// clock is the processor time of this process: others may have the processor, too.
func clock() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
