package memory_test

import (
	"testing"
	"testing/fstest"

	"rnnbench/internal/memory"
)

// TestLeft: a container's limit counts where it is less than what the machine has left.
func TestLeft(t *testing.T) {
	for _, c := range []struct {
		name, info, limit, used string
		want                    int64
	}{
		{"nothing is known", "", "", "", 0},
		{"no container", "MemTotal: 9 kB\nMemAvailable:   4 kB\n", "", "", 4096},
		{"the container allows less", "MemAvailable: 4 kB\n", "3000", "1000", 2000},
		{"the container allows more", "MemAvailable: 4 kB\n", "9000", "0", 4096},
		{"the container is full", "MemAvailable: 4 kB\n", "3000", "3000", 1},
		{"only the container is known", "", "3000", "1000", 2000},
		{"nonsense", "MemAvailable: -4 kB\nMemAvailable:\nMemAvailable: 9223372036854775807 kB\n", "", "", 0},
	} {
		root := fstest.MapFS{}
		for name, text := range map[string]string{"proc/meminfo": c.info, "sys/fs/cgroup/memory.max": c.limit, "sys/fs/cgroup/memory.current": c.used} {
			if text != "" {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		if got := memory.Left(root); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
