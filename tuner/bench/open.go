package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"rnnbench/device"
	"rnnbench/device/allreduce"
	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/worker"
	"rnnbench/internal/exit"
	"rnnbench/plots/quantity"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// WorkerVerb is the hidden command that makes the program the worker of its own processor.
const WorkerVerb = "worker"

// open opens the device: in this process, or through a worker.
func (o Options) open() (device.Device, error) {
	m := o.Config.Measure
	switch name := o.Config.Devices[0]; {
	case name == "cpu" && m.Isolate == "on":
		return o.openIsolated()
	case name == "cpu":
		return o.OpenCPU(nil)
	case IsGPU(name) && m.Isolate == "off":
		return nil, exit.Misuse(errors.New("--isolate off: a GPU always needs a worker process; use auto or on"), "")
	case IsGPU(name):
		return openGPU(name, m)
	default:
		return nil, unknownDevice(name)
	}
}

// WorkerName is the program that drives GPUs. The environment variable WorkerVariable overrides
// where it is found.
const (
	WorkerName     = "rnnbench-cuda"
	WorkerVariable = "RNNBENCH_CUDA"
)

// IsGPU reports whether a device's name is a GPU's.
func IsGPU(name string) bool { return name == "cuda" || strings.HasPrefix(name, "cuda:") }

// FindWorker looks for the worker in WorkerVariable, beside this program and in PATH.
func FindWorker() (string, error) {
	if name := os.Getenv(WorkerVariable); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s names the worker %s, which cannot be run: %w", WorkerVariable, name, errors.Unwrap(err))
		}
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), WorkerName)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(WorkerName)
	if err != nil {
		return "", fmt.Errorf("cannot find the GPU worker %s in the folder of rnnbench or in PATH", WorkerName)
	}
	return path, nil
}

// openGPU opens a GPU through the worker.
func openGPU(name string, m config.Measure) (device.Device, error) {
	unavailable := func(err error, hint string) error {
		return exit.With(exit.NoDevice, fmt.Errorf("device %s is not available: %w", name, err), hint)
	}
	path, err := FindWorker()
	if err != nil {
		return nil, unavailable(err, "build it with make cuda, which needs CUDA headers and a C compiler; set "+WorkerVariable+" to its path; or use --device cpu")
	}
	d, err := openWorker(name, m, path)
	if err != nil {
		return nil, unavailable(err, "run nvidia-smi to check that the driver finds a GPU; or use --device cpu")
	}
	return d, nil
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
	return exit.Misuse(fmt.Errorf("--device: %w", err), "rnnbench list devices")
}

// ThreadsEach is the most threads per processor. With many more, workers wait for each other
// so long that measuring the machine alone takes minutes.
const ThreadsEach = 16

// InTurn has the CPU's workers take turns on one processor, as tests of the program have them.
var InTurn bool

// OpenCPU opens the processor in this process. group is that of replicas; nil: it is alone.
func (o Options) OpenCPU(group *allreduce.Group) (device.Device, error) {
	with := cpu.Options{Threads: o.Config.Measure.Threads, Group: group, InTurn: InTurn && group == nil}
	if err := simd.Check(); err != nil {
		return nil, exit.Misuse(err, "")
	}
	if o.SIMD != "" {
		level, err := simd.Parse(o.SIMD)
		if err != nil {
			return nil, exit.Misuse(err, "")
		}
		with.Level = &level
	}
	if with.Threads > cpu.MaxThreads {
		return nil, exit.Misuse(fmt.Errorf("--threads: %d exceeds the maximum of %d", with.Threads, cpu.MaxThreads), "")
	}
	if most := ThreadsEach * runtime.NumCPU(); with.Threads > most {
		return nil, exit.Misuse(fmt.Errorf("--threads: %d is too many for %s: use at most %d", with.Threads, quantity.Plural(runtime.NumCPU(), "processor"), most), "")
	}
	d, err := cpu.Open(with)
	if err != nil {
		hint := "rnnbench doctor"
		if strings.Contains(err.Error(), simd.Variable) {
			hint = "unset " + simd.Variable + ", or name a lower set with --simd"
		}
		return nil, exit.With(exit.NoDevice, err, hint)
	}
	return d, nil
}

// openIsolated opens the CPU in a process of its own, with the same settings as OpenCPU.
func (o Options) openIsolated() (device.Device, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, exit.With(exit.NoDevice, err, "--isolate off measures in this process")
	}
	args := []string{WorkerVerb, "--threads", strconv.Itoa(o.Config.Measure.Threads)}
	if o.SIMD != "" {
		args = append(args, "--simd", o.SIMD)
	}
	d, err := openWorker("cpu", o.Config.Measure, self, args...)
	if err != nil {
		return nil, exit.With(exit.NoDevice, err, "--isolate off measures in this process")
	}
	return d, nil
}

// openWorker starts a program as the worker of the named device. A worker that is silent for much
// longer than a point may take counts as hung.
func openWorker(name string, m config.Measure, program string, args ...string) (*worker.Device, error) {
	return worker.Open(worker.Options{
		Command: func() *exec.Cmd { return exec.Command(program, args...) }, Device: name,
		Timeout: workerTimeout(m),
	})
}

func workerTimeout(m config.Measure) time.Duration { return max(time.Minute, 2*m.PointTimeout) }

// Serve answers the calls of a worker's caller for the processor that options name. group and replica place it
// among replicas; "": it is alone.
func Serve(in io.Reader, out io.Writer, options func() (Options, error), group, replica string) error {
	open := func(string) (device.Device, error) {
		o, err := options()
		if err != nil {
			return nil, err
		}
		place, err := allreduce.ParsePlace(group, replica)
		if err != nil {
			return nil, err
		}
		of, err := place.Join()
		if err != nil {
			return nil, err
		}
		return o.OpenCPU(of)
	}
	return worker.Serve(in, out, open, func() { os.Exit(exit.Error) })
}
