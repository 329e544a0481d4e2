package worker

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"rnnbench/internal/family"
)

// StartTied starts cmd so that it is killed when this process ends, even if cmd is stopped or hangs
// in a system call. The kernel ties cmd to the thread that starts it, so one thread, which never
// ends, starts all commands. Their processor time counts as this process's own.
func StartTied(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	starter() <- func() { done <- cmd.Start() }
	err := <-done
	if err == nil {
		family.Started(cmd.Process.Pid)
	}
	return err
}

// starter returns a channel of functions, which a thread of its own runs.
var starter = sync.OnceValue(func() chan<- func() {
	todo := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range todo {
			f()
		}
	}()
	return todo
})
