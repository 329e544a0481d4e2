//go:build cuda

// Rnnbench-cuda is the worker that drives an NVIDIA GPU for rnnbench. It answers
// the calls of device/worker on its standard input.
//
// It needs cgo and CUDA's headers to build (make cuda), and the driver's
// libcuda.so.1 and NVRTC to run. It also looks for cuBLAS, cuDNN and the management
// library. It reports which of these are missing and runs without them.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"rnnbench/device"
	"rnnbench/device/allreduce"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/nvrtc"
	"rnnbench/device/worker"
)

func main() {
	runtime.LockOSThread() // CUDA's context belongs to a thread
	if err := worker.Serve(os.Stdin, os.Stdout, open, func() { os.Exit(1) }); err != nil {
		fmt.Fprintln(os.Stderr, "rnnbench-cuda:", err)
		os.Exit(1)
	}
}

// open opens the device of that name: "cuda" or "cuda:1".
func open(name string) (device.Device, error) {
	index := 0
	if _, err := fmt.Sscanf(name, "cuda:%d", &index); err != nil && name != "cuda" {
		return nil, fmt.Errorf("rnnbench-cuda: unknown device %q: use cuda:0", name)
	}
	place, err := allreduce.ParseArgs(os.Args[1:])
	if err != nil {
		return nil, err
	}
	group, err := place.Join()
	if err != nil {
		return nil, err
	}
	library, err := nvrtc.Load(libraryDirs()...)
	if err != nil {
		return nil, err
	}
	d, err := newDriver(index)
	if err != nil {
		return nil, err
	}
	d.properties.Libraries["nvrtc"] = fmt.Sprintf("%d.%d", library.Major, library.Minor)
	if group != nil {
		if err := d.join(group); err != nil {
			return nil, err
		}
	}
	compiler, err := library.For(d.properties.Capability)
	if err != nil {
		return nil, err
	}
	d.properties.Hopper = d.properties.Capability == 90 && compiler.Specific()
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "rnnbench", "kernels")
	}
	found := cuda.New(d, compiler, cache)
	found.TimeLaunches()
	return found, nil
}
