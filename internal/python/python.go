// Package python finds a Python for tests that need PyTorch.
package python

import (
	"os"
	"os/exec"
	"sync"
)

// NoTorch says why a test is skipped where Torch finds nothing.
const NoTorch = "no python3 here has PyTorch and NumPy: apt-get install python3-torch, or name one that has by RNNBENCH_PYTHON"

// Torch is a Python that has PyTorch and NumPy, or "": that of RNNBENCH_PYTHON, else python3, else the system's. It is
// looked for once, since loading PyTorch takes seconds.
var Torch = sync.OnceValue(func() string {
	all := []string{"python3", "/usr/bin/python3"}
	if named := os.Getenv("RNNBENCH_PYTHON"); named != "" {
		all = []string{named}
	}
	for _, python := range all {
		if exec.Command(python, "-c", "import torch, numpy").Run() == nil {
			return python
		}
	}
	return ""
})
