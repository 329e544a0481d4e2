//go:build !unix

package rival

import "os/exec"

// Where processes cannot be stopped, rivals may spin while others are measured.
func ownGroup(*exec.Cmd) {}
func pause(*exec.Cmd)    {}
func resume(*exec.Cmd)   {}

func killAll(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
