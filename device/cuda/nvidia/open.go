//go:build cuda

// Package nvidia drives an NVIDIA GPU for package cuda, in the primary context of this process. The
// worker of the command line uses it, and so does the library, whose host program may have work and
// memory of its own in that context.
//
// It needs cgo and CUDA's headers to build, and the driver's libcuda.so.1 and NVRTC to run. It also
// looks for cuBLAS, cuDNN and the management library. It reports which of these are missing and
// runs without them.
package nvidia

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"rnnbench/device/allreduce"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/nvrtc"
)

// Open opens GPU number index. Unless group is nil, its programs add up gradients over the replicas
// of the group. The device's methods may be called on any thread, by one caller at a time, between
// Enter and leave (see device.Threaded). Close frees what it holds in the process.
func Open(index int, group *allreduce.Group) (*cuda.Device, error) {
	library, err := nvrtc.Load(libraryDirs()...)
	if err != nil {
		return nil, err
	}
	d, err := newDriver(index)
	if err != nil {
		return nil, err
	}
	leave, err := d.Enter()
	if err != nil {
		return nil, errors.Join(err, d.release())
	}
	defer leave()
	found, err := d.open(library, group)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return found, nil
}

// open finds out what the GPU and its libraries can do.
func (d *gpu) open(library *nvrtc.Library, group *allreduce.Group) (*cuda.Device, error) {
	if err := d.inspect(); err != nil {
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
