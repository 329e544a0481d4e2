package record

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/internal/cgroup"
	"rnnbench/internal/memory"
)

// readFiles reads what Linux publishes under /proc and /sys. On other systems it finds nothing.
func (e *Environment) readFiles(root fs.FS) {
	const cpu = "sys/devices/system/cpu/"

	e.Host.Load = loadAverage(root)
	e.Host.Kernel = readLineOf(root, "proc/sys/kernel/osrelease")
	e.Host.System = keyed(root, "etc/os-release", "=")["PRETTY_NAME"]
	e.Host.Container = container(root)
	if vendor := readLineOf(root, "sys/class/dmi/id/sys_vendor"); e.Host.VM != "" && vendor != "" {
		e.Host.VM += ", " + vendor
	}
	if seconds, err := strconv.ParseInt(keyed(root, "proc/stat", " ")["btime"], 10, 64); err == nil {
		e.Host.Boot = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	}

	c := &e.CPU
	if model := keyed(root, "proc/cpuinfo", ":")["model name"]; model != "" {
		c.Model = model
	}
	online := parseRanges(readLineOf(root, cpu+"online"))
	if len(online) > 0 {
		c.Threads = len(online)
		sockets, cores := map[string]bool{}, map[string]bool{}
		for _, i := range online {
			topology := cpu + "cpu" + strconv.Itoa(i) + "/topology/"
			socket, core := readLineOf(root, topology+"physical_package_id"), readLineOf(root, topology+"core_id")
			if socket != "" && core != "" {
				sockets[socket], cores[socket+":"+core] = true, true
			}
		}
		if len(cores) > 0 {
			c.Sockets, c.Cores = len(sockets), len(cores)
		}
		c.readFirst(root, cpu+"cpu"+strconv.Itoa(online[0])+"/")
	}
	c.Boost = flag(readLineOf(root, cpu+"cpufreq/boost"), "1", "0")
	if b := flag(readLineOf(root, cpu+"intel_pstate/no_turbo"), "0", "1"); b != nil {
		c.Boost = b
	}
	c.SMT = flag(readLineOf(root, cpu+"smt/active"), "1", "0")
	c.NUMA = len(parseRanges(readLineOf(root, "sys/devices/system/node/online")))
	if list := keyed(root, "proc/self/status", ":")["Cpus_allowed_list"]; list != "" {
		c.Affinity, c.Allowed = list, len(parseRanges(list))
	}
	if q := cgroup.Quota(root); q > 0 {
		c.Quota = &q
	}

	mem := keyed(root, "proc/meminfo", ":")
	e.Memory.Total, e.Memory.Available = kilobytes(mem["MemTotal"]), memory.Left(root)
	e.Memory.HugePages = chosen(readLineOf(root, "sys/kernel/mm/transparent_hugepage/enabled"))
}

// readFirst reads the clock and the caches of one thread and takes them for all.
func (c *CPU) readFirst(root fs.FS, dir string) {
	c.Governor = readLineOf(root, dir+"cpufreq/scaling_governor")
	c.Driver = readLineOf(root, dir+"cpufreq/scaling_driver")
	if khz, err := strconv.ParseFloat(readLineOf(root, dir+"cpufreq/cpuinfo_max_freq"), 64); err == nil && khz > 0 && khz < 1e9 {
		hz := khz * 1000
		c.MaxClock = &hz
	}
	for i := range 16 {
		index := dir + "cache/index" + strconv.Itoa(i) + "/"
		level, err := strconv.Atoi(readLineOf(root, index+"level"))
		if err != nil {
			break
		}
		c.Caches = append(c.Caches, Cache{
			Level:  level,
			Kind:   strings.ToLower(readLineOf(root, index+"type")),
			Bytes:  kilobytes(readLineOf(root, index+"size")),
			Shared: readLineOf(root, index+"shared_cpu_list"),
		})
	}
}

// cachesByCPUID asks the processor itself for its caches.
func cachesByCPUID() []Cache {
	caches := []Cache{}
	for _, c := range []Cache{
		{Level: 1, Kind: "data", Bytes: int64(cpuid.CPU.Cache.L1D)},
		{Level: 1, Kind: "instruction", Bytes: int64(cpuid.CPU.Cache.L1I)},
		{Level: 2, Kind: "unified", Bytes: int64(cpuid.CPU.Cache.L2)},
		{Level: 3, Kind: "unified", Bytes: int64(cpuid.CPU.Cache.L3)},
	} {
		if c.Bytes > 0 {
			caches = append(caches, c)
		}
	}
	return caches
}

// container guesses the kind of container around the process.
func container(root fs.FS) string {
	groups := readText(root, "proc/1/cgroup") + readText(root, "proc/self/cgroup")
	for _, kind := range []string{"kubepods", "docker", "containerd", "lxc", "podman"} {
		if strings.Contains(groups, kind) {
			return kind
		}
	}
	for _, mark := range []struct{ file, kind string }{{"run/.containerenv", "podman"}, {".dockerenv", "docker"}} {
		if _, err := fs.Stat(root, mark.file); err == nil {
			return mark.kind
		}
	}
	return ""
}

// loadAverage returns the load averages over 1, 5 and 15 minutes, or nil.
func loadAverage(root fs.FS) []float64 {
	fields := strings.Fields(readLineOf(root, "proc/loadavg"))
	if len(fields) < 3 {
		return nil
	}
	load := make([]float64, 3)
	for i := range load {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(v >= 0 && v < 1e9) {
			return nil
		}
		load[i] = v
	}
	return load
}

// ticks is the time of all processors since the machine started, in clock ticks.
type ticks struct{ all, steal uint64 }

func processorTime(root fs.FS) ticks {
	var t ticks
	fields := strings.Fields(readLineOf(root, "proc/stat"))
	// cpu user nice system idle iowait irq softirq steal; guest time is in user.
	for i := 1; i <= 8 && i < len(fields); i++ {
		v, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return ticks{}
		}
		t.all += v
		if i == 8 {
			t.steal = v
		}
	}
	return t
}

// stolen is the fraction of time that was stolen between two readings; nil: no time was counted.
func stolen(from, to ticks) *float64 {
	if to.all <= from.all || to.steal < from.steal {
		return nil
	}
	f := float64(to.steal-from.steal) / float64(to.all-from.all)
	return &f
}

func readText(root fs.FS, name string) string {
	data, err := fs.ReadFile(root, path.Clean(name))
	if err != nil {
		return ""
	}
	return string(data)
}

// readLineOf returns the first line of a file.
func readLineOf(root fs.FS, name string) string {
	line, _, _ := strings.Cut(readText(root, name), "\n")
	return strings.TrimSpace(line)
}

// keyed reads a file of "key separator value" lines. The first of equal keys counts.
func keyed(root fs.FS, name, separator string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(readText(root, name)) {
		key, value, ok := strings.Cut(line, separator)
		key = strings.TrimSpace(key)
		if _, twice := m[key]; ok && !twice {
			m[key] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return m
}

// parseRanges reads "0-3,8" as 0, 1, 2, 3, 8; nil: s has another form.
func parseRanges(s string) []int {
	var list []int
	if s == "" {
		return nil
	}
	for part := range strings.SplitSeq(s, ",") {
		from, to, ok := strings.Cut(part, "-")
		if !ok {
			to = from
		}
		lo, err1 := strconv.Atoi(from)
		hi, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || lo < 0 || hi < lo || hi > 1<<16 {
			return nil
		}
		for i := lo; i <= hi; i++ {
			list = append(list, i)
		}
	}
	return list
}

// kilobytes reads "48K", "2 MB" or "24684096 kB" as bytes; 0: s has another form.
func kilobytes(s string) int64 {
	digits := strings.TrimRight(s, " kKMB")
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || v < 0 || v > 1<<40 {
		return 0
	}
	switch unit := strings.ToUpper(strings.TrimSpace(s[len(digits):])); {
	case strings.HasPrefix(unit, "K"):
		v <<= 10
	case strings.HasPrefix(unit, "M"):
		v <<= 20
	}
	return v
}

// flag reads a word that means true or false; nil: any other word.
func flag(s, yes, no string) *bool {
	if s != yes && s != no {
		return nil
	}
	v := s == yes
	return &v
}

// chosen returns the word in brackets of "always [madvise] never".
func chosen(s string) string {
	_, after, _ := strings.Cut(s, "[")
	word, _, _ := strings.Cut(after, "]")
	return word
}
