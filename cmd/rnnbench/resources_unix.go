//go:build unix

package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// lowLimit says which limit of the shell is so low that Go's runtime would end the process with a dump
// at the next open file or thread; nil: none is. It opens no file by Go's means.
func lowLimit() error {
	const files = 4 // two of them are the runtime's own
	for range files {
		fd, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == unix.EMFILE {
			return errors.New("too few files may be opened (ulimit -n): raise the limit to 64 or more")
		}
		if err == nil {
			defer unix.Close(fd)
		}
	}
	var space unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &space) == nil && uint64(space.Cur) < leastSpace { // no limit is the largest number
		return fmt.Errorf("too little memory may be addressed (ulimit -v %d): raise the limit to %d or more", space.Cur>>10, 2*leastSpace>>10)
	}
	return nil
}

// leastSpace is how many bytes the heap's tables and the threads of two processors take. Most of it is
// reserved and never used.
const leastSpace = 7 << 28
