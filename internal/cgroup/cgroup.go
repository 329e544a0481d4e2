// Package cgroup reads how much processor time and memory Linux's control groups allow this process:
// a container's limits, for instance. Old control groups (version 1) and new ones are read.
//
// Source: Linux, Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.
package cgroup

import (
	"io/fs"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
)

// mount is where systems mount control groups, below the root.
const mount = "sys/fs/cgroup"

// folders lists the folders of the control groups that limit controller for this process. These are
// its own group, and each group around it up to the root. A container may see the roots alone, so
// they are always listed. In version 1 a controller's folder has one of the names in mounts. unified
// says that a folder is of version 2.
func folders(root fs.FS, controller string, mounts ...string) iter.Seq2[string, bool] {
	return func(yield func(folder string, unified bool) bool) {
		text, _ := fs.ReadFile(root, "proc/self/cgroup") // without it, only the roots are read
		lines := append([]string{"::/", ":" + controller + ":/"}, strings.Split(strings.TrimSpace(string(text)), "\n")...)
		for _, line := range lines {
			_, rest, _ := strings.Cut(line, ":")
			controllers, group, _ := strings.Cut(rest, ":")
			unified := controllers == ""
			if !unified && !slices.Contains(strings.Split(controllers, ","), controller) {
				continue
			}
			below := mounts
			if unified {
				below = []string{""}
			}
			for at := path.Clean("/" + group); ; at = path.Dir(at) {
				for _, m := range below {
					if !yield(path.Join(mount, m, at), unified) {
						return
					}
				}
				if at == "/" {
					break
				}
			}
		}
	}
}

// word returns the first line of a file without spaces around it; "": it cannot be read.
func word(root fs.FS, folder, name string) string {
	b, err := fs.ReadFile(root, path.Join(folder, name))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return strings.TrimSpace(first)
}

// A Group is a control group with a quota of processor time.
type Group struct {
	Quota   float64 // in processors
	folder  string
	unified bool
}

// Quotas lists the control groups of this process that have a quota.
func Quotas(root fs.FS) []Group {
	var list []Group
	for folder, unified := range folders(root, "cpu", "cpu", "cpu,cpuacct") {
		runtime, period := word(root, folder, "cpu.cfs_quota_us"), word(root, folder, "cpu.cfs_period_us")
		if unified {
			runtime, period, _ = strings.Cut(word(root, folder, "cpu.max"), " ")
		}
		r, err := strconv.ParseFloat(runtime, 64)
		p, wrong := strconv.ParseFloat(period, 64)
		g := Group{r / p, folder, unified}
		if err == nil && wrong == nil && r > 0 && p > 0 && g.Quota > 0 && g.Quota < 1e6 && !slices.Contains(list, g) { // no infinity; roots come twice
			list = append(list, g)
		}
	}
	return list
}

// Quota returns the processor time that the control groups allow, in processors: the least of them.
// 0: no limit.
func Quota(root fs.FS) float64 {
	least := 0.0
	for _, g := range Quotas(root) {
		if least == 0 || g.Quota < least {
			least = g.Quota
		}
	}
	return least
}

// Stopped returns for how many seconds the quota has stopped threads of the group so far: the sum
// over processors.
func (g Group) Stopped(root fs.FS) float64 {
	if g.unified {
		return float64(stat(root, g.folder, "cpu.stat", "throttled_usec")) / 1e6
	}
	return float64(stat(root, g.folder, "cpu.stat", "throttled_time")) / 1e9
}

// A Limit is the most memory that a control group may use.
type Limit struct {
	folder  string
	unified bool
	bytes   int64
}

// MemoryLimits lists the limits of the control groups. They hardly ever change while a process runs.
func MemoryLimits(root fs.FS) []Limit {
	var list []Limit
	for folder, unified := range folders(root, "memory", "memory") {
		name := "memory.limit_in_bytes"
		if unified {
			name = "memory.max"
		}
		most, err := strconv.ParseInt(word(root, folder, name), 10, 64)
		l := Limit{folder, unified, most}
		if err == nil && most > 0 && most < unlimited && !slices.Contains(list, l) { // "max" is no number; roots come twice
			list = append(list, l)
		}
	}
	return list
}

// Left returns the bytes that the group may still take: its limit, less what it uses, but for files
// that the kernel would drop.
func (l Limit) Left(root fs.FS) int64 {
	used, droppable := "memory.usage_in_bytes", "total_inactive_file"
	if l.unified {
		used, droppable = "memory.current", "inactive_file"
	}
	taken, _ := strconv.ParseInt(word(root, l.folder, used), 10, 64) // unreadable: nothing is known to be used
	if taken > l.bytes {
		taken = 0 // the kernel allows no more than the limit, so the number means something else
	}
	return l.bytes - max(0, taken-stat(root, l.folder, "memory.stat", droppable))
}

// unlimited is less than version 1 writes for no limit, the largest number of whole pages, and more
// than any machine has.
const unlimited = 1 << 60

// stat returns a number of a file such as memory.stat; 0: it is not there.
func stat(root fs.FS, folder, file, name string) int64 {
	b, _ := fs.ReadFile(root, path.Join(folder, file))
	for line := range strings.Lines(string(b)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return max(0, n)
		}
	}
	return 0
}
