package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/results"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// A bench is an open device and what it can do.
type bench struct {
	device.Device
	info      device.Info
	limits    device.Limits
	machine   *model.Machine // nil: not measured
	maxMemory int64          // that the user grants a technique; 0: as the device says
}

// open opens the device that c names.
func (s *settings) open(c config.Config) (*bench, error) {
	for _, name := range c.Devices {
		switch {
		case name == "cpu" || name == "all":
		case strings.HasPrefix(name, "cuda") || strings.HasPrefix(name, "gpu") || strings.HasPrefix(name, "nvidia"):
			return nil, &failure{exitNoDevice, fmt.Errorf("device %s is not available: GPUs need the worker rnnbench-cuda, which this build does not have", name),
				"--device cpu measures on this machine's processor"}
		default:
			return nil, usage(fmt.Errorf("--device: %w", unknown("device", name, []string{"cpu", "cuda:0", "all"})), "rnnbench list devices")
		}
	}
	memory, err := s.maxMemory()
	if err != nil {
		return nil, usage(err, "")
	}
	o, err := s.options(c)
	if err != nil {
		return nil, usage(err, "")
	}
	if o.Threads > cpu.MaxThreads {
		return nil, usage(fmt.Errorf("--threads: %d is more than %d, the most there can be", o.Threads, cpu.MaxThreads), "")
	}
	d, err := cpu.Open(o)
	if err != nil {
		return nil, &failure{exitNoDevice, err, "rnnbench doctor"}
	}
	return &bench{Device: d, info: d.Info(), maxMemory: memory}, nil
}

// measureLimits finds what the device can do at most.
func (b *bench) measureLimits() error {
	meter, ok := b.Device.(device.Meter)
	if !ok {
		return nil
	}
	var err error
	b.limits, err = meter.Limits()
	return err
}

// free is the memory that a technique may take; 0: unknown.
func (b *bench) free() int64 {
	if b.maxMemory > 0 {
		return b.maxMemory
	}
	return b.info.Memory / 10 * 9
}

// record describes the device for a manifest.
func (b *bench) record() results.Device {
	d := results.Device{Key: b.info.Key, Name: b.info.Model, Facts: maps.Clone(b.info.Libraries)}
	if d.Facts == nil {
		d.Facts = map[string]string{}
	}
	d.Facts["workers"] = fmt.Sprint(b.info.Workers)
	if f := b.limits.FLOPS; f > 0 {
		d.Peak = &f
	}
	if c := b.limits.Copy; c > 0 {
		d.Bandwidth = &c
	}
	if b.machine != nil {
		d.Machine, _ = json.Marshal(b.machine) // checked: its numbers are finite
	}
	return d
}

// vocabulary is what grids speak of here.
func (b *bench) vocabulary() grid.Vocabulary {
	return grid.Vocabulary{
		Cells: cellNames(), Passes: rnn.Passes(), Precisions: rnn.Precisions(), Impls: implNames(),
		Derive: b.derive,
	}
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

// derive computes the keys of conditions that are no axes.
func (b *bench) derive(p results.Point, s grid.Spec, key string) (float64, error) {
	problem, err := tuner.Problem(p)
	if err != nil || key == "flops" {
		return float64(problem.FLOPs()), err
	}
	l, err := b.layOut(p, s)
	if err != nil || l.declined != "" {
		return 0, err
	}
	if key == "mem" {
		return float64(l.memory), nil
	}
	return float64(problem.FLOPs()) / float64(max(1, l.sched.Traffic())), nil
}

// A layout is what a technique makes of a point.
type layout struct {
	point    results.Point
	spec     grid.Spec
	problem  rnn.Problem
	plan     *rnn.Plan
	sched    *schedule.Schedule
	knobs    knob.Params // of the technique and of the device, complete
	device   knob.Params // those of the device
	memory   int64
	declined string // why the technique does not run the point; "" if it does
	code     string
}

// layOut has s plan p for the device. Only mistakes of the user's are errors.
func (b *bench) layOut(p results.Point, s grid.Spec) (*layout, error) {
	l := &layout{point: p, spec: s}
	settings, offered, err := l.settle()
	if err != nil || l.declined != "" {
		return l, err
	}
	tech := impl.Lookup(s.Name)
	rest, own := settings.Split(offered)
	if l.knobs, err = own.Complete(offered); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	l.plan, l.sched, err = rnn.Layout(tech, l.problem, l.knobs)
	if errors.Is(err, schedule.ErrUnsupported) {
		l.declined, l.code = err.Error(), results.ReasonShape
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	more := b.Knobs(l.sched)
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		if known := knobNames(offered, more); !slices.Contains(known, name) {
			if len(known) == 0 {
				return nil, fmt.Errorf("%s: there is no knob %q: it has none", s.Name, name)
			}
			return nil, fmt.Errorf("%s: %w", s.Name, unknown("knob", name, known))
		}
	}
	if l.device, err = rest.Complete(more); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	maps.Copy(l.knobs, l.device)
	if l.memory, err = b.Memory(l.sched, l.device); err != nil {
		return nil, err
	}
	return l, nil
}

// settle finds the problem and the settings of knobs, and the knobs that the
// technique offers.
func (l *layout) settle() (knob.Params, []knob.Knob, error) {
	var err error
	if l.problem, err = tuner.Problem(l.point); err != nil {
		return nil, nil, err
	}
	tech := impl.Lookup(l.spec.Name)
	if tech == nil {
		return nil, nil, unknown("technique", l.spec.Name, implNames())
	}
	settings := knob.Params{}
	maps.Copy(settings, l.spec.Knobs)
	offered := tech.Knobs(l.problem)
	if n := l.point.Streams; n > 0 {
		if slices.Contains(knobNames(offered), "streams") {
			settings["streams"] = n
		} else if n > 1 {
			l.declined, l.code = fmt.Sprintf("%s runs on one stream, not %d", l.spec.Name, n), results.ReasonShape
		}
	}
	return settings, offered, nil
}

func knobNames(lists ...[]knob.Knob) []string {
	var names []string
	for _, k := range slices.Concat(lists...) {
		names = append(names, k.Name)
	}
	return names
}

// need is the memory that measuring the layout takes, the copies of weights on
// the host included.
func (l *layout) need() int64 {
	weights := int64(0)
	p := l.problem
	for i := range p.Layers {
		weights += int64(len(p.Cell.Gates)) * int64(p.Hidden) * int64(p.Width(i)+p.Hidden)
	}
	return l.memory + 8*weights
}

// fit declines what would not fit.
func (b *bench) fit(l *layout) {
	if free := b.free(); l.declined == "" && free > 0 && l.need() > free {
		l.declined = fmt.Sprintf("needs %s and %s are free", quantity.Bytes(float64(l.need())), quantity.Bytes(float64(free)))
		l.code = results.ReasonMemory
	}
}
