// Package nvrtc compiles CUDA C++ with NVIDIA's run-time compiler. It finds the library at run
// time, so building this package needs no header, no library and no C compiler.
package nvrtc

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"rnnbench/device/cuda/codegen"
)

// A Library is NVRTC after loading.
type Library struct {
	Path         string
	Major, Minor int
	archs        []int
	call         map[string]uintptr
}

// names lists the library's file names, newest first.
func names() []string {
	return []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"}
}

// Load loads NVRTC from one of dirs or from the system's library folders.
func Load(dirs ...string) (*Library, error) {
	for _, dir := range append(slices.Clone(dirs), "") {
		for _, name := range names() {
			path := filepath.Join(dir, name)
			if dir != "" { // the loader looks for libnvrtc-builtins in the system's folders only
				halves, _ := filepath.Glob(filepath.Join(dir, "libnvrtc-builtins.so*"))
				for _, h := range halves {
					_, _ = purego.Dlopen(h, purego.RTLD_NOW|purego.RTLD_GLOBAL)
				}
			}
			if lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL); err == nil {
				return open(lib, path)
			}
		}
	}
	return nil, fmt.Errorf("nvrtc: kernels cannot be compiled: none of %s is on this machine", strings.Join(names(), ", "))
}

func open(lib uintptr, path string) (*Library, error) {
	l := &Library{Path: path, call: map[string]uintptr{}}
	for _, name := range []string{
		"nvrtcVersion", "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs", "nvrtcCreateProgram", "nvrtcDestroyProgram",
		"nvrtcCompileProgram", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", "nvrtcGetCUBINSize", "nvrtcGetCUBIN",
		"nvrtcGetPTXSize", "nvrtcGetPTX",
	} {
		at, err := purego.Dlsym(lib, name)
		if err != nil {
			return nil, fmt.Errorf("nvrtc: %s is too old: it has no %s", path, name)
		}
		l.call[name] = at
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	var major, minor, n int32
	if err := l.do("nvrtcVersion", address(&pin, &major), address(&pin, &minor)); err != nil {
		return nil, err
	}
	if err := l.do("nvrtcGetNumSupportedArchs", address(&pin, &n)); err != nil {
		return nil, err
	}
	archs := make([]int32, max(1, n))
	if err := l.do("nvrtcGetSupportedArchs", address(&pin, &archs[0])); err != nil {
		return nil, err
	}
	for _, a := range archs {
		l.archs = append(l.archs, int(a))
	}
	l.Major, l.Minor = int(major), int(minor)
	return l, nil
}

// address returns the address of p, which stays valid until pin is unpinned. Without the pin, a
// stack that grows during a call would move what the library writes to.
func address[T any](pin *runtime.Pinner, p *T) uintptr {
	pin.Pin(p)
	return uintptr(unsafe.Pointer(p))
}

// do calls a function of the library.
func (l *Library) do(name string, args ...uintptr) error {
	if code, _, _ := purego.SyscallN(l.call[name], args...); int32(code) != 0 {
		return fmt.Errorf("nvrtc: %s returns %d", name, int32(code))
	}
	return nil
}

// A Compiler compiles for one kind of GPU.
type Compiler struct {
	library *Library
	arch    string // the value of --gpu-architecture
	ptx     bool   // PTX for the driver to assemble, since the library does not know the GPU
}

// For returns the compiler for a compute capability, major·10 + minor.
func (l *Library) For(capability int) (*Compiler, error) {
	best := 0
	for _, a := range l.archs {
		if a <= capability {
			best = max(best, a)
		}
	}
	const hopper, oldest = 90, 1201 // the oldest version (12.1) that knows the instructions of Hopper kernels
	switch {
	case capability >= hopper && 100*l.Major+l.Minor < oldest:
		return nil, fmt.Errorf("nvrtc: version %d.%d is too old for a GPU of compute capability %d.%d: name the folder of 12.1 or a later one in RNNBENCH_CUDA_LIBS", l.Major, l.Minor, capability/10, capability%10)
	case best == 0:
		return nil, fmt.Errorf("nvrtc: version %d.%d knows no GPU as old as compute capability %d.%d", l.Major, l.Minor, capability/10, capability%10)
	case best < capability:
		return &Compiler{library: l, arch: fmt.Sprintf("compute_%d", best), ptx: true}, nil
	case best >= hopper: // with instructions that later GPUs may lack
		return &Compiler{library: l, arch: fmt.Sprintf("sm_%da", best), ptx: false}, nil
	}
	return &Compiler{library: l, arch: fmt.Sprintf("sm_%d", best), ptx: false}, nil
}

// options are those of every compilation. Denormals are zero, and divisions are off by at most two
// units in the last place.
func options() []string {
	return []string{"--std=c++17", "--ftz=true", "--prec-div=false", "--prec-sqrt=false"}
}

// Specific reports whether kernels may use instructions that later GPUs lack.
func (c *Compiler) Specific() bool { return strings.HasSuffix(c.arch, "a") }

// Version implements driver.Compiler.
func (c *Compiler) Version() string {
	return fmt.Sprintf("nvrtc %d.%d %s %v", c.library.Major, c.library.Minor, c.arch, options())
}

// Compile implements driver.Compiler. The image is machine code, or PTX if the library does not
// know the GPU.
func (c *Compiler) Compile(name, source string) ([]byte, error) {
	l := c.library
	var pin runtime.Pinner
	defer pin.Unpin()
	var program uintptr
	text, file := append([]byte(codegen.Intrinsics()+source), 0), append([]byte(name+".cu"), 0)
	if err := l.do("nvrtcCreateProgram", address(&pin, &program), address(&pin, &text[0]), address(&pin, &file[0]), 0, 0, 0); err != nil {
		return nil, err
	}
	defer func() { _ = l.do("nvrtcDestroyProgram", address(&pin, &program)) }()
	var pointers []uintptr
	for _, o := range append(options(), "--gpu-architecture="+c.arch) {
		pointers = append(pointers, address(&pin, &append([]byte(o), 0)[0]))
	}
	if err := l.do("nvrtcCompileProgram", program, uintptr(len(pointers)), address(&pin, &pointers[0])); err != nil {
		log, _ := l.fetch(program, "nvrtcGetProgramLog")
		return nil, fmt.Errorf("%w: %s", err, strings.TrimRight(string(log), "\x00\n"))
	}
	if c.ptx {
		return l.fetch(program, "nvrtcGetPTX")
	}
	return l.fetch(program, "nvrtcGetCUBIN")
}

// fetch returns one of a program's results.
func (l *Library) fetch(program uintptr, what string) ([]byte, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	var size uintptr
	if err := l.do(what+"Size", program, address(&pin, &size)); err != nil || size == 0 {
		return nil, err
	}
	b := make([]byte, size)
	return b, l.do(what, program, address(&pin, &b[0]))
}
