// Package device defines the interface of devices that run schedules.
//
// A device sees matrices, operations and streams. It sees neither the problem that a schedule
// solves nor the technique that wrote it.
package device

import (
	"errors"
	"time"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Device runs schedules.
type Device interface {
	// Info describes the hardware and the libraries in use.
	Info() Info

	// Knobs lists the knobs that a tuner may turn for s on this device. Techniques never see them.
	Knobs(s *schedule.Schedule) []knob.Knob

	// Vocabulary lists all knobs of this kind of device, each with all values that it may ever
	// take. The list depends neither on the machine nor on a schedule. A setting in the vocabulary
	// that Knobs does not offer is declined at its point; a setting outside it is an error of the
	// user.
	Vocabulary() []knob.Knob

	// Memory returns the number of bytes that Compile would allocate for s.
	Memory(s *schedule.Schedule, k knob.Params) (int64, error)

	// Compile allocates s's matrices, zeroed, and prepares its kernels.
	Compile(s *schedule.Schedule, k knob.Params) (Program, error)

	Close() error
}

// A Program is a schedule ready to run. Only one goroutine may use it at a time.
type Program interface {
	// Write copies src to the first rows of m; Read copies the first rows of m to dst. The slice
	// must hold a whole number of rows, at most m's. Packed and scratch matrices can be neither
	// written nor read.
	Write(m *schedule.Matrix, src []float32) error
	Read(m *schedule.Matrix, dst []float32) error

	// Prepare runs the schedule's preparation, which depends on the weights alone. Call it after
	// every Write of weights.
	Prepare() error

	// Kernels lists the kernels that one run launches, with equal kernels merged. It is empty if
	// the device does not know them.
	Kernels() []Kernel

	// Run runs the schedule n times back to back and waits for the end.
	Run(n int) (Sample, error)

	Close() error
}

// A Sample is the measurement of one Run.
type Sample struct {
	Wall   time.Duration // by the host's monotonic clock, from the start of the first operation to the end of the last
	Device time.Duration // by the device's own clock; 0: it has none

	// Throttled says that heat or a power limit slowed the device's clock.
	Throttled bool

	Clock float64 // hertz at the end; 0: unknown
}

// ErrMemory says that the device has too little memory left.
var ErrMemory = errors.New("out of memory")

// ErrStuck says that a kernel ended early, so the results of a run are void. The device works on: the run may be
// started again, from its inputs.
var ErrStuck = errors.New("blocks of a kernel gave up waiting for each other: some never arrived")

// Failures of the device itself, whatever the schedule. An error wraps one of these if a device
// that other programs share had to be restarted.
var (
	ErrHang  = errors.New("the device did not answer in time")
	ErrFault = errors.New("the device failed")
	ErrLost  = errors.New("the program was lost when the device restarted") // compile anew

	// ErrKilled and ErrStart are failures of the process that owns the device.
	ErrKilled = errors.New("the device process was killed from outside")
	ErrStart  = errors.New("the device process failed to start")
)

// Info describes a device.
type Info struct {
	Name      string            // as --device takes it: "cpu", "cuda:0"
	Model     string            // as the vendor writes it
	Key       string            // names results folders; results with equal keys can be compared: "cpu-xeon-2t"
	Workers   int               // threads or multiprocessors in use
	Precision []string          // of products: "fp32", "tf32", "bf16", "fp16", "int8"
	Memory    int64             // bytes available to programs; 0 if unknown
	Host      int64             // bytes of the host's memory, if the device has its own; 0: it has none, or unknown
	Libraries map[string]string // name to version, instruction sets included
	Build     string            // commit of the worker process that drives it; "": unknown, or there is no such process
}

// Limits are the measured peak rates of a device; 0: unknown.
type Limits struct {
	FLOPS float64 // FLOP/s of single-precision multiply-adds on registers: the peak of fp32
	Copy  float64 // bytes per second that a copy in memory reads and writes
	More  []Rate  // further limits, in the order of tables; "bf16 products" is the peak of that precision

	// Unsure names the limits that were disturbed in every trial and may be too low: LimitFLOPS,
	// LimitCopy, or the name of a Rate.
	Unsure []string
}

// Names of limits in Limits.Unsure.
const (
	LimitFLOPS = "peak"
	LimitCopy  = "copy"
)

// A Rate is one measured limit.
type Rate struct {
	Name  string
	Value float64
	Unit  string // "FLOP/s", "s"
}

// A Meter is a device that can measure its own limits, in a second or so.
type Meter interface {
	Limits() (Limits, error)
}

// An Evicter is a device that can fill its caches with other data, so that the next run starts with
// cold caches.
type Evicter interface {
	Evict() error
}

// A LaunchMeter is a device whose kernels a host launches. It can measure in some tens of milliseconds how long that
// takes, which depends on the host and the hour.
type LaunchMeter interface {
	// LaunchTime returns the seconds from one empty kernel to the next, launched one by one; 0: unknown.
	LaunchTime() (float64, error)
}

// A Precompiler is a device that can start to compile kernels before Compile is called, so that
// kernels of several programs are compiled at the same time.
type Precompiler interface {
	// Precompile starts to compile the kernels of s and returns. The next call of Compile waits for
	// all compilations that were started, so that none goes on while programs run. Compile reports
	// any errors of s.
	Precompile(s *schedule.Schedule, k knob.Params)
}

// A PowerMeter is a device that counts its energy.
type PowerMeter interface {
	// Power reads the meter. The error says why there is no meter.
	Power() (Power, error)
}

// A Power is one reading of a meter. Counters are updated at intervals: an NVIDIA GPU's every 20 to
// 100 ms.
type Power struct {
	Source      string  // the counter, for records: "nvml", "rapl"
	Joules      float64 // since a fixed but arbitrary moment
	Watts       float64 // as measured by the device; 0: unknown
	Clock       float64 // of its processors, Hz; 0: unknown
	Temperature float64 // °C; 0: unknown
}

// A Hierarchy describes a device's memories and workers, as measured while all workers do the same.
// A model of persistent kernels needs it besides Limits.
type Hierarchy struct {
	Memories  []Memory  // that can hold weights, the nearest first
	Product   float64   // FLOP/s of one worker in products with weights in its nearest memory
	Half      float64   // speedup of bf16 products over fp32 at their peak; 0: none
	Pointwise float64   // sigmoids and hyperbolic tangents in cells, per second and worker
	Barrier   float64   // seconds from the last worker's arrival at a barrier until all workers have left it
	Exchange  float64   // bytes per second of one worker that writes its part of a vector and reads the whole vector
	Meetings  []Meeting // Barrier for some numbers of workers, in rising order; the last is all workers
	Replicas  Link      // between processes on this device that train together; zero: not measured
	Unsure    []string  // memories, and limits as in Limits.Unsure, whose rates are probably too low
}

// A Meeting is the time of a barrier of so many workers, while the other workers sleep.
type Meeting struct {
	Workers int
	Seconds float64
}

// A Link connects replicas of a device in a ring: see model.Link.
type Link struct {
	Rate    float64 // bytes per second that each replica sends while it receives as many
	Seconds float64 // latency of a short message to a neighbour
}

// A Memory is a cache or the main memory. Its rate is measured by a product with one row, which
// reads each weight once.
type Memory struct {
	Name    string
	Bytes   int64   // per worker, or of all workers if they share it
	Shared  bool    // by all workers
	PerCore float64 // bytes per second that one worker reads
}

// A Prober is a device that can measure its hierarchy, in a second or so.
type Prober interface {
	Hierarchy() (Hierarchy, error)
}

// An Inspector is a device that can report its state.
type Inspector interface {
	Inspect() ([]Finding, error)
}

// OtherPrograms names the finding that counts other programs on the device.
const OtherPrograms = "other programs"

// A Finding is one fact worth knowing before measuring.
type Finding struct {
	Name, Value string
	Remedy      string // what to do about it; "": nothing is wrong
}
