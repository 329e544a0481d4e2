package cgroup_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"rnnbench/internal/cgroup"
)

func tree(files map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, text := range files {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

// TestMemoryLimits: this group and those around it have limits, in both versions.
func TestMemoryLimits(t *testing.T) {
	const g = 1 << 30
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []int64 // left in each
	}{
		{"no files", nil, nil},
		{"no limit", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "5\n"}, nil},
		{"a container that sees its root", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "4294967296\n", "sys/fs/cgroup/memory.current": "1073741824\n"}, []int64{3 * g}},
		{"files that the kernel would drop", map[string]string{
			"sys/fs/cgroup/memory.max": "4294967296", "sys/fs/cgroup/memory.current": "3221225472", "sys/fs/cgroup/memory.stat": "anon 7\ninactive_file 1073741824\nactive_file 9\n",
		}, []int64{2 * g}},
		{"a group around it has less left", map[string]string{
			"proc/self/cgroup":                "0::/pods/a\n",
			"sys/fs/cgroup/pods/a/memory.max": "4294967296", "sys/fs/cgroup/pods/a/memory.current": "0",
			"sys/fs/cgroup/pods/memory.max": "8589934592", "sys/fs/cgroup/pods/memory.current": "7516192768",
		}, []int64{4 * g, g}},
		{"all is used", map[string]string{"sys/fs/cgroup/memory.max": "100", "sys/fs/cgroup/memory.current": "100"}, []int64{0}},
		{"a use that cannot be", map[string]string{"sys/fs/cgroup/memory.max": "100", "sys/fs/cgroup/memory.current": "200"}, []int64{100}},
		{"version 1", map[string]string{
			"proc/self/cgroup": "4:memory:/x\n3:cpu:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2147483648",
			"sys/fs/cgroup/memory/x/memory.usage_in_bytes": "1610612736",
			"sys/fs/cgroup/memory/x/memory.stat":           "inactive_file 1\ntotal_inactive_file 536870912\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712",
		}, []int64{g}},
		{"version 1 without a limit", map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, nil},
		{"nonsense", map[string]string{"proc/self/cgroup": "::::\n\n", "sys/fs/cgroup/memory.max": "-7", "sys/fs/cgroup/memory/memory.limit_in_bytes": "x"}, nil},
	} {
		root := tree(c.files)
		var got []int64
		for _, l := range cgroup.MemoryLimits(root) {
			got = append(got, l.Left(root))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d left, want %d", c.name, got, c.want)
		}
	}
}
