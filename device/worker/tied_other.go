//go:build !linux

package worker

import "os/exec"

// startTied starts cmd. When this process ends, its pipes tell cmd so.
func startTied(cmd *exec.Cmd) error { return cmd.Start() }
