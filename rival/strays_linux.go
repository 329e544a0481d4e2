package rival

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// markName names the variable that marks the environment of a rival. Whatever the rival starts
// inherits it, in a session of its own and after its parent has ended as well.
const markName = "RNNBENCH_RIVAL"

var marks atomic.Int64

// newMark returns an entry for an environment that no other rival has.
func newMark() string { return fmt.Sprintf("%s=%d-%d", markName, os.Getpid(), marks.Add(1)) }

// strays returns the processes that have a mark in their environment and are not of the process
// group.
func strays(mark string, group int) (list []int) {
	found, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range found {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if g, err := syscall.Getpgid(pid); err != nil || g == group {
			continue
		}
		if marked, _ := environment(pid, mark); marked {
			list = append(list, pid)
		}
	}
	return list
}

// environment reports whether a process has a mark in its environment. A living process without
// any environment is bare: the kernel shows none while the process starts another program.
func environment(pid int, mark string) (marked, bare bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false, false
	}
	if len(text) == 0 {
		_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // which a zombie has not
		return false, err == nil
	}
	return bytes.Contains(append([]byte{0}, text...), []byte("\x00"+mark+"\x00")), false
}

// killStrays kills what strays returns, and what they start meanwhile. Of the known processes,
// which strays has returned before, it kills the bare ones too.
func killStrays(mark string, group int, known []int) {
	for range 100 {
		list := strays(mark, group)
		for _, pid := range known {
			if _, bare := environment(pid, mark); bare {
				list = append(list, pid)
			}
		}
		if len(list) == 0 {
			return
		}
		signalEach(list, syscall.SIGKILL)
		time.Sleep(time.Millisecond)
	}
}

func pauseEach(list []int)  { signalEach(list, syscall.SIGSTOP) }
func resumeEach(list []int) { signalEach(list, syscall.SIGCONT) }

func signalEach(list []int, s syscall.Signal) {
	for _, pid := range list {
		_ = syscall.Kill(pid, s) // it may have ended already
	}
}
