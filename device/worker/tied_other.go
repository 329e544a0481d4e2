//go:build !linux

package worker

import "os/exec"

// StartTied starts cmd. When this process ends, its pipes tell cmd so.
func StartTied(cmd *exec.Cmd) error { return cmd.Start() }
