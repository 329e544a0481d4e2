//go:build unix

package rival

import (
	"os/exec"
	"syscall"
)

// ownGroup gives cmd a process group of its own. What it starts is stopped and killed with it, and
// Ctrl-C does not reach it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// pause stops the processes of cmd: libraries have threads that spin after a call.
func pause(cmd *exec.Cmd) { signal(cmd, syscall.SIGSTOP) }

func resume(cmd *exec.Cmd) { signal(cmd, syscall.SIGCONT) }

func killAll(cmd *exec.Cmd) { signal(cmd, syscall.SIGKILL) }

func signal(cmd *exec.Cmd, s syscall.Signal) {
	_ = syscall.Kill(-cmd.Process.Pid, s) // it may have ended already
}
