//go:build cuda

// Rnnbench-cuda is the worker that drives an NVIDIA GPU for rnnbench. It answers
// the calls of device/worker on its standard input.
//
// Package nvidia says what it needs to build (make cuda) and to run.
package main

import (
	"fmt"
	"os"

	"rnnbench/device"
	"rnnbench/device/allreduce"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/nvidia"
	"rnnbench/device/worker"
)

func main() {
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
	d, err := nvidia.Open(index, group)
	if err != nil {
		return nil, err
	}
	if _, err := d.Enter(); err != nil { // for good: all calls come from this goroutine
		return nil, err
	}
	return endless{d}, nil
}

// An endless device is not closed: the process is about to end, and the device may be out of order.
type endless struct{ *cuda.Device }

func (endless) Close() error { return nil }
