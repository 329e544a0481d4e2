package around

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"rnnbench/record"
)

// A machine has two processors that this process may use, and a third.
type machine struct {
	busy, stolen [3]int // ticks
	own          int    // ticks
	files        map[string]string
}

func (m machine) root() fstest.MapFS {
	root := fstest.MapFS{}
	text := "cpu  1 2 3 4 5 6 7 8 9 10\n"
	for i := range 3 {
		// irq and softirq count, guest time is in user
		text += fmt.Sprintf("cpu%d %d 1 2 %d 77 3 4 %d 5 6\n", i, m.busy[i], 1000*i, m.stolen[i])
	}
	root["proc/stat"] = &fstest.MapFile{Data: []byte(text + "intr 1 2 3\ncpu9 is no processor\n")}
	root["proc/self/stat"] = &fstest.MapFile{Data: fmt.Appendf(nil, "10 (rnnbench) R 1 1 1 0 -1 0 0 0 0 0 %d 0 0 0 20 0", m.own)}
	for name, text := range m.files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

var twoOfThree = record.CPU{Affinity: "0-1", Allowed: 2, Threads: 3}

// between returns what happened within a second, between two states of a machine.
func between(t *testing.T, from, to machine) *record.Disturbance {
	t.Helper()
	r := NewReader(from.root(), twoOfThree)
	now := time.Unix(100, 0)
	r.now = func() time.Time { return now }
	a := r.Read()
	r.root, now = to.root(), now.Add(time.Second)
	return r.Between(a, r.Read())
}

func is(v *float64, want float64) bool { return v != nil && math.Abs(*v-want) < 1e-9 }

// TestOthers: what the processors of this process did beyond its own work, others did. A processor
// that it may not use does not count.
func TestOthers(t *testing.T) {
	d := between(t, machine{busy: [3]int{100, 100, 100}, own: 50}, machine{busy: [3]int{200, 190, 999}, stolen: [3]int{0, 10, 50}, own: 150})
	if !is(d.Own, 1) || !is(d.Others, 0.9) || !is(d.Stolen, 0.1) || d.Processors != 2 || d.Seconds != 1 {
		t.Errorf("own %v, others %v, stolen %v, of %d in %v s", *d.Own, *d.Others, *d.Stolen, d.Processors, d.Seconds)
	}
	if d := between(t, machine{}, machine{busy: [3]int{150, 150}, own: 50}); !is(d.Others, 1.5) {
		t.Errorf("others used %v processors, more than there were", *d.Others)
	}
	if d.Quota != nil || d.Stopped != nil || d.Heat != nil {
		t.Errorf("a quota or heat that the machine does not have: %+v", d)
	}
	// Its own time is exact and that of processors is sampled, so it may seem larger.
	if d := between(t, machine{}, machine{busy: [3]int{98, 98}, own: 200}); !is(d.Others, 0) {
		t.Errorf("others used %v processors", *d.Others)
	}
}

// TestStopped: a quota that stops the program is noticed in both versions of control groups, and the
// group that stops it longest counts.
func TestStopped(t *testing.T) {
	v2 := func(inner, outer string) map[string]string {
		return map[string]string{
			"proc/self/cgroup":             "0::/pods/a\n",
			"sys/fs/cgroup/pods/a/cpu.max": "150000 100000\n", "sys/fs/cgroup/pods/a/cpu.stat": "usage_usec 5\nnr_throttled 1\nthrottled_usec " + inner + "\n",
			"sys/fs/cgroup/pods/cpu.max": "50000 100000\n", "sys/fs/cgroup/pods/cpu.stat": "throttled_usec " + outer + "\n",
		}
	}
	v1 := func(ns string) map[string]string {
		return map[string]string{
			"proc/self/cgroup": "3:cpu,cpuacct:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000",
			"sys/fs/cgroup/cpu/x/cpu.stat": "nr_periods 9\nnr_throttled 5\nthrottled_time " + ns + "\n",
		}
	}
	for _, c := range []struct {
		name         string
		from, to     map[string]string
		quota, share float64
	}{
		{"two groups", v2("0", "1000000"), v2("0", "2500000"), 0.5, 0.75}, // 1.5 s stopped, 0.5 s ran
		{"the inner one", v2("7", "7"), v2("500007", "7"), 1.5, 0.5},
		{"never", v2("7", "7"), v2("7", "7"), 0.5, 0},
		{"version 1", v1("1000000000"), v1("1500000000"), 0.5, 0.5},
	} {
		d := between(t, machine{files: c.from}, machine{files: c.to, own: 50})
		if !is(d.Quota, c.quota) || !is(d.Stopped, c.share) {
			t.Errorf("%s: quota %v, stopped %v; want %v, %v", c.name, *d.Quota, *d.Stopped, c.quota, c.share)
		}
	}
}

// TestHeat: heat is counted once for a package, and for each core.
func TestHeat(t *testing.T) {
	files := func(core, whole string) map[string]string {
		m := map[string]string{}
		for i := range 3 {
			at := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", i)
			m[at+"thermal_throttle/core_throttle_count"], m[at+"thermal_throttle/package_throttle_count"] = core, whole
			m[at+"topology/physical_package_id"] = "0\n"
		}
		return m
	}
	d := between(t, machine{files: files("5\n", "7\n")}, machine{files: files("6\n", "10\n")})
	if d.Heat == nil || *d.Heat != 2+3 {
		t.Errorf("heat %v", d.Heat)
	}
}

// TestUnknown: a machine without these files, or with other text in them, says nothing.
func TestUnknown(t *testing.T) {
	var none *Reader
	if none.Between(none.Read(), none.Read()) != nil || none.Runs() != nil {
		t.Error("no reader knows something")
	}
	for _, root := range []fstest.MapFS{
		{},
		{"proc/stat": {Data: []byte("cpu\ncpu0\ncpu0 a b c d e f g h\n")}, "proc/self/stat": {Data: []byte(")")}},
		{"proc/stat": {Data: []byte("cpu0 1 1 1 1 1 1 1 1\n")}}, // the other processor is offline
	} {
		r := NewReader(root, twoOfThree)
		from := r.Read()
		r.now = func() time.Time { return from.at.Add(time.Second) }
		if d := r.Between(from, r.Read()); d != nil || len(r.Runs()) != 0 {
			t.Errorf("%v: %+v", root, d)
		}
	}
}

// TestRuns: other runs of rnnbench are found by their command, once each, and none of this run's own.
func TestRuns(t *testing.T) {
	root := fstest.MapFS{}
	process := func(pid, parent int, args ...string) {
		text := ""
		for _, a := range args {
			text += a + "\x00"
		}
		root[fmt.Sprintf("proc/%d/cmdline", pid)] = &fstest.MapFile{Data: []byte(text)}
		root[fmt.Sprintf("proc/%d/stat", pid)] = &fstest.MapFile{Data: fmt.Appendf(nil, "%d (x) S %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0", pid, parent)}
	}
	process(1, 0, "init")
	process(10, 5, "rnnbench", "sweep") // this one
	process(5, 1, "rnnbench", "compare", "--ab", "a", "b")
	process(11, 10, "rnnbench", "sweep")
	process(12, 11, "rnnbench", "sweep")
	process(20, 1, "/usr/local/bin/rnnbench", "-q", "tune", "-H", "64")
	process(21, 20, "/usr/local/bin/rnnbench", "train")
	process(30, 1, "rnnbench", "show", "latest")
	process(40, 1, "vi", "rnnbench", "sweep")
	process(50, 51, "rnnbench", "reproduce", "all")
	process(51, 50, "a", "circle")
	process(60, 1)
	root["proc/self/stat"] = root["proc/10/stat"]
	got := NewReader(root, twoOfThree).Runs()
	if want := []Run{{20, "tune"}, {50, "reproduce"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
