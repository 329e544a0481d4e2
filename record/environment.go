package record

import (
	"cmp"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"
)

// An Environment describes the machine and the program, as far as they affect speed. Everything in it
// is read; nothing is measured or changed. What the system does not tell stays empty or null.
type Environment struct {
	Tool      Tool              `json:"tool"`
	Host      Host              `json:"host"`
	CPU       CPU               `json:"cpu"`
	Memory    Memory            `json:"memory"`
	Variables map[string]string `json:"variables"` // set variables that change speed
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

// CPU is the processor and how much of it the process may use.
type CPU struct {
	Model    string   `json:"model"`
	Sockets  int      `json:"sockets"`
	Cores    int      `json:"cores"`
	Threads  int      `json:"threads"` // online
	Features []string `json:"features"`
	Caches   []Cache  `json:"caches"`
	Governor string   `json:"governor"` // of the clock
	Driver   string   `json:"driver"`   // of the clock
	MaxClock *float64 `json:"max_hz"`   // as the driver states it
	Boost    *bool    `json:"boost"`    // the clock may rise above the base clock
	SMT      *bool    `json:"smt"`      // threads share cores
	Affinity string   `json:"affinity"` // threads this process may use, as a list of ranges
	Allowed  int      `json:"allowed"`  // number of threads in Affinity
	Quota    *float64 `json:"quota"`    // time that the control group grants, in processors; null: no limit
	MaxProcs int      `json:"gomaxprocs"`
	NUMA     int      `json:"numa_nodes"`
	Steal    *float64 `json:"steal"` // fraction of time that a hypervisor took away
}

// Processors lists the threads of c that this process may use; nil: unknown.
func (c CPU) Processors() []int { return parseRanges(c.Affinity) }

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
	Available int64  `json:"available"` // to this process: a control group may allow less than the machine has
	HugePages string `json:"transparent_hugepages"`
}

// Options says what Capture may read and how long it may take.
type Options struct {
	Version      string        // of the tool; empty: the build's
	HideHostname bool          // leave the host's name out
	Interval     time.Duration // for which stolen time is observed; 0: count since the machine started
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
		e.Host.Name, _ = os.Hostname() // an unknown name stays empty, as a hidden one
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

// The helpers that read files of /proc and /sys take a missing file for an empty one.

// Commit names the program's commit in a few letters, with + if it was built from a changed working tree;
// "": unknown.
func (t Tool) Commit() string {
	s := t.Revision[:min(len(t.Revision), 10)]
	if s != "" && t.Dirty != nil && *t.Dirty {
		s += "+"
	}
	return s
}
