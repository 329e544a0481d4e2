package cluster

import (
	"strings"
	"testing"
)

// TestThisNode: ThisNode returns the scheduler's name of the machine, or an anonymous one.
func TestThisNode(t *testing.T) {
	t.Setenv("SLURMD_NODENAME", "v1")
	if name := ThisNode(false); name != "v1" {
		t.Error(name)
	}
	if name := ThisNode(true); name != ThisNode(true) || !strings.HasPrefix(name, "node-") || strings.Contains(name, "v1") {
		t.Error(name)
	}
	t.Setenv("SLURMD_NODENAME", "")
	t.Setenv("JOB_COMPLETION_INDEX", "0")
	t.Setenv("NODE_NAME", "k1")
	if name := ThisNode(false); name != "k1" {
		t.Error(name)
	}
}
