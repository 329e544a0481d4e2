// Package bench opens what an agenda is measured on: a device, with its measured limits, the rivals beside
// it, and the oracle that chooses for auto. It says what else uses the machine.
package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"rnnbench/device"
	"rnnbench/device/worker"
	"rnnbench/impl"
	"rnnbench/internal/exit"
	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/record/around"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
	"rnnbench/train/training"
	"rnnbench/tuner"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// Options say which device to open, and how.
type Options struct {
	Config    config.Config
	SIMD      string // instruction set of the CPU; "": the best
	Memory    string // that a technique may take, such as 8GiB; "": 90 % of what is free
	Wisdom    string // file of the wisdom that auto follows; "": the user's
	ReadOnly  bool   // nothing is saved in that file
	Vendor    bool   // auto may choose the vendor's library
	Race      bool   // auto times its best predictions
	Verified  bool   // answers of auto's choices are verified, so it may choose an iterative technique
	Objective string // of the wisdom: "" for time, or record.OfEnergy
	Rivals    bool   // start the configured rivals
	Times     bool   // runs will be timed, so warn of what else uses the device
	Version   string // of the program
}

// A Teller tells the user what happens.
type Teller interface {
	Note(format string, args ...any)
	Warn(format string, args ...any)
	Busy(what string) (done func())    // says what is being done, if it takes long
	BusyNow(what string) (done func()) // says so at once
	Logger() *slog.Logger
}

// Hardware is an open device with what was measured of it.
type Hardware struct {
	Device  device.Device
	Info    device.Info
	Limits  device.Limits
	Machine *model.Machine // nil: not measured

	tell    Teller
	version string
	place   string // the processors and the time that this process may use
	slowed  string // limits that are far below those measured before; "": none, or unknown
}

// A Bench is the hardware, what else uses it, the oracle for auto, and the rivals.
type Bench struct {
	Hardware
	Around    *around.Reader // of counters that tell what disturbs measurements
	MaxMemory int64          // bytes that --max-memory grants a technique; 0: not set
	Rivals    Rivals
	Oracle    *auto.Oracle
	Replicas  func(n int) (training.Replicas, error) // starts processes that train together

	others string // how many other programs used the device at first, or how much; "": none, or unknown
	opened *around.Counters
}

// SystemRoot holds /proc and /sys, where Linux publishes its counters. Tests replace it.
var SystemRoot fs.FS = os.DirFS("/")

// Open opens the device that o names, and the rivals. Starting a worker may take seconds. Errors that are
// the user's carry a hint.
func Open(o Options, tell Teller) (*Bench, error) {
	defer tell.Busy("opening " + o.Config.Devices[0])()
	if o.Race && o.Objective != "" {
		return nil, errors.New("--auto race measures times: with --objective energy, use --auto predict")
	}
	b, err := OpenDevice(o, tell)
	if err != nil {
		return nil, err
	}
	if s := buildMismatch(b.Info.Build, worker.Build()); s != "" {
		tell.Warn("%s", s)
	}
	if o.Times {
		b.warnOfOthers()
		for _, a := range b.otherRuns() {
			tell.Warn("%s: %s", a.What, a.Remedy)
		}
	}
	if err := b.openRivals(o); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// OpenDevice opens the device that o names, without rivals and without a word.
func OpenDevice(o Options, tell Teller) (*Bench, error) {
	c := o.Config
	if len(c.Devices) > 1 {
		return nil, exit.Misuse(fmt.Errorf("--device: choose one device, not %s", strings.Join(c.Devices, ", ")), "")
	}
	if _, err := o.maxMemory(); err != nil {
		return nil, err
	}
	env := record.Capture(record.Options{Version: o.Version, HideHostname: true}) // before a device binds threads
	counters := around.NewReader(SystemRoot, env.CPU)
	opened := counters.Read()
	d, err := o.open()
	if err != nil {
		return nil, err
	}
	b, err := New(d, o, tell)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	b.place, b.Around, b.opened = placeOf(env), counters, opened
	b.Replicas = func(n int) (training.Replicas, error) {
		r, err := o.openReplicas(c.Devices[0], n)
		if err != nil {
			return training.Replicas{}, err
		}
		return training.Replicas{Devices: r.devices, Close: r.close}, nil
	}
	return b, nil
}

// New makes a bench of an open device, for commands that measure nothing on it.
func New(d device.Device, o Options, tell Teller) (*Bench, error) {
	memory, err := o.maxMemory()
	if err != nil {
		return nil, err
	}
	b := &Bench{Hardware: Hardware{Device: d, Info: d.Info(), tell: tell, version: o.Version}, MaxMemory: memory}
	b.Oracle = b.oracle(o)
	return b, nil
}

// maxMemory returns Memory in bytes; 0: not set.
func (o Options) maxMemory() (int64, error) {
	if o.Memory == "" {
		return 0, nil
	}
	n, err := grid.ParseBytes(o.Memory)
	if err != nil {
		return 0, exit.Misuse(fmt.Errorf("--max-memory: %w", err), "")
	}
	return n, nil
}

// Crowded warns that workers share processors; nil: they do not.
func (b *Hardware) Crowded(env record.Environment) []record.Advice {
	if n := env.CPU.Allowed; b.Info.Name == "cpu" && n > 0 && b.Info.Workers > n {
		return []record.Advice{{
			What:   fmt.Sprintf("%d threads share %s and spend most of their time waiting", b.Info.Workers, quantity.Plural(n, "processor")),
			Remedy: fmt.Sprintf("use --threads %d, or omit the flag", n),
		}}
	}
	return nil
}

// Warnings says what may spoil times: workers that share processors, limits that are unsure, other programs.
func (b *Bench) Warnings(env record.Environment) []record.Advice {
	return slices.Concat(b.Crowded(env), b.Disturbed(), b.company())
}

// MeasureLimits measures the peak rates of a device that is a device.Meter. The best rates of a
// processor are kept for later runs.
func (b *Hardware) MeasureLimits() error {
	defer b.tell.BusyNow("measuring the peak rates of " + b.Info.Name)()
	meter, ok := b.Device.(device.Meter)
	if !ok {
		return nil
	}
	var err error
	if b.Limits, err = LimitsOf(meter, b.Info); err == nil {
		b.recallLimits()
	}
	return err
}

// LimitsOf measures a device's peak rates. Tests replace it, to measure once for many commands.
var LimitsOf = func(m device.Meter, _ device.Info) (device.Limits, error) { return m.Limits() }

// Free returns the bytes that a technique may take; 0: unknown.
func (b *Bench) Free() int64 {
	if b.MaxMemory > 0 {
		return b.MaxMemory
	}
	return tuner.Free(b.Info)
}

// Record describes the device for a manifest.
func (b *Bench) Record() record.Device {
	d := record.Device{Key: b.Info.Key, Name: b.Info.Model, Facts: maps.Clone(b.Info.Libraries)}
	if d.Facts == nil {
		d.Facts = map[string]string{}
	}
	d.Facts["workers"] = fmt.Sprint(b.Info.Workers)
	if b.Info.Build != "" && record.OnGPU(b.Info.Key) { // elsewhere the worker is this program
		d.Facts[workerCommit] = b.Info.Build
	}
	if f := b.Limits.FLOPS; f > 0 {
		d.Peak = &f
	}
	d.Unsure = b.Limits.Unsure
	if b.others != "" {
		d.Facts[device.OtherPrograms] = b.others
	}
	if b.slowed != "" {
		d.Facts[slowedFact] = b.slowed
	}
	b.Rivals.note(d.Facts)
	for _, r := range b.Limits.More {
		d.Facts[r.Name] = quantity.SI(r.Value, r.Unit)
	}
	if c := b.Limits.Copy; c > 0 {
		d.Bandwidth = &c
	}
	if b.Machine != nil {
		d.Machine, _ = json.Marshal(b.Machine) // checked: its numbers are finite
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

// Vocabulary returns the names that a grid may use on this device.
func (b *Bench) Vocabulary() grid.Vocabulary {
	v := Words()
	v.Impls, v.All, v.Derive = slices.Concat(v.Impls, b.Rivals.names(), []string{auto.Name}), b.defaultTechniques(), b.derive
	return v
}

// defaultTechniques lists the techniques that a grid measures by default: our own, the vendors'
// libraries that the device has, and the rivals.
func (b *Bench) defaultTechniques() []string {
	var names []string
	for _, t := range impl.Own() {
		names = append(names, t.Name())
	}
	for _, t := range impl.Vendors() {
		if _, ok := b.Info.Libraries[t.Name()]; ok {
			names = append(names, t.Name())
		}
	}
	return append(names, b.Rivals.names()...)
}

// Words returns the names that a grid may use without a device.
func Words() grid.Vocabulary {
	var cells []string
	for _, c := range cell.All() {
		cells = append(cells, c.Name)
	}
	v := grid.Vocabulary{Words: grid.Words(cells), Model: readModels, Read: map[string]func(string) (string, error){
		"lengths": grid.ReadLengths, "cell": readCell, "weights": readWeights,
	}}
	for _, t := range impl.All() {
		v.Impls = append(v.Impls, t.Name())
	}
	return v
}

// readCell registers the cell of a file of equations, and returns its name.
func readCell(path string) (string, error) {
	c, err := equations.Load(path)
	if err != nil {
		return "", err
	}
	return c.Name, nil
}

// derive computes the keys of --where that are not axes: flops, mem and intensity.
func (b *Bench) derive(p record.Point, s grid.Spec, key string) (float64, error) {
	problem, err := tuner.Problem(p)
	if err != nil || key == "flops" {
		return float64(problem.FLOPs()), err
	}
	l, err := b.LayOut(p, s)
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

// LayOut lays p out with s for the device, after auto has chosen. It returns an error only for a
// user's mistake; a layout that is declined has a Reason.
func (b *Bench) LayOut(p record.Point, s grid.Spec) (*tuner.Layout, error) {
	s, err := b.Decide(p, s)
	if err != nil {
		return nil, err
	}
	return tuner.LayOutWithin(b.Device, b.Techniques(), p, s, b.Free())
}
