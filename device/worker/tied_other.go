//go:build !linux

package worker

import "os/exec"

// StartTied starts cmd. When this process ends, cmd notices that its pipes are closed.
func StartTied(cmd *exec.Cmd) error { return cmd.Start() }
