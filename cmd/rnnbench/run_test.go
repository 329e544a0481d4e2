package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	_ "unsafe" // for completers

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device"
	"rnnbench/device/cpu/simd"
	"rnnbench/tuner/bench"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMain clears the user's environment, except for the cap of the instruction set. It also
// makes the test binary the worker that --isolate starts.
func TestMain(m *testing.M) {
	bench.SystemRoot = fstest.MapFS{} // tests do not depend on what else the machine does
	bench.InTurn = true               // workers that spin would wait for those of other tests
	if each := os.Getenv(sleepVariable); each != "" && len(os.Args) > 1 && os.Args[1] == bench.WorkerVerb {
		os.Exit(serveSleeper(each))
	}
	if os.Getenv(meterVariable) != "" && len(os.Args) > 1 && os.Args[1] == bench.WorkerVerb {
		os.Exit(serveMetered())
	}
	if len(os.Args) > 1 && os.Args[1] == bench.WorkerVerb {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	measure := bench.LimitsOf
	bench.LimitsOf = func(device.Meter, device.Info) (device.Limits, error) { return device.Limits{}, nil } // a process measures none
	bench.MachinesFolder = func() string { return "" }
	if len(os.Args) > 1 && os.Args[1] == asProgram {
		if word := os.Getenv(holdVariable); word != "" {
			os.Exit(run(context.Background(), os.Args[2:], os.Stdin, os.Stdout, io.MultiWriter(os.Stderr, hold(word))))
		}
		os.Exit(process(os.Args[2:]))
	}
	if os.Getenv(beProgram) != "" {
		if takes := os.Getenv(takesVariable); takes != "" {
			os.Exit(runRetimed(os.Args[1:], takes))
		}
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "RNNBENCH_") && name != simd.Variable || slices.Contains([]string{"LC_ALL", "LC_CTYPE", "LANG"}, name) || name == "NO_COLOR" || name == "CLICOLOR_FORCE" {
			if err := os.Unsetenv(name); err != nil {
				panic(err)
			}
		}
	}
	known := map[string]device.Limits{}
	bench.LimitsOf = func(m device.Meter, i device.Info) (device.Limits, error) {
		key := i.Key + i.Libraries["simd"]
		if l, ok := known[key]; ok {
			return l, nil
		}
		l, err := measure(m, i)
		if l.Unsure != nil { // tests do not depend on what else the machine does
			l.FLOPS, l.Copy, l.Unsure = max(l.FLOPS, 1e12), max(l.Copy, 1e11), nil // no time is impossible by these
			for i := range l.More {
				l.More[i].Value = max(l.More[i].Value, 1e12)
			}
		}
		known[key] = l
		return l, err
	}
	os.Exit(m.Run())
}

// tiny is a short sweep of two points and two techniques. tinyGrid leaves the techniques open.
const (
	tinyGrid = "sweep -H 8,16 -B 2 -T 3 --effort quick --rounds 2 --max-rounds 2 --warmup 0s --min-time 0s"
	tiny     = tinyGrid + " --impl naive,cudnnstyle"
)

// quickly is how commands measure in tests.
const quickly = " --effort quick --rounds 2 --max-rounds 2 --warmup 0s --min-time 0s"

type outcomeOf struct {
	code        int
	out, errors string
}

// rnnbench runs a command line, which is split at spaces.
func rnnbench(t *testing.T, line string) outcomeOf {
	t.Helper()
	return rnnbenchWith(t.Context(), "", strings.Fields(line)...)
}

func rnnbenchWith(ctx context.Context, stdin string, args ...string) outcomeOf {
	var out, errors bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &out, &errors)
	if completing.Load() {
		completing.Store(false)
		clear(completers)
	}
	return outcomeOf{code, out.String(), errors.String()}
}

// completers are those that cobra keeps until the process ends, with all commands of the line that was completed.
// A program completes one line. The tests complete hundreds: what is kept of them would be marked in each later
// collection of garbage, and the program collects before each measurement.
//
//go:linkname completers github.com/spf13/cobra.flagCompletionFunctions
var completers map[*pflag.Flag]cobra.CompletionFunc

// want checks exit code and what both streams contain.
func (o outcomeOf) want(t *testing.T, code int, out, errors []string) {
	t.Helper()
	var wrong []string
	if o.code != code {
		wrong = append(wrong, fmt.Sprintf("exit code %d, want %d", o.code, code))
	}
	for _, s := range out {
		if !strings.Contains(o.out, s) {
			wrong = append(wrong, fmt.Sprintf("stdout lacks %q", s))
		}
	}
	for _, s := range errors {
		if !strings.Contains(o.errors, s) {
			wrong = append(wrong, fmt.Sprintf("stderr lacks %q", s))
		}
	}
	if wrong != nil {
		t.Errorf("%s\nstdout:\n%.3000s\nstderr:\n%.3000s", strings.Join(wrong, "\n"), o.out, o.errors)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test -update makes it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs, -update rewrites it; got:\n%s", path, got)
	}
}

// A trigger is a writer that calls f once word has been written to it.
type trigger struct {
	mu   sync.Mutex
	text bytes.Buffer
	word string
	f    func()
}

func (w *trigger) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(b)
	if w.f != nil && strings.Contains(w.text.String(), w.word) {
		w.f()
		w.f = nil
	}
	return n, err
}

func (w *trigger) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
