package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/record/around"
	"rnnbench/rnn/cell"
	"rnnbench/train/training"
	"rnnbench/tuner"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// A bench is an open device with its measured limits, its oracle for auto, and its rivals.
type bench struct {
	device.Device
	info      device.Info
	limits    device.Limits
	machine   *model.Machine // nil: not measured
	place     string         // the processors and the time that this process may use
	slowed    string         // limits that are far below those measured before; "": none, or unknown
	others    string         // how many other programs used the device at first, or how much; "": none, or unknown
	around    *around.Reader // of counters that tell what disturbs measurements
	opened    *around.Counters
	maxMemory int64 // bytes that --max-memory grants a technique; 0: not set
	oracle    *auto.Oracle
	rivals    guests
	replicas  func(n int) (training.Replicas, error) // starts processes that train together
}

// open opens the device that c names.
func (s *settings) open(c config.Config) (*bench, error) {
	if len(c.Devices) > 1 {
		return nil, usage(fmt.Errorf("--device: choose one device, not %s", strings.Join(c.Devices, ", ")), "")
	}
	memory, err := s.maxMemory()
	if err != nil {
		return nil, usage(err, "")
	}
	env := environment(true) // before a device binds threads
	counters := around.NewReader(systemRoot, env.CPU)
	opened := counters.Read()
	var d device.Device
	switch name := c.Devices[0]; {
	case name == "cpu" && c.Measure.Isolate == "on":
		d, err = s.openIsolated(c)
	case name == "cpu":
		d, err = s.openCPU(c)
	case isGPU(name) && c.Measure.Isolate == "off":
		return nil, usage(errors.New("--isolate off: a GPU always needs a worker process; use auto or on"), "")
	case isGPU(name):
		d, err = openGPU(name, c.Measure)
	default:
		return nil, unknownDevice(name)
	}
	if err != nil {
		return nil, err
	}
	b := &bench{Device: d, info: d.Info(), place: placeOf(env), around: counters, opened: opened, maxMemory: memory}
	b.oracle = s.oracle(b, c)
	b.replicas = func(n int) (training.Replicas, error) {
		r, err := s.openReplicas(c, c.Devices[0], n)
		if err != nil {
			return training.Replicas{}, err
		}
		return training.Replicas{Devices: r.devices, Close: r.close}, nil
	}
	return b, nil
}

// unknownDevice names the device that was probably meant.
func unknownDevice(name string) error {
	err := grid.Unknown("device", name, []string{"cpu", "cuda:0"})
	for _, word := range []string{"gpu", "cuda", "nvidia"} {
		if strings.Contains(strings.ToLower(name), word) {
			err = fmt.Errorf("unknown device %q: a GPU is cuda:0, the next one cuda:1", name)
		}
	}
	for _, word := range []string{"mps", "metal", "ane", "rocm", "hip", "amd", "tpu", "xla", "xpu", "npu", "hpu", "dml", "opencl", "vulkan", "sycl"} {
		if kind, _, _ := strings.Cut(strings.ToLower(name), ":"); kind == word {
			err = fmt.Errorf("unknown device %q: rnnbench measures on cpu and on NVIDIA GPUs, cuda:0 and the next ones", name)
		}
	}
	return usage(fmt.Errorf("--device: %w", err), "rnnbench list devices")
}

// threadsEach is the most threads per processor. With many more, workers wait for each other
// so long that measuring the machine alone takes minutes.
const threadsEach = 16

func (s *settings) openCPU(c config.Config) (device.Device, error) {
	o, err := s.options(c)
	if err != nil {
		return nil, usage(err, "")
	}
	if o.Threads > cpu.MaxThreads {
		return nil, usage(fmt.Errorf("--threads: %d exceeds the maximum of %d", o.Threads, cpu.MaxThreads), "")
	}
	if most := threadsEach * runtime.NumCPU(); o.Threads > most {
		return nil, usage(fmt.Errorf("--threads: %d is too many for %s: use at most %d", o.Threads, plural(runtime.NumCPU(), "processor"), most), "")
	}
	o.Group = s.group
	d, err := cpu.Open(o)
	if err != nil {
		hint := "rnnbench doctor"
		if strings.Contains(err.Error(), simd.Variable) {
			hint = "unset " + simd.Variable + ", or name a lower set with --simd"
		}
		return nil, &failure{exitNoDevice, err, hint}
	}
	return d, nil
}

// crowded warns that workers share processors; nil: they do not.
func (b *bench) crowded(env record.Environment) []record.Advice {
	if n := env.CPU.Allowed; b.info.Name == "cpu" && n > 0 && b.info.Workers > n {
		return []record.Advice{{
			What:   fmt.Sprintf("%d threads share %s and spend most of their time waiting", b.info.Workers, plural(n, "processor")),
			Remedy: fmt.Sprintf("use --threads %d, or omit the flag", n),
		}}
	}
	return nil
}

// measureLimits measures the peak rates of a device that is a device.Meter. The best rates of a
// processor are kept for later runs.
func (b *bench) measureLimits() error {
	meter, ok := b.Device.(device.Meter)
	if !ok {
		return nil
	}
	var err error
	if b.limits, err = limitsOf(meter, b.info); err == nil {
		recallLimits(b)
	}
	return err
}

// limitsOf measures a device's peak rates. Tests replace it, to measure once for many commands.
var limitsOf = func(m device.Meter, _ device.Info) (device.Limits, error) { return m.Limits() }

// free returns the bytes that a technique may take; 0: unknown.
func (b *bench) free() int64 {
	if b.maxMemory > 0 {
		return b.maxMemory
	}
	return tuner.Free(b.info)
}

// record describes the device for a manifest.
func (b *bench) record() record.Device {
	d := record.Device{Key: b.info.Key, Name: b.info.Model, Facts: maps.Clone(b.info.Libraries)}
	if d.Facts == nil {
		d.Facts = map[string]string{}
	}
	d.Facts["workers"] = fmt.Sprint(b.info.Workers)
	if b.info.Build != "" && record.OnGPU(b.info.Key) { // elsewhere the worker is this program
		d.Facts[workerCommit] = b.info.Build
	}
	if f := b.limits.FLOPS; f > 0 {
		d.Peak = &f
	}
	d.Unsure = b.limits.Unsure
	if b.others != "" {
		d.Facts[device.OtherPrograms] = b.others
	}
	if b.slowed != "" {
		d.Facts[slowedFact] = b.slowed
	}
	b.rivals.note(d.Facts)
	for _, r := range b.limits.More {
		d.Facts[r.Name] = quantity.SI(r.Value, r.Unit)
	}
	if c := b.limits.Copy; c > 0 {
		d.Bandwidth = &c
	}
	if b.machine != nil {
		d.Machine, _ = json.Marshal(b.machine) // checked: its numbers are finite
	}
	return d
}

// slowedFact is the key of a device's fact: the limits that were far below those measured before.
const slowedFact = "slower than before"

// workerCommit is the key of a device's fact: the commit that its worker was built from.
const workerCommit = "worker commit"

// buildMismatch says that worker and program were built from different commits. It returns "" if the
// commits agree or one is unknown.
func buildMismatch(worker, own string) string {
	if worker == "" || own == "" || worker == own {
		return ""
	}
	return fmt.Sprintf("the worker for GPUs was built from commit %s, and rnnbench from %s: build both again with make cuda build", worker, own)
}

// vocabulary returns the names that a grid may use on this device.
func (b *bench) vocabulary() grid.Vocabulary {
	return grid.Vocabulary{
		Words: grid.Words(cellNames()), Lengths: readLengths, Impls: append(append(implNames(), b.rivals.names()...), autoName), All: b.defaultTechniques(),
		Derive: b.derive,
	}
}

// defaultTechniques lists the techniques that a grid measures by default: our own, the vendors'
// libraries that the device has, and the rivals.
func (b *bench) defaultTechniques() []string {
	var names []string
	for _, t := range impl.Own() {
		names = append(names, t.Name())
	}
	for _, t := range impl.Vendors() {
		if _, ok := b.info.Libraries[t.Name()]; ok {
			names = append(names, t.Name())
		}
	}
	return append(names, b.rivals.names()...)
}

func cellNames() []string {
	var names []string
	for _, c := range cell.All() {
		names = append(names, c.Name)
	}
	return names
}

func implNames() []string {
	var names []string
	for _, t := range impl.All() {
		names = append(names, t.Name())
	}
	return names
}

// derive computes the keys of --where that are not axes: flops, mem and intensity.
func (b *bench) derive(p record.Point, s grid.Spec, key string) (float64, error) {
	problem, err := tuner.Problem(p)
	if err != nil || key == "flops" {
		return float64(problem.FLOPs()), err
	}
	l, err := b.layOut(p, s)
	if err != nil {
		return 0, err
	}
	if key == "mem" && (l.Reason == "" || l.Code == record.ReasonMemory) {
		return float64(l.Need()), nil // what forecasts print
	}
	if l.Reason != "" {
		return 0, nil
	}
	return float64(problem.FLOPs()) / float64(max(1, l.Schedule.Traffic())), nil
}

// layOut lays p out with s for the device, after auto has chosen. It returns an error only for a
// user's mistake; a layout that is declined has a Reason.
func (b *bench) layOut(p record.Point, s grid.Spec) (*tuner.Layout, error) {
	s, err := b.decide(p, s)
	if err != nil {
		return nil, err
	}
	return tuner.LayOutWithin(b.Device, b.techniques(), p, s, b.free())
}
