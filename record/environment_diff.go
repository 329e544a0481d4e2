package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Diff lists what differs between two environments, such as "cpu.model: A → B". It leaves out what
// changes from minute to minute, and the number of Go's processors: a device raises it for its workers.
func Diff(a, b Environment) []string {
	volatile := []string{"host.load", "host.boot", "memory.available", "cpu.steal", "cpu.gomaxprocs", "tool.vcs_time"}
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

// flatten maps the JSON path of each value in e to its text. Lists stay whole.
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
				panic("record: an environment that was read cannot be written") // v came from JSON
			}
			flat[path] = string(text)
		}
	}
	data, err := json.Marshal(e)
	if err != nil {
		return flat // e has a NaN and cannot be compared
	}
	var tree any
	if json.Unmarshal(data, &tree) == nil {
		walk("", tree)
	}
	return flat
}

// An Advice names something that makes measurements noisy or slow, and what to do about it.
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
			"this process may use only %d of %d threads, those numbered %s", c.Allowed, c.Threads, c.Affinity)
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
		add("stop other programs, or raise the container's memory limit; otherwise large points are declined or swap", "only %d MiB of memory are available", e.Memory.Available>>20)
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
