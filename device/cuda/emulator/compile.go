package emulator

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed runtime.h
var runtime string

// A Compiler builds kernels with the host's C++ compiler.
type Compiler struct{ path string }

// NewCompiler finds a C++ compiler, or returns an error that there is none.
func NewCompiler() (*Compiler, error) {
	for _, name := range []string{"g++", "clang++", "c++"} {
		if path, err := exec.LookPath(name); err == nil {
			return &Compiler{path}, nil
		}
	}
	return nil, fmt.Errorf("emulator: there is no C++ compiler")
}

// Version implements driver.Compiler.
func (c *Compiler) Version() string { return "host " + runtime }

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
	dir, err := os.MkdirTemp("", "rnnbench-emulator")
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "kernel.cc"), filepath.Join(dir, "kernel.so")
	if err := os.WriteFile(in, []byte(b.String()), 0o666); err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	// Kernels need no library of C++, whose symbols would take the linker a fifth of the time.
	cmd := exec.Command(c.path, "-std=c++17", "-Og", "-w", "-shared", "-fPIC", "-o", out, in, "-nostdlib", "-lm")
	if log, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("emulator: %w: %s", err, log)
	}
	return os.ReadFile(out)
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
