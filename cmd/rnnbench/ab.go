package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/results"
)

// leastRuns of a side show how far runs of one program differ.
const leastRuns = 3

// turns are two programs that measure the same in turns.
type turns struct {
	on   bool
	runs int
	seed uint64

	label, path [2]string
	command     []string // behind the program's name
	dir         string   // of all runs
}

func (f *turns) flags(cmd *cobra.Command) {
	addGroup(cmd, "A/B comparison of two programs", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.on, "ab", false, "alternate runs of the programs BASE and NEW, then compare them")
		fs.IntVar(&f.runs, "runs", 7, "`N` runs of each program, at least 3")
		fs.Uint64Var(&f.seed, "seed", 1, "random seed `N` for the order of runs")
	})
}

// check reads the arguments: two programs, and behind -- what they run.
func (f *turns) check(dash int, args []string) error {
	const hint = "rnnbench compare --ab OLD NEW -- sweep --preset quick"
	if dash != 2 || len(args) < 3 || args[2] != "sweep" {
		return usage(errors.New("compare --ab takes two programs and, after --, the sweep command for both"), hint)
	}
	if f.runs < leastRuns {
		return usage(fmt.Errorf("--runs %d is too few: estimating the spread between runs takes at least %d runs per program", f.runs, leastRuns), hint)
	}
	for i, a := range args[:2] {
		f.label[i], f.path[i] = [2]string{"base", "new"}[i], a
		if label, path, ok := strings.Cut(a, "="); ok && !exists(a) {
			f.label[i], f.path[i] = label, path
		}
	}
	if f.label[0] == f.label[1] || slices.ContainsFunc(f.label[:], func(l string) bool { return l == "" || strings.ContainsAny(l, `/\,`) || l[0] == '.' }) {
		return usage(fmt.Errorf("invalid labels %q and %q: labels must differ and be valid folder names", f.label[0], f.label[1]), hint)
	}
	f.command = args[2:]
	for _, a := range f.command {
		name, _, _ := strings.Cut(a, "=")
		if slices.Contains([]string{"--out", "--label", "--resume", "--dry-run", "--print-config", "--profile", "--help", "-h"}, name) {
			return usage(fmt.Errorf("the sweep of compare --ab does not take %s: each run is new and has its own folder", name), "put --out before -- to name the folder of all runs")
		}
	}
	return nil
}

// order is which program runs when: pairs of both, of which each second one is
// the first in reverse, so that a machine that slows down slows both alike.
func order(runs int, seed uint64) []int {
	rng := rand.New(rand.NewPCG(seed, 0))
	var list []int
	for len(list) < 2*runs {
		first := rng.IntN(2)
		list = append(list, first, 1-first, 1-first, first)
	}
	return list[:2*runs]
}

// run runs both programs and returns the two sides as compare's arguments.
func (f *turns) run(ctx context.Context, p *program, dir string) ([]string, error) {
	for i := range f.path {
		path, err := programPath(f.path[i])
		if err != nil {
			return nil, usage(fmt.Errorf("cannot run program %s: %w", f.label[i], err), "BASE and NEW must be paths of rnnbench programs")
		}
		f.path[i] = path
	}
	if err := f.folder(dir, p.start); err != nil {
		return nil, &failure{exitError, err, "set --out DIR or RNNBENCH_RESULTS to a writable folder"}
	}
	ctx, stop := interruptible(ctx, p.newProgress(nil, 0))
	defer stop()
	var done [2][]string
	turn := order(f.runs, f.seed)
	for i, side := range turn {
		start := time.Now()
		folder, records, err := f.once(ctx, side)
		if err != nil {
			return nil, f.stopped(err, ctx.Err() != nil, side, done)
		}
		done[side] = append(done[side], folder)
		p.note("run %d of %d: %s, %s; took %v", i+1, len(turn), f.label[side], plural(records, "record"), time.Since(start).Round(100*time.Millisecond))
	}
	p.note("runs in %s", f.dir)
	return f.sides(done), nil
}

// folder makes the folder of all runs.
func (f *turns) folder(dir string, start time.Time) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	name := filepath.Join(dir, "ab-"+start.UTC().Format("20060102T150405Z"))
	f.dir = name
	err := os.Mkdir(f.dir, 0o777)
	for n := 2; errors.Is(err, os.ErrExist); n++ {
		f.dir = fmt.Sprintf("%s-%d", name, n)
		err = os.Mkdir(f.dir, 0o777)
	}
	return err
}

// sides are the finished runs as arguments of compare.
func (f *turns) sides(done [2][]string) []string {
	return []string{f.label[0] + "=" + strings.Join(done[0], ","), f.label[1] + "=" + strings.Join(done[1], ",")}
}

// stopped is why there are no more runs, with what becomes of those that there are.
func (f *turns) stopped(err error, interrupted bool, side int, done [2][]string) error {
	n := len(done[0]) + len(done[1])
	code := exitError
	if interrupted {
		code, err = exitInterrupted, errors.New("interrupted")
	} else {
		err = fmt.Errorf("%s failed in run %d: %w", f.label[side], len(done[side])+1, err)
	}
	switch {
	case n == 0:
		return &failure{code, err, ""}
	case len(done[0]) == 0 || len(done[1]) == 0:
		return &failure{code, err, fmt.Sprintf("the finished run is saved in %s", f.dir)}
	}
	return &failure{code, err, fmt.Sprintf("the %d finished runs are saved: rnnbench compare %s", n, strings.Join(f.sides(done), " "))}
}

// once runs the sweep of one side and returns the folder of its run.
func (f *turns) once(ctx context.Context, side int) (folder string, records int, err error) {
	out := filepath.Join(f.dir, f.label[side])
	args := append(slices.Clone(f.command), "--out", out, "--label", f.label[side], "--quiet")
	cmd := exec.CommandContext(ctx, f.path[side], args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &limited{&said, 1 << 16}
	cmd.Cancel = func() error { // a sweep ends what is under way
		if cmd.Process.Signal(os.Interrupt) != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitFailures {
		err = nil // points that failed are part of the comparison
	}
	if err != nil {
		return "", 0, reasonOf(said.String(), err)
	}
	m, recs, _, err := results.Read(out)
	if err != nil {
		return "", 0, fmt.Errorf("its run cannot be read: %w", err)
	}
	return filepath.Join(out, m.Run), len(recs), nil
}

// reasonOf is what a program said when it failed, or else how it ended.
func reasonOf(said string, err error) error {
	for line := range strings.Lines(said) {
		if why, ok := strings.CutPrefix(strings.TrimSpace(line), "rnnbench: "); ok {
			return errors.New(why)
		}
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(said), "\n"); line != "" {
		return fmt.Errorf("%w: %s", err, line)
	}
	return err
}

// programPath finds a program by its path, or by its name where programs are.
func programPath(name string) (string, error) {
	if exists(name) {
		return filepath.Abs(name)
	}
	return exec.LookPath(name)
}

// A limited buffer keeps the first bytes and drops the rest.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	l.to.Write(b[:n])
	return len(b), nil
}
