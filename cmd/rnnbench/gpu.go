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

// workerName is the program through which GPUs are reached, and workerVariable
// names it where it is not found by itself.
const (
	workerName     = "rnnbench-cuda"
	workerVariable = "RNNBENCH_CUDA"
)

// isGPU reports whether a device's name is a GPU's.
func isGPU(name string) bool { return name == "cuda" || strings.HasPrefix(name, "cuda:") }

// findWorker looks for the worker where the variable says, beside this program
// and in the path.
func findWorker() (string, error) {
	if name := os.Getenv(workerVariable); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s says that the worker is %s, which is no program: %w", workerVariable, name, errors.Unwrap(err))
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
		return "", fmt.Errorf("GPUs need the worker %s, which is neither beside rnnbench nor in the path", workerName)
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
		return nil, unavailable(err, "make cuda builds it where CUDA's headers and a C compiler are; "+workerVariable+" says where it is; --device cpu needs nothing")
	}
	d, err := openWorker(name, m, path)
	if err != nil {
		return nil, unavailable(err, "nvidia-smi says whether the driver sees a GPU; --device cpu measures on this machine's processor")
	}
	return d, nil
}
