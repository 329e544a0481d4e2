// Package cpu runs schedules on the host.
//
// Streams are queues. A team of workers serves one stream or several. It takes the first operation
// in program order whose waits are over, and splits large operations among its workers. A schedule
// with one stream therefore runs on all workers, one operation after another. With many streams
// each worker can run its own operations.
//
// Products read weights that Pack has arranged in panels, in 16 bits if the schedule asks for it.
// The instruction set found at run time selects the kernels. A run allocates and prints nothing.
package cpu

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"unicode"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device"
	"rnnbench/device/allreduce"
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/topology"
	"rnnbench/internal/memory"
)

// Options say which of the host's resources to use.
type Options struct {
	Threads int         // workers; 0: one per processor, but no more than a control group's quota allows
	Level   *simd.Level // instruction set; nil: the best available

	// InTurn has the workers take turns on one processor, any. Answers are the same. It suits tests: a worker
	// that waits costs nothing, while other programs keep the processors busy.
	InTurn bool

	// Group joins the replicas that train together. They divide the processors among themselves,
	// and each has at least one worker.
	Group *allreduce.Group
}

// A Device is the host.
type Device struct {
	planner
	pool  *pool
	meter *rapl

	eviction [][]byte // per worker, the memory that Evict writes to
}

// MaxThreads bounds Options.Threads.
const MaxThreads = 1024

// Open starts the workers.
func Open(o Options) (*Device, error) {
	if o.Threads < 0 || o.Threads > MaxThreads {
		return nil, fmt.Errorf("cpu: %d threads: choose 1 to %d, or 0 for one per processor", o.Threads, MaxThreads)
	}
	host, spare := hostTopology(), 1
	if g := o.Group; g != nil {
		host = host.Part(g.Rank(), g.Replicas())
		spare = 2 // sums run beside the workers
	}
	if o.Threads == 0 {
		o.Threads = host.Default()
	}
	if err := simd.Check(); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	level := simd.Detect()
	if o.Level != nil {
		level = *o.Level
	}
	kernels, err := simd.For(level)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	d := &Device{planner: planner{workers: o.Threads, kernels: kernels, gemm: gemm.New(kernels, gemm.DetectL2()), group: o.Group}, meter: newRAPL()}
	// Workers hold their scheduler slots while they spin. With one slot more, other goroutines
	// (signals, timers) never wait for a worker to be preempted.
	if n := d.workers + spare; runtime.GOMAXPROCS(0) < n {
		runtime.GOMAXPROCS(n)
	}
	d.pool = newPool(d.workers, host, o.InTurn)
	d.crew = newCrew(d.workers, func(n int) []int { return d.pool.clusters(n, 0, n) })
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
		Workers: d.workers, Memory: memory.Available(), Precision: []string{"fp32", "fp16", "bf16", "int8"},
		Libraries: map[string]string{"simd": d.kernels.Level().String(), "go": runtime.Version(), "topology": d.pool.host.String()},
	}
}

// hostTopology returns the part of the host that this process may use. It is read once, since it
// does not change.
var hostTopology = sync.OnceValue(func() *topology.Topology {
	allowed := processors()
	if len(allowed) == 0 { // unknown: threads are not bound
		for i := range runtime.NumCPU() {
			allowed = append(allowed, i)
		}
	}
	return topology.Read(os.DirFS("/"), allowed)
})

// slug turns a processor's name into lower-case words joined by hyphens, for file names.
func slug(s string) string {
	s = strings.NewReplacer("(R)", "", "(TM)", "", "(tm)", "", "CPU", "", "Processor", "").Replace(s)
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-")
}

// Close ends the workers.
func (d *Device) Close() error {
	d.pool.close()
	return nil
}
