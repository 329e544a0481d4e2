package emulator

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/image"
)

//go:embed runtime.h
var runtime string

// A Compiler builds kernels with the host's C++ compiler. It keeps their images in a folder of the user.
type Compiler struct{ host driver.Compiler }

// NewCompiler finds a C++ compiler, or returns an error that there is none.
func NewCompiler() (*Compiler, error) { return find() }

var find = sync.OnceValues(func() (*Compiler, error) {
	for _, name := range []string{"g++", "clang++", "c++"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		version, err := exec.Command(path, "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("emulator: %s --version: %w", path, err)
		}
		return &Compiler{image.Kept(host{path, string(version)}, folder())}, nil
	}
	return nil, errors.New("emulator: there is no C++ compiler")
})

// age is how long images stay in the folder.
const age = 14 * 24 * time.Hour

// folder returns the user's folder of images, or "" if there is none. It first removes old ones, most
// of which are of kernels that have changed since.
func folder() string {
	user, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	folder := filepath.Join(user, "rnnbench", "emulated")
	files, _ := os.ReadDir(folder) // none if it is not there
	for _, f := range files {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > age {
			_ = os.Remove(filepath.Join(folder, f.Name())) // another process may have removed it
		}
	}
	return folder
}

// A host is a compiler of C++ for this machine.
type host struct{ path, version string }

// options are those of the compiler. Kernels need no library of C++, whose symbols would take the
// linker a fifth of the time.
func options() []string {
	return []string{"-std=c++17", "-Og", "-w", "-shared", "-fPIC", "-nostdlib"}
}

// Version implements driver.Compiler.
func (h host) Version() string {
	return strings.Join(append([]string{"host", h.path, h.version}, options()...), " ")
}

// Compile implements driver.Compiler. The image is a shared object.
func (h host) Compile(_, source string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "rnnbench-emulator")
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "kernel.cc"), filepath.Join(dir, "kernel.so")
	if err := os.WriteFile(in, []byte(source), 0o666); err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	cmd := exec.Command(h.path, append(options(), "-o", out, in, "-lm")...)
	if log, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("emulator: %w: %s", err, log)
	}
	return os.ReadFile(out)
}

// Version implements driver.Compiler.
func (c *Compiler) Version() string { return c.host.Version() + runtime }

// Compile implements driver.Compiler. The image is a shared object.
func (c *Compiler) Compile(name, source string) ([]byte, error) {
	types, err := parameters(name, source)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(runtime)
	b.WriteString(source)
	var args, pointers []string
	for i, t := range types {
		args = append(args, fmt.Sprintf("*(%s*)args[%d]", t, i))
		if strings.HasSuffix(t, "*") {
			pointers = append(pointers, "1")
		} else {
			pointers = append(pointers, "0")
		}
	}
	launch := "launch_alone"
	for _, word := range []string{"__syncthreads", "__shfl", "DYNAMIC_SHARED"} {
		if strings.Contains(source, word) {
			launch = "launch"
		}
	}
	if strings.Contains(source, "pause()") {
		launch = "launch_together"
	}
	fmt.Fprintf(&b, "\nstatic void call(void** args) { %s(%s); }\n", name, strings.Join(args, ", "))
	fmt.Fprintf(&b, "extern \"C\" size_t emulate(Geometry* g, void** args) { parted = false, %s(*g, args, call); return parted; }\n", launch)
	fmt.Fprintf(&b, "extern \"C\" { extern const int parameters = %d; extern const char pointers[] = {%s}; }\n", len(types), strings.Join(pointers, ", "))
	return c.host.Compile(name, b.String())
}

// parameters returns the types of a kernel's parameters, as its source declares them.
func parameters(name, source string) ([]string, error) {
	_, rest, ok := strings.Cut(source, " "+name+"(")
	if !ok {
		if _, rest, ok = strings.Cut(source, "\n"+name+"("); !ok {
			return nil, fmt.Errorf("emulator: no kernel %s in its source", name)
		}
	}
	list, _, ok := strings.Cut(rest, ")")
	if !ok {
		return nil, fmt.Errorf("emulator: the parameters of %s do not end", name)
	}
	var types []string
	for part := range strings.SplitSeq(list, ",") {
		words := strings.Fields(part)
		if len(words) < 2 {
			return nil, fmt.Errorf("emulator: parameter %q of %s", part, name)
		}
		types = append(types, strings.Join(words[:len(words)-1], " "))
	}
	return types, nil
}
