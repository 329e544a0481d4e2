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
		text, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err == nil && bytes.Contains(append([]byte{0}, text...), []byte("\x00"+mark+"\x00")) {
			list = append(list, pid)
		}
	}
	return list
}

// killStrays kills what strays returns, and what they start meanwhile.
func killStrays(mark string, group int) {
	for range 100 {
		list := strays(mark, group)
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
