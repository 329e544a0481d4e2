package cpu

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"rnnbench/device"
)

// A rapl adds up the energy counters of the processor packages, which Linux shows in the powercap
// folder. A counter restarts from 0 at the end of its range.
type rapl struct {
	dir fs.FS

	mu    sync.Mutex
	zones []zone // nil: not read yet
	sum   float64
}

// A zone is one package. Its energies are in microjoules.
type zone struct {
	path       string
	last, most uint64
}

// Power implements device.PowerMeter.
func (d *Device) Power() (device.Power, error) { return d.meter.read() }

func newRAPL() *rapl { return &rapl{dir: os.DirFS("/sys/class/powercap")} }

func (r *rapl) read() (device.Power, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.zones == nil {
		zones, err := packages(r.dir)
		if err != nil {
			return device.Power{}, err
		}
		r.zones = zones
	}
	for i := range r.zones {
		z := &r.zones[i]
		now, err := count(r.dir, z.path+"/energy_uj")
		if err != nil {
			return device.Power{}, err
		}
		r.sum += float64(since(z.last, now, z.most)) / 1e6
		z.last = now
	}
	return device.Power{Source: "rapl", Joules: r.sum}, nil
}

// since returns the increase of a counter from last to now. The counter restarts from 0 after most.
func since(last, now, most uint64) uint64 {
	if now >= last {
		return now - last
	}
	return most - min(last, most) + now
}

// packages lists the zones of processor packages with their current counts.
func packages(dir fs.FS) ([]zone, error) {
	names, err := fs.Glob(dir, "intel-rapl:*/name")
	if err != nil {
		return nil, err
	}
	var list []zone
	for _, path := range names {
		text, err := fs.ReadFile(dir, path)
		if err != nil || !strings.HasPrefix(string(text), "package-") {
			continue
		}
		z := zone{path: strings.TrimSuffix(path, "/name")}
		if z.last, err = count(dir, z.path+"/energy_uj"); err != nil {
			return nil, err
		}
		if z.most, err = count(dir, z.path+"/max_energy_range_uj"); err != nil {
			return nil, err
		}
		list = append(list, z)
	}
	if len(list) == 0 {
		return nil, errors.New("this system has no energy counter of the processor: /sys/class/powercap has no package")
	}
	return list, nil
}

// count reads a counter.
func count(dir fs.FS, path string) (uint64, error) {
	text, err := fs.ReadFile(dir, path)
	if errors.Is(err, fs.ErrPermission) {
		return 0, fmt.Errorf("the processor's energy counter may not be read: allow it by chmod a+r /sys/class/powercap/%s", path)
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/sys/class/powercap/%s does not hold a number: %w", path, err)
	}
	return n, nil
}
