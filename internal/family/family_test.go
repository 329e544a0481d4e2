package family

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

// stat is a line of /proc/PID/stat with so many ticks as user, system, and of ended children.
func stat(pid int, name string, parent int, ticks ...int) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "%d (%s) S %d 1 1 0 -1 4194560 1 2 3 4 %d %d %d %d 20 0 9", pid, name, parent, ticks[0], ticks[1], ticks[2], ticks[3])}
}

// TestSeconds: the time of a worker, of a rival and of what the rival started counts as this
// program's own, and no other process's. It is the same whether or not the kernel lists children.
func TestSeconds(t *testing.T) {
	for _, listed := range []bool{false, true} {
		root := fstest.MapFS{
			"proc/self/stat": stat(10, "rnnbench", 1, 100, 20, 3, 4), "proc/10/stat": stat(10, "rnnbench", 1, 100, 20, 3, 4),
			"proc/20/stat": stat(20, "a (strange) name", 10, 1000, 0, 0, 0), "proc/20/task/20/comm": {},
			"proc/30/stat": stat(30, "python3", 20, 10000, 0, 0, 0), "proc/30/task/30/comm": {},
			"proc/40/stat": stat(40, "other", 1, 7, 7, 7, 7),
			"proc/50/stat": stat(50, "reused", 1, 7, 7, 7, 7), // once a child
			"proc/60/stat": {Data: []byte("60 (torn")},
			"proc/uptime":  {},
		}
		if listed {
			root["proc/20/task/20/children"] = &fstest.MapFile{Data: []byte("30 ")}
			root["proc/30/task/30/children"] = &fstest.MapFile{}
		}
		started.pids = nil
		for _, pid := range []int{20, 50, 99} {
			Started(pid)
		}
		got, ok := Seconds(root)
		if want := 1.27 + 10 + 100; !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("children listed %v: %v s, %v; want %v s", listed, got, ok, want)
		}
		if len(started.pids) != 1 {
			t.Errorf("children listed %v: %v are still children, want 20 alone", listed, started.pids)
		}
	}
	if _, ok := Seconds(fstest.MapFS{}); ok {
		t.Error("the time is known without /proc")
	}
}

// TestRead: no text makes Read panic, and a torn line is no process.
func TestRead(t *testing.T) {
	whole := string(stat(1, "x", 0, 1, 2, 3, 4).Data)
	for i := range whole {
		root := fstest.MapFS{"proc/1/stat": {Data: []byte(whole[:i])}}
		if p, ok := Read(root, "1"); ok && len(strings.Fields(whole[:i])) < 17 {
			t.Errorf("%q is %+v", whole[:i], p)
		}
	}
	if p, ok := Read(fstest.MapFS{"proc/1/stat": {Data: []byte(strings.Replace(whole, " 2 3 4", " 2 -3 4", 1))}}, "1"); ok && p.Seconds < 0 {
		t.Errorf("a negative time: %+v", p)
	}
}
