// Package memory says how much of the host's memory a program can still take.
package memory

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"rnnbench/internal/cgroup"
)

// Available returns the bytes that this process can still take. It is what the machine has left, or
// less where a control group, such as a container's, allows less. 0: unknown, as on systems other
// than Linux.
func Available() int64 { return left(os.DirFS("/"), limits()) }

// Left is Available on the machine whose files are below root.
func Left(root fs.FS) int64 { return left(root, cgroup.MemoryLimits(root)) }

// limits are read once: most machines have none, and Available is called for every layout.
var limits = sync.OnceValue(func() []cgroup.Limit { return cgroup.MemoryLimits(os.DirFS("/")) })

func left(root fs.FS, limits []cgroup.Limit) int64 {
	free := system(root)
	for _, l := range limits {
		if own := l.Left(root); free == 0 || own < free {
			free = max(1, own) // 0 would be unknown
		}
	}
	return free
}

// system returns what Linux says is available on the whole machine; 0: unknown.
func system(root fs.FS) int64 {
	text, _ := fs.ReadFile(root, "proc/meminfo") // without it nothing is known
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemAvailable:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			if kib < 0 || kib > 1<<50 {
				return 0
			}
			return kib * 1024
		}
	}
	return 0
}
