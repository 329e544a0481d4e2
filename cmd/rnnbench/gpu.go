package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"rnnbench/device/worker"
	"rnnbench/tuner/config"
)

// workerName is the program that drives GPUs. The environment variable workerVariable overrides
// where it is found.
const (
	workerName     = "rnnbench-cuda"
	workerVariable = "RNNBENCH_CUDA"
)

// isGPU reports whether a device's name is a GPU's.
func isGPU(name string) bool { return name == "cuda" || strings.HasPrefix(name, "cuda:") }

// findWorker looks for the worker in workerVariable, beside this program and in PATH.
func findWorker() (string, error) {
	if name := os.Getenv(workerVariable); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s names the worker %s, which cannot be run: %w", workerVariable, name, errors.Unwrap(err))
		}
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), workerName)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(workerName)
	if err != nil {
		return "", fmt.Errorf("cannot find the GPU worker %s in the folder of rnnbench or in PATH", workerName)
	}
	return path, nil
}

// openGPU opens a GPU through the worker.
func openGPU(name string, m config.Measure) (*worker.Device, error) {
	unavailable := func(err error, hint string) error {
		return &failure{exitNoDevice, fmt.Errorf("device %s is not available: %w", name, err), hint}
	}
	path, err := findWorker()
	if err != nil {
		return nil, unavailable(err, "build it with make cuda, which needs CUDA headers and a C compiler; set "+workerVariable+" to its path; or use --device cpu")
	}
	d, err := openWorker(name, m, path)
	if err != nil {
		return nil, unavailable(err, "run nvidia-smi to check that the driver finds a GPU; or use --device cpu")
	}
	return d, nil
}
