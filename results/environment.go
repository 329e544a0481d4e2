package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"
)

// An Environment is what else decides how fast a run is. Everything in it is
// read, nothing is measured or changed. What a system does not tell stays empty
// or null.
type Environment struct {
	Tool      Tool              `json:"tool"`
	Host      Host              `json:"host"`
	CPU       CPU               `json:"cpu"`
	Memory    Memory            `json:"memory"`
	Variables map[string]string `json:"variables"` // that are set and change speed
	Timezone  string            `json:"timezone"`
}

// Tool is the program that measured.
type Tool struct {
	Version  string            `json:"version"`
	Revision string            `json:"vcs_revision"`
	Time     string            `json:"vcs_time"`
	Dirty    *bool             `json:"vcs_modified"` // built from a changed working tree
	Go       string            `json:"go"`
	Settings map[string]string `json:"build"` // build tags, CGO_ENABLED, GOAMD64 and the like
	Modules  map[string]string `json:"modules"`
}

// Host is the machine as its operating system describes it.
type Host struct {
	Name      string    `json:"name"` // empty where the user keeps it private
	OS        string    `json:"os"`
	Arch      string    `json:"arch"`
	System    string    `json:"system"` // name and version of the distribution
	Kernel    string    `json:"kernel"`
	Container string    `json:"container"` // kind, or empty
	VM        string    `json:"vm"`        // kind, or empty
	Boot      string    `json:"boot"`      // UTC
	Load      []float64 `json:"load"`      // load averages over 1, 5 and 15 minutes
}

// CPU is the processor and what is allowed of it.
type CPU struct {
	Model    string   `json:"model"`
	Sockets  int      `json:"sockets"`
	Cores    int      `json:"cores"`
	Threads  int      `json:"threads"` // online
	Features []string `json:"features"`
	Caches   []Cache  `json:"caches"`
	Governor string   `json:"governor"`
	Driver   string   `json:"driver"`   // of the clock
	MaxClock *float64 `json:"max_hz"`   // as the driver states it
	Boost    *bool    `json:"boost"`    // the clock may rise above the base clock
	SMT      *bool    `json:"smt"`      // cores are shared by threads
	Affinity string   `json:"affinity"` // threads this process may use, as a list of ranges
	Allowed  int      `json:"allowed"`  // number of threads in Affinity
	Quota    *float64 `json:"quota"`    // processors' worth of time that the control group grants; null: no limit
	MaxProcs int      `json:"gomaxprocs"`
	NUMA     int      `json:"numa_nodes"`
	Steal    *float64 `json:"steal"` // fraction of time that a hypervisor took away
}

// Cache is one level of cache as the first core sees it.
type Cache struct {
	Level  int    `json:"level"`
	Kind   string `json:"kind"` // "data", "instruction" or "unified"
	Bytes  int64  `json:"bytes"`
	Shared string `json:"shared"` // threads that share it, as a list of ranges
}

// Memory is in bytes; 0: unknown.
type Memory struct {
	Total     int64  `json:"total"`
	Available int64  `json:"available"`
	HugePages string `json:"transparent_hugepages"`
}

// Options says what Capture may tell and how long it may take.
type Options struct {
	Version      string        // of the tool; empty: as the build says
	HideHostname bool          // leave the host's name out
	Interval     time.Duration // over which stolen time is observed; 0: since the machine started
}

// Capture describes the machine and the program at this moment.
func Capture(o Options) Environment {
	root := os.DirFS("/")
	before := processorTime(root)
	if o.Interval > 0 {
		time.Sleep(o.Interval)
	} else {
		before = ticks{}
	}
	e := Environment{
		Tool:      readTool(o.Version),
		Variables: variables(os.Environ()),
		Timezone:  time.Now().Format("MST -07:00"),
	}
	e.Host.OS, e.Host.Arch = runtime.GOOS, runtime.GOARCH
	if !o.HideHostname {
		e.Host.Name, _ = os.Hostname() // unknown is as good as hidden
	}
	e.CPU = CPU{
		Model:    strings.TrimSpace(cpuid.CPU.BrandName),
		Cores:    cpuid.CPU.PhysicalCores,
		Threads:  runtime.NumCPU(),
		Allowed:  runtime.NumCPU(),
		Features: features(),
		Caches:   []Cache{},
		MaxProcs: runtime.GOMAXPROCS(0),
	}
	if cpuid.CPU.VM() {
		e.Host.VM = cmp.Or(strings.TrimSpace(cpuid.CPU.HypervisorVendorString), "hypervisor")
	}
	e.readFiles(root)
	e.CPU.Steal = stolen(before, processorTime(root))
	e.askSystem()
	if len(e.CPU.Caches) == 0 {
		e.CPU.Caches = cachesByCPUID()
	}
	return e
}

// readTool describes the build.
func readTool(version string) Tool {
	t := Tool{Version: version, Go: runtime.Version(), Settings: map[string]string{}, Modules: map[string]string{}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return t
	}
	t.Version = cmp.Or(version, info.Main.Version)
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			t.Revision = s.Value
		case s.Key == "vcs.time":
			t.Time = s.Value
		case s.Key == "vcs.modified":
			dirty := s.Value == "true"
			t.Dirty = &dirty
		case s.Value != "" && !strings.HasPrefix(s.Key, "vcs"):
			t.Settings[s.Key] = s.Value
		}
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		t.Modules[m.Path] = m.Version
	}
	return t
}

// features lists the instruction sets that matter to matrix products.
func features() []string {
	list := []string{}
	for _, f := range []cpuid.FeatureID{
		cpuid.SSE2, cpuid.SSE42, cpuid.AVX, cpuid.AVX2, cpuid.FMA3, cpuid.F16C, cpuid.BMI2,
		cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512VNNI, cpuid.AVX512BF16, cpuid.AVX512FP16,
		cpuid.AVXVNNI, cpuid.AMXTILE, cpuid.AMXBF16, cpuid.AMXINT8, cpuid.AMXFP16,
		cpuid.ASIMD, cpuid.ASIMDHP, cpuid.ASIMDDP, cpuid.SVE,
	} {
		if cpuid.CPU.Supports(f) {
			list = append(list, strings.ToLower(f.String()))
		}
	}
	return list
}

// variables picks the environment variables that change speed.
func variables(environ []string) map[string]string {
	names := []string{
		"CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_CACHE_DISABLE",
		"NVIDIA_TF32_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
		"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOAMD64", "GODEBUG", "RNNBENCH_SIMD",
	}
	set := map[string]string{}
	for _, v := range environ {
		if name, value, ok := strings.Cut(v, "="); ok && slices.Contains(names, name) {
			set[name] = value
		}
	}
	return set
}

// readFiles reads what Linux publishes under /proc and /sys; elsewhere there is
// nothing to find.
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
	c.Quota = quota(root)

	mem := keyed(root, "proc/meminfo", ":")
	e.Memory.Total, e.Memory.Available = kilobytes(mem["MemTotal"]), kilobytes(mem["MemAvailable"])
	e.Memory.HugePages = chosen(readLineOf(root, "sys/kernel/mm/transparent_hugepage/enabled"))
}

// readFirst reads the clock and the caches of one thread, which stands for all.
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

// cachesByCPUID asks the processor itself.
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

// quota is the share of processors that a control group of version 2 or 1
// grants.
func quota(root fs.FS) *float64 {
	limit, period, _ := strings.Cut(readLineOf(root, "sys/fs/cgroup/cpu.max"), " ")
	if limit == "" {
		limit, period = readLineOf(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us"), readLineOf(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us")
	}
	l, err1 := strconv.ParseFloat(limit, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || l <= 0 || p <= 0 {
		return nil
	}
	share := l / p
	return &share
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

// ticks is time of all processors since the machine started.
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

// stolen is the fraction of the time between two readings that was stolen, or
// nil where no time was counted.
func stolen(from, to ticks) *float64 {
	if to.all <= from.all || to.steal < from.steal {
		return nil
	}
	f := float64(to.steal-from.steal) / float64(to.all-from.all)
	return &f
}

// Helpers to read the files of /proc and /sys. A file that is not there reads as
// an empty one.

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

// keyed reads a file of "key separator value" lines; the first of equal keys
// counts.
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

// parseRanges reads "0-3,8" as 0, 1, 2, 3, 8, or as nothing where it is not
// that.
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

// kilobytes reads "48K", "2 MB" or "24684096 kB" as bytes.
func kilobytes(s string) int64 {
	digits := strings.TrimRight(s, " kKMGB")
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

// flag reads a file that holds one of two words.
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

// Diff lists what differs between two environments, as "cpu.model: A → B". What
// changes from minute to minute is left out.
func Diff(a, b Environment) []string {
	volatile := []string{"host.load", "host.boot", "memory.available", "cpu.steal", "tool.vcs_time"}
	fa, fb := flatten(a), flatten(b)
	names := slices.Collect(maps.Keys(fa))
	names = slices.AppendSeq(names, maps.Keys(fb))
	slices.Sort(names)
	var list []string
	for _, name := range slices.Compact(names) {
		if va, vb := fa[name], fb[name]; va != vb && !slices.Contains(volatile, name) {
			list = append(list, fmt.Sprintf("%s: %s → %s", name, cmp.Or(va, "none"), cmp.Or(vb, "none")))
		}
	}
	return list
}

// flatten spells e as names of records and their values; lists stay whole.
func flatten(e Environment) map[string]string {
	flat := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, sub := range v {
				walk(strings.TrimPrefix(path+"."+k, "."), sub)
			}
		case nil:
		case string:
			flat[path] = v
		default:
			text, err := json.Marshal(v)
			if err != nil {
				panic("results: an environment that was read cannot be written") // v came from JSON
			}
			flat[path] = string(text)
		}
	}
	data, err := json.Marshal(e)
	if err != nil {
		return flat // an environment with NaN: nothing to say of it
	}
	var tree any
	if json.Unmarshal(data, &tree) == nil {
		walk("", tree)
	}
	return flat
}

// An Advice is something that makes measurements noisy or slow, and what to do
// about it.
type Advice struct {
	What   string
	Remedy string
}

// Warnings lists the measurement problems that can be seen without measuring.
func Warnings(e Environment) []Advice {
	var list []Advice
	add := func(remedy, what string, args ...any) {
		list = append(list, Advice{fmt.Sprintf(what, args...), remedy})
	}
	c, h := e.CPU, e.Host
	if c.Governor != "" && c.Governor != "performance" {
		add("as root: cpupower frequency-set --governor performance",
			"the CPU governor is %q, which reacts late to load", c.Governor)
	}
	if c.Boost != nil && *c.Boost {
		add("for least noise, turn boost off in the firmware or under /sys/devices/system/cpu; for best times, leave it on and let the machine cool between runs",
			"clock boost is on, so the clock depends on temperature and on the number of busy cores")
	}
	if len(h.Load) > 0 && h.Load[0] > max(0.1*float64(c.Threads), 0.5) {
		add("stop other programs and wait a minute, because the load is a one-minute average",
			"the load average is %.2f on %d threads: other programs are running", h.Load[0], c.Threads)
	}
	if c.Steal != nil && *c.Steal > 0.005 {
		add("use a dedicated machine or more --rounds, and compare only interleaved runs",
			"the hypervisor steals %.1f %% of the processor time", 100**c.Steal)
	}
	if c.SMT != nil && *c.SMT {
		add("use one thread per core (--threads, bound with taskset), or turn SMT off in the firmware",
			"%d threads share %d cores", c.Threads, c.Cores)
	}
	if c.Allowed > 0 && c.Threads > c.Allowed {
		add("to measure the whole machine, start without taskset or with a larger CPU set",
			"this process may use %d of %d threads (%s)", c.Allowed, c.Threads, c.Affinity)
	}
	if c.Quota != nil && *c.Quota < float64(c.Allowed) {
		add("raise the container's CPU limit to a whole number of processors, or set --threads below the limit",
			"the control group limits the process to the time of %.2f processors and pauses it beyond that", *c.Quota)
	}
	if c.MaxProcs > 0 && c.MaxProcs < c.Allowed {
		add("unset GOMAXPROCS", "GOMAXPROCS is %d, but the process may use %d threads", c.MaxProcs, c.Allowed)
	}
	if h.VM != "" {
		add("publish numbers from dedicated hardware; here, check the spread before the median",
			"this is a virtual machine (%s), whose neighbours share caches, memory and clock", h.VM)
	}
	if e.Memory.Total > 0 && e.Memory.Available > 0 && e.Memory.Available < e.Memory.Total/10 {
		add("stop other programs; otherwise large points are declined or swap", "only %d MiB of memory are available", e.Memory.Available>>20)
	}
	for _, name := range []string{"CUDA_LAUNCH_BLOCKING", "NVIDIA_TF32_OVERRIDE", "GODEBUG", "GOGC", "GOMEMLIMIT"} {
		if v, ok := e.Variables[name]; ok {
			add("unset it, unless you want to measure its effect", "%s=%s changes speed", name, v)
		}
	}
	if e.Tool.Dirty != nil && *e.Tool.Dirty {
		add("commit first if you want to save the numbers", "the program was built from uncommitted changes, so nobody can rebuild it")
	}
	return list
}
