package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"rnnbench/device"
	"rnnbench/device/allreduce"
	"rnnbench/device/worker"
	"rnnbench/internal/exit"
)

// replicas are worker processes that train together.
type replicas struct {
	devices []device.Device
	started []*exec.Cmd // the latest process of each
}

// openReplicas starts n workers that train together. On a CPU they divide the processors; on GPUs
// each has its own, beginning with the GPU that name says.
func (o Options) openReplicas(name string, n int) (*replicas, error) {
	path, err := allreduce.Create("", n)
	if err != nil {
		return nil, exit.Misuse(fmt.Errorf("--replicas: %w", err), "")
	}
	defer os.Remove(path) // by then all have it open, or none will
	r := &replicas{devices: make([]device.Device, n), started: make([]*exec.Cmd, n)}
	errs := make([]error, n)
	var all sync.WaitGroup
	for rank := range n { // all at once: GPUs wait for each other as they open
		all.Go(func() {
			of, program, args, err := o.replica(name, rank, n)
			if err != nil {
				errs[rank] = err
				return
			}
			args = append(args, allreduce.Place{Path: path, Rank: rank, Replicas: n}.Args()...)
			d, err := worker.Open(worker.Options{
				Command: func() *exec.Cmd {
					r.started[rank] = exec.Command(program, args...)
					return r.started[rank]
				}, Device: of, Timeout: workerTimeout(o.Config.Measure),
			})
			if err != nil {
				errs[rank] = exit.With(exit.NoDevice, fmt.Errorf("replica %d of %d: %w", rank+1, n, err), "set --replicas to the number of devices")
				return
			}
			r.devices[rank] = d
		})
	}
	all.Wait()
	if err := firstCause(errs); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// firstCause returns the first error that is not about waiting for another replica, else the first.
func firstCause(errs []error) (first error) {
	for _, err := range errs {
		switch {
		case err == nil:
		case !strings.Contains(err.Error(), allreduce.ErrGone.Error()): // another process sent it as text
			return err
		case first == nil:
			first = err
		}
	}
	return first
}

// replica returns the device, the program and the arguments of worker rank of n.
func (o Options) replica(name string, rank, n int) (of, program string, args []string, err error) {
	if IsGPU(name) {
		first := 0
		if _, number, ok := strings.Cut(name, ":"); ok {
			if first, err = strconv.Atoi(number); err != nil {
				return "", "", nil, unknownDevice(name)
			}
		}
		if program, err = FindWorker(); err != nil {
			return "", "", nil, exit.With(exit.NoDevice, err, "build it with make cuda, or use --device cpu")
		}
		return fmt.Sprintf("cuda:%d", first+rank), program, nil, nil
	}
	if program, err = os.Executable(); err != nil {
		return "", "", nil, exit.With(exit.NoDevice, err, "")
	}
	args = []string{WorkerVerb}
	if all := o.Config.Measure.Threads; all > 0 {
		args = append(args, "--threads", strconv.Itoa(max(1, all/n)))
	}
	if o.SIMD != "" {
		args = append(args, "--simd", o.SIMD)
	}
	return "cpu", program, args, nil
}

func (r *replicas) close() error {
	var errs []error
	for _, d := range r.devices {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}
