//go:build cuda

package nvidia

import (
	"fmt"
	"strings"

	"gorgonia.org/cu"

	"rnnbench/device"
)

// A monitor watches the GPU through the driver's management library.
type monitor struct {
	library *library
	handle  uintptr
	driver  string
}

// loadMonitor returns nil if the library is missing or does not know the GPU.
func loadMonitor(d cu.Device) *monitor {
	l, err := loadLibrary("libnvidia-ml.so.1")
	if err != nil || l.call("nvmlInit_v2") != 0 {
		return nil
	}
	id, err := d.UUID()
	if err != nil {
		return nil
	}
	m := &monitor{library: l}
	name := append([]byte("GPU-"+id.String()), 0)
	if l.call("nvmlDeviceGetHandleByUUID", address(&name[0]), address(&m.handle)) != 0 {
		return nil
	}
	version := make([]byte, 81)
	if l.call("nvmlSystemGetDriverVersion", address(&version[0]), uintptr(len(version)-1)) == 0 {
		m.driver = text(version)
	}
	return m
}

// throttled returns what limits the clock; "": nothing, or unknown.
func (m *monitor) throttled() string {
	var bits uint64
	if m.library.call("nvmlDeviceGetCurrentClocksThrottleReasons", m.handle, address(&bits)) != 0 {
		return ""
	}
	var words []string
	for _, r := range []struct {
		bit  uint64
		word string
	}{{0x4, "power limit"}, {0x8, "hardware slowdown"}, {0x20, "temperature limit"}, {0x40, "hardware temperature limit"}, {0x80, "power brake"}} {
		if bits&r.bit != 0 {
			words = append(words, r.word)
		}
	}
	return strings.Join(words, ", ")
}

// number queries one number of the GPU.
func (m *monitor) number(name string, args ...uintptr) (int, bool) {
	var v uint32
	code := m.library.call(name, append(append([]uintptr{m.handle}, args...), address(&v))...)
	return int(v), code == 0
}

// A gpuProcess has the size of a nvmlProcessInfo_t. Only the number of processes is read.
type gpuProcess [3]uint64

const smClock, memoryClock = 1, 2

// clock returns the clock of the multiprocessors in hertz; 0: unknown.
func (m *monitor) clock() float64 {
	MHz, ok := m.number("nvmlDeviceGetClockInfo", smClock)
	if !ok {
		return 0
	}
	return float64(MHz) * 1e6
}

// power reads the energy counter, power, clock and temperature. NVML counts in millijoules.
func (m *monitor) power() (device.Power, error) {
	var counted uint64
	if code := m.library.call("nvmlDeviceGetTotalEnergyConsumption", m.handle, address(&counted)); code != 0 {
		return device.Power{}, fmt.Errorf("this GPU counts no energy: NVML answers with error %d", code)
	}
	p := device.Power{Source: "nvml", Joules: float64(counted) / 1e3}
	if mW, ok := m.number("nvmlDeviceGetPowerUsage"); ok {
		p.Watts = float64(mW) / 1e3
	}
	p.Clock = m.clock()
	if t, ok := m.number("nvmlDeviceGetTemperature", 0); ok {
		p.Temperature = float64(t)
	}
	return p, nil
}

// survey returns findings on the state of the GPU: clocks, temperature, power and other programs.
func (m *monitor) survey() []device.Finding {
	var findings []device.Finding
	add := func(name, remedy, format string, args ...any) {
		findings = append(findings, device.Finding{Name: name, Value: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	for _, c := range []struct {
		name string
		kind uintptr
	}{{"SM clock", smClock}, {"memory clock", memoryClock}} {
		now, ok1 := m.number("nvmlDeviceGetClockInfo", c.kind)
		most, ok2 := m.number("nvmlDeviceGetMaxClockInfo", c.kind)
		if ok1 && ok2 {
			add(c.name, "", "%d MHz of %d MHz maximum", now, most)
		}
	}
	if t, ok := m.number("nvmlDeviceGetTemperature", 0); ok {
		add("temperature", "", "%d °C", t)
	}
	power, ok1 := m.number("nvmlDeviceGetPowerUsage")
	limit, ok2 := m.number("nvmlDeviceGetEnforcedPowerLimit")
	if ok1 && ok2 {
		add("power", "", "%d W of %d W limit", power/1000, limit/1000)
	}
	if t := m.throttled(); t != "" {
		add("throttled by", "let the GPU cool or raise its power limit; samples taken now are marked throttled", "%s", t)
	} else {
		add("throttled by", "", "nothing")
	}
	list := make([]gpuProcess, 64)
	n := uint32(len(list))
	if m.library.call("nvmlDeviceGetComputeRunningProcesses_v3", m.handle, address(&n), address(&list[0])) == 0 {
		others := max(int(n)-1, 0) // without this process, whose number differs in a container
		remedy := ""
		if others > 0 {
			remedy = "end the other programs on this GPU"
		}
		add(device.OtherPrograms, remedy, "%d", others)
	}
	return findings
}
