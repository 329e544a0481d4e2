package record

import (
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCapture(t *testing.T) {
	e := Capture(Options{Version: "v1"})
	if e.Tool.Version != "v1" || e.Tool.Go != runtime.Version() || e.Host.OS != runtime.GOOS || e.CPU.Threads < 1 || e.CPU.MaxProcs < 1 {
		t.Errorf("got %+v", e)
	}
	if Capture(Options{HideHostname: true}).Host.Name != "" {
		t.Error("the host's name is told")
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back Environment
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(e, back) {
		t.Errorf("got %+v\nwant %+v", back, e)
	}
	if d := Diff(e, back); len(d) != 0 {
		t.Errorf("the same environment differs: %q", d)
	}
}

func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestReadFiles(t *testing.T) {
	const cpu = "sys/devices/system/cpu/"
	files := map[string]string{
		"proc/loadavg":                   "3.50 0.61 0.48 2/83 12108\n",
		"proc/stat":                      "cpu  100 0 0 800 0 0 0 100 5 5\ncpu0 1 2\nbtime 1700000000\n",
		"proc/cpuinfo":                   "processor\t: 0\nmodel name\t: Test CPU\nmodel name\t: Other\n",
		"proc/meminfo":                   "MemTotal: 1000 kB\nMemAvailable: 50 kB\n",
		"proc/self/status":               "Name:\tx\nCpus_allowed_list:\t0-1\n",
		"proc/sys/kernel/osrelease":      "6.1\n",
		"proc/1/cgroup":                  "0::/kubepods/x\n",
		"etc/os-release":                 "PRETTY_NAME=\"Test 1\"\n",
		"sys/fs/cgroup/cpu.max":          "150000 100000\n",
		"sys/fs/cgroup/memory.max":       "30720\n",
		"sys/fs/cgroup/memory.current":   "10240\n",
		"sys/devices/system/node/online": "0-1\n", cpu + "online": "0-3\n", cpu + "smt/active": "1\n", cpu + "cpufreq/boost": "1\n",
		cpu + "cpu0/cpufreq/scaling_governor": "powersave\n", cpu + "cpu0/cpufreq/cpuinfo_max_freq": "3500000\n",
		cpu + "cpu0/cache/index0/level": "1", cpu + "cpu0/cache/index0/type": "Data", cpu + "cpu0/cache/index0/size": "48K",
		cpu + "cpu0/cache/index0/shared_cpu_list":    "0,2",
		"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
	}
	for i, core := range []string{"0", "1", "0", "1"} {
		files[cpu+"cpu"+string(rune('0'+i))+"/topology/core_id"] = core
		files[cpu+"cpu"+string(rune('0'+i))+"/topology/physical_package_id"] = "0"
	}
	var e Environment
	e.readFiles(tree(files))
	c := e.CPU
	if c.Model != "Test CPU" || c.Sockets != 1 || c.Cores != 2 || c.Threads != 4 || c.Governor != "powersave" || *c.MaxClock != 3.5e9 ||
		!*c.Boost || !*c.SMT || c.Affinity != "0-1" || c.Allowed != 2 || *c.Quota != 1.5 || c.NUMA != 2 {
		t.Errorf("got %+v", c)
	}
	if want := []Cache{{1, "data", 48 << 10, "0,2"}}; !slices.Equal(c.Caches, want) {
		t.Errorf("got %+v", c.Caches)
	}
	if h := e.Host; h.System != "Test 1" || h.Kernel != "6.1" || h.Container != "kubepods" || h.Boot != "2023-11-14T22:13:20Z" || h.Load[0] != 3.5 {
		t.Errorf("got %+v", h)
	}
	if m := e.Memory; m.Total != 1000<<10 || m.Available != 20<<10 || m.HugePages != "madvise" {
		t.Errorf("got %+v", m)
	}

	dirty := true
	e.Tool.Dirty, e.Host.VM, e.CPU.MaxProcs = &dirty, "KVM", 1
	e.Variables = map[string]string{"GODEBUG": "x=1"}
	e.CPU.Steal = stolen(ticks{}, processorTime(tree(files)))
	advice := Warnings(e)
	for _, want := range []string{"powersave", "boost", "3.50 on 4", "10.0 %", "4 threads share 2 cores", "2 of 4 threads", "1.50 processors",
		"GOMAXPROCS is 1", "KVM", "MiB", "GODEBUG=x=1", "uncommitted changes"} {
		i := slices.IndexFunc(advice, func(a Advice) bool { return strings.Contains(a.What, want) })
		if i < 0 || advice[i].Remedy == "" {
			t.Errorf("nothing is said about %q: %v", want, advice)
		}
	}
	if len(advice) != 12 {
		t.Errorf("got %d pieces of advice: %v", len(advice), advice)
	}
	if len(Warnings(Environment{})) != 0 {
		t.Error("there is advice although nothing is known")
	}
}

// FuzzReadFiles: files of any content are read without a panic.
func FuzzReadFiles(f *testing.F) {
	f.Add("0-3", "1.0 2.0 3.0", "cpu 1 2 3 4 5 6 7 8")
	f.Add("3-1,,", "NaN Inf x", "cpu 18446744073709551615 1 1 1 1 1 1 1")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		const cpu = "sys/devices/system/cpu/"
		var e Environment
		e.readFiles(tree(map[string]string{cpu + "online": a, "proc/loadavg": b, "proc/stat": c, "proc/meminfo": "MemTotal: " + a,
			"sys/fs/cgroup/cpu.max": b, cpu + "cpu0/cpufreq/cpuinfo_max_freq": b, cpu + "cpu0/cache/index0/level": a, cpu + "cpu0/cache/index0/size": a}))
		e.CPU.Steal = stolen(ticks{}, processorTime(tree(map[string]string{"proc/stat": c})))
		if _, err := json.Marshal(e); err != nil {
			t.Fatal(err)
		}
		Warnings(e)
	})
}

func TestKilobytes(t *testing.T) {
	for text, want := range map[string]int64{"48K": 48 << 10, "2 MB": 2 << 20, "24684096 kB": 24684096 << 10, "512": 512, "2 GB": 0, "": 0, "-1 kB": 0} {
		if got := kilobytes(text); got != want {
			t.Errorf("%q: got %d bytes, want %d", text, got, want)
		}
	}
}

func TestDiff(t *testing.T) {
	var a, b Environment
	a.CPU.Model, b.CPU.Model = "A", "B"
	a.Host.Load, b.Host.Load = []float64{1, 2, 3}, []float64{4, 5, 6}
	a.Variables = map[string]string{"GOGC": "off"}
	b.CPU.Threads = 4
	want := []string{"cpu.model: A → B", "cpu.threads: 0 → 4", "variables.GOGC: off → none"}
	if got := Diff(a, b); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVariables(t *testing.T) {
	got := variables([]string{"GOGC=off", "SECRET=x", "PATH=/bin", "OMP_NUM_THREADS="})
	if want := map[string]string{"GOGC": "off", "OMP_NUM_THREADS": ""}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}
