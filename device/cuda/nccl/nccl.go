// Package nccl finds NCCL, NVIDIA's library for sums over GPUs, at run time. It needs neither cgo
// nor a GPU. The worker calls the library's functions.
package nccl

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ebitengine/purego"
)

// name is the file of the library.
const name = "libnccl.so.2"

// Open loads the library from one of dirs, from the system's folders, or from a Python package such
// as PyTorch installs. It returns a handle and the file's path.
func Open(dirs ...string) (handle uintptr, path string, err error) {
	for _, dir := range slices.Concat(dirs, []string{""}, packages(os.Getenv)) {
		path = filepath.Join(dir, name)
		if handle, err = purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL); err == nil {
			return handle, path, nil
		}
	}
	return 0, "", fmt.Errorf("NCCL is unavailable: %s was not found: install it, or name its folder in RNNBENCH_CUDA_LIBS", name)
}

// packages lists the folders of Python packages that contain the library.
func packages(env func(string) string) (dirs []string) {
	roots := []string{"/usr", "/usr/local", "/opt/*"}
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if root := env(v); root != "" {
			roots = append([]string{root}, roots...)
		}
	}
	if home := env("HOME"); home != "" {
		roots = append(roots, filepath.Join(home, ".local"))
	}
	for _, root := range roots {
		for _, kind := range []string{"site-packages", "dist-packages"} {
			found, err := filepath.Glob(filepath.Join(root, "lib", "python3*", kind, "nvidia", "nccl", "lib", name))
			if err != nil {
				continue // a folder whose name is no pattern
			}
			for _, path := range found {
				dirs = append(dirs, filepath.Dir(path))
			}
		}
	}
	return dirs
}
