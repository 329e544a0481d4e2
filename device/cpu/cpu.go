// Package cpu runs schedules on the host.
//
// Streams are queues. A team of workers serves each of them, or one team serves
// several, taking the operation that comes first in program order among those
// whose waits are over; large operations are split over the team's workers. A
// schedule of one stream so runs on all workers, operation after operation,
// and one of many streams can have each worker run operations of its own.
//
// Products read weights that Pack has arranged in panels, in 16 bits where the
// schedule asks for it, kernels are chosen by
// the instruction set found at run time, and nothing is allocated or printed
// during a run.
package cpu

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device"
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Options choose among what the host has.
type Options struct {
	Threads int         // workers; 0: one per processor
	Level   *simd.Level // instruction set; nil: the best there is
}

// A Device is the host.
type Device struct {
	pool    *pool
	workers int
	kernels *simd.Kernels
	gemm    *gemm.Engine

	eviction [][]byte // per worker, what Evict goes through
}

// MaxThreads bounds Options.Threads.
const MaxThreads = 1024

// Open starts the workers.
func Open(o Options) (*Device, error) {
	if o.Threads < 0 || o.Threads > MaxThreads {
		return nil, fmt.Errorf("cpu: %d threads: choose 1 to %d, or 0 for one per processor", o.Threads, MaxThreads)
	}
	allowed := processors()
	if o.Threads == 0 {
		if o.Threads = len(allowed); o.Threads == 0 {
			o.Threads = runtime.NumCPU()
		}
	}
	level := simd.Detect()
	if o.Level != nil {
		level = *o.Level
	}
	kernels, err := simd.For(level)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	d := &Device{workers: o.Threads, kernels: kernels, gemm: gemm.New(kernels, gemm.DetectL2())}
	// Workers hold their scheduler slots while they spin: with one more, other
	// goroutines (signals, timers) never wait for a worker to be preempted.
	if runtime.GOMAXPROCS(0) <= d.workers {
		runtime.GOMAXPROCS(d.workers + 1)
	}
	d.pool = newPool(d.workers, allowed)
	return d, nil
}

// Info implements device.Device.
func (d *Device) Info() device.Info {
	name := strings.TrimSpace(cpuid.CPU.BrandName)
	if name == "" {
		name = model()
	}
	if name == "" {
		name = runtime.GOARCH
	}
	return device.Info{
		Name: "cpu", Model: name, Key: fmt.Sprintf("cpu-%s-%dt", slug(name), d.workers),
		Workers: d.workers, Memory: available(), Precision: []string{"fp32", "fp16", "bf16"},
		Libraries: map[string]string{"simd": d.kernels.Level().String(), "go": runtime.Version()},
	}
}

// slug keeps what can be part of a file name.
func slug(s string) string {
	s = strings.NewReplacer("(R)", "", "(TM)", "", "(tm)", "", "CPU", "", "Processor", "").Replace(s)
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-")
}

// Knobs implements device.Device.
func (d *Device) Knobs(s *schedule.Schedule) []knob.Knob {
	knobs := d.scanKnobs(s)
	if most := min(s.Streams, d.workers); most > 1 {
		knobs = append(knobs, knob.Knob{
			Name: "teams", Doc: "groups that the workers form to serve streams side by side; 0: by the size of the operations",
			Values: choices(most), Max: most,
		})
	}
	if d.workers > 1 && persists(s) {
		knobs = append(knobs, knob.Knob{
			Name: "bands", Doc: "workers that share a layer's units in a persistent operation; 0: one whose nearest cache holds their weights (two from half of it on, where one call runs all steps), else all that have some",
			Values: choices(d.workers), Max: d.workers,
		})
	}
	if d.workers > 1 && slices.ContainsFunc(s.Nodes, func(n schedule.Node) bool { return sequences(n.Op) > 1 }) {
		knobs = append(knobs, knob.Knob{
			Name: "sequences", Doc: "how workers share the sequences of a persistent operation; 1: each has all, and units of its own; 2: each has its own, and all units; 0: 2 where the nearest cache holds the weights, or L2 and each worker has four sequences",
			Values: []int{0, 1, 2}, Max: 2,
		})
	}
	if steps := d.formed(s); steps > 0 {
		knobs = append(knobs, knob.Knob{
			Name: "ahead", Doc: "steps whose input product a persistent operation forms while it runs those before; 0: 16 to 64 where bands wait for weights from L2 or L3, or a worker has no band, else none; as many as there are: none",
			Values: slices.Compact([]int{0, min(aheadBlock, steps), min(4*aheadBlock, steps), steps}),
		})
	}
	return knobs
}

// choices are 0, the powers of two below most, and most.
func choices(most int) []int {
	values := []int{0, 1}
	for n := 2; n < most; n *= 2 {
		values = append(values, n)
	}
	return append(values, most)
}

// Close ends the workers.
func (d *Device) Close() error {
	d.pool.close()
	return nil
}
