// Package device defines the interface of devices that run schedules.
//
// A device knows matrices, operations and streams. It knows neither the problem
// that a schedule solves nor the technique that wrote it.
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

	// Knobs lists what a tuner may turn for s on this device. A technique
	// never sees them.
	Knobs(s *schedule.Schedule) []knob.Knob

	// Vocabulary lists every knob that devices of this kind have, with all the
	// values that one of them may take. It depends neither on the machine nor on
	// a schedule. A setting of the vocabulary that Knobs does not offer is declined
	// at its point; a setting outside it is a mistake.
	Vocabulary() []knob.Knob

	// Memory is the number of bytes that Compile would allocate for s.
	Memory(s *schedule.Schedule, k knob.Params) (int64, error)

	// Compile allocates s's matrices, zeroed, and readies its kernels.
	Compile(s *schedule.Schedule, k knob.Params) (Program, error)

	Close() error
}

// A Program is a schedule ready to run. It is for one goroutine at a time.
type Program interface {
	// Write copies src to the first rows of m, whole ones, as many as it has;
	// Read copies as many of the first rows as dst has. A packed matrix can be
	// neither written nor read.
	Write(m *schedule.Matrix, src []float32) error
	Read(m *schedule.Matrix, dst []float32) error

	// Prepare runs the schedule's preparation, which depends on the weights
	// alone. It must follow any Write of weights.
	Prepare() error

	// Kernels lists what one run launches, equal kernels once. It is empty where
	// the device does not know.
	Kernels() []Kernel

	// Run runs the schedule n times back to back and waits for the end.
	Run(n int) (Sample, error)

	Close() error
}

// A Sample is what Run measured.
type Sample struct {
	Wall   time.Duration // by the host's monotonic clock, from the first operation to the end of the last
	Device time.Duration // by the device's own clock; 0 where it has none

	// Throttled says that something held the device's clock down: heat, power.
	Throttled bool

	Clock float64 // hertz at the end; 0: unknown
}

// ErrMemory says that the device has too little memory left.
var ErrMemory = errors.New("out of memory")

// What can befall a device itself, whatever the schedule. Errors wrap one of
// these where a device that other programs share had to be restarted.
var (
	ErrHang  = errors.New("the device did not answer in time")
	ErrFault = errors.New("the device failed")
	ErrLost  = errors.New("the program was lost when the device restarted") // compile anew

	// ErrKilled and ErrStart concern the process that owns the device.
	ErrKilled = errors.New("the device process was killed from outside")
	ErrStart  = errors.New("the device process failed to start")
)

// Info describes a device.
type Info struct {
	Name      string            // as --device takes it: "cpu", "cuda:0"
	Model     string            // as the vendor writes it
	Key       string            // names results folders and decides which results compare: "cpu-xeon-2t"
	Workers   int               // threads or multiprocessors in use
	Precision []string          // that its products can have: "fp32", "tf32", "bf16", "fp16"
	Memory    int64             // bytes available to programs; 0 if unknown
	Libraries map[string]string // name to version, instruction sets included
	Build     string            // commit of the worker that drives it; "": unknown, or there is no worker
}

// Limits are what a device can do at most, as measured; 0 is unknown.
type Limits struct {
	FLOPS float64 // single-precision multiply-adds on registers, operations per second: nothing in fp32 exceeds it
	Copy  float64 // bytes read and written per second, from and to memory
	More  []Rate  // what else the device has to say, in the order of tables; "bf16 products" is the peak of that precision
}

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

// An Evicter is a device that can fill its caches with other data, so that the
// next run finds nothing there.
type Evicter interface {
	Evict() error
}

// A Precompiler is a device that compiles kernels, and can begin to before it is
// asked for programs, so that those of several are compiled side by side.
type Precompiler interface {
	// Precompile begins to compile the kernels of s and returns. The next call of
	// Compile waits for all that was begun: nothing else goes on while programs
	// run. What is wrong with s, Compile tells.
	Precompile(s *schedule.Schedule, k knob.Params)
}

// A PowerMeter is a device whose energy can be counted.
type PowerMeter interface {
	// Power reads the meter. An error says why there is none.
	Power() (Power, error)
}

// A Power is one look at a meter. Counters tick: an NVIDIA GPU's does so every 20 to 100 ms.
type Power struct {
	Source      string  // the counter, for records: "nvml", "rapl"
	Joules      float64 // counted since some moment
	Watts       float64 // as the device itself measures them; 0: unknown
	Clock       float64 // of its processors, Hz; 0: unknown
	Temperature float64 // °C; 0: unknown
}

// A Hierarchy is what the memories and workers of a device give each other, as
// measured while all workers do the same. It is what a model of persistent
// kernels needs beyond Limits.
type Hierarchy struct {
	Memories  []Memory  // that weights can stay in, from the nearest
	Product   float64   // operations per second of one worker in products from its nearest memory
	Half      float64   // how many times faster products of bf16 are at their peak; 0: no faster
	Pointwise float64   // sigmoids and hyperbolic tangents per second of one worker, in cells
	Barrier   float64   // seconds from the last worker's arrival at a barrier to everybody's knowing of it
	Exchange  float64   // bytes per second of one worker that writes its part of a vector and reads all of it
	Meetings  []Meeting // Barrier for some numbers of workers, from the fewest; the last is that of all
	Replicas  Link      // between processes of this device that train together; zero: not measured
}

// A Meeting is how long so many workers take at a barrier, while the others sleep.
type Meeting struct {
	Workers int
	Seconds float64
}

// A Link joins replicas of a device, in the terms of a ring: see model.Link.
type Link struct {
	Rate    float64 // bytes per second that each sends while it receives as many
	Seconds float64 // until a neighbour has a short message
}

// A Memory is a cache, or the main memory. Its rate is that of a product with
// one row, which reads each weight once.
type Memory struct {
	Name    string
	Bytes   int64   // of one worker, or of all if they share it
	Shared  bool    // by all workers
	PerCore float64 // bytes per second that one worker reads
}

// A Prober is a device that can measure its hierarchy, in a second or so.
type Prober interface {
	Hierarchy() (Hierarchy, error)
}

// An Inspector is a device that can say what state it is in.
type Inspector interface {
	Inspect() ([]Finding, error)
}

// A Finding is one thing worth knowing before measuring.
type Finding struct {
	Name, Value string
	Remedy      string // what to do about it; "" where nothing is wrong
}
