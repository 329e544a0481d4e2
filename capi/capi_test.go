package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"rnnbench/internal/python"
)

// build builds the library and a C program that uses it.
func build(t *testing.T, source string) (program string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("the C library needs Linux and a C compiler, cc")
	}
	dir := libraryDir(t)
	program = filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), ".c"))
	run(t, cc, "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1", "-I.", "-o", program, source, "-L"+dir, "-lrnnbench", "-Wl,-rpath,"+dir, "-lpthread", "-lm")
	return program
}

var library string // folder of the library, built once

func TestMain(m *testing.M) {
	code := m.Run()
	if library != "" {
		_ = os.RemoveAll(library)
	}
	os.Exit(code)
}

func libraryDir(t *testing.T) string {
	t.Helper()
	if library == "" {
		dir, err := os.MkdirTemp("", "librnnbench")
		if err != nil {
			t.Fatal(err)
		}
		library = dir
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", filepath.Join(dir, "librnnbench.so"), ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return library
}

// run runs a command and returns what it prints.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "RNNBENCH_WISDOM="+filepath.Join(t.TempDir(), "wisdom.toml"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestExamples builds and runs the examples.
func TestExamples(t *testing.T) {
	for source, want := range map[string]string{"forward.c": "last output: 0.2218", "train.c": "round 2999: loss 0.02"} {
		if out := run(t, build(t, "examples/"+source)); !strings.Contains(out, want) {
			t.Errorf("%s prints no %q: %s", source, want, out)
		}
	}
}

// TestBoundary runs testdata/boundary.c, whose checks end with a sentence and a status where one fails.
func TestBoundary(t *testing.T) {
	program := build(t, "testdata/boundary.c")
	for _, check := range []string{"handles", "nonsense", "threads", "fork", "process", "memory", "exit"} {
		t.Run(check, func(t *testing.T) { run(t, program, check) })
	}
}

// TestPython runs the tests of the PyTorch module with the library.
func TestPython(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	p := python.Torch()
	if p == "" {
		t.Skip(python.NoTorch)
	}
	if _, err := exec.LookPath("cc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("the C library needs Linux and a C compiler, cc")
	}
	t.Setenv("RNNBENCH_LIBRARY", filepath.Join(libraryDir(t), "librnnbench.so"))
	run(t, p, "-m", "unittest", "discover", "-s", "../python/tests")
}
