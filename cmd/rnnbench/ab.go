package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device/worker"
	"rnnbench/internal/exit"
	"rnnbench/record/turns"
)

// abFlags are the flags of compare --ab, which runs two programs in turns.
type abFlags struct {
	turns.Turns
	on bool
}

func (f *abFlags) flags(cmd *cobra.Command) {
	addGroup(cmd, "A/B comparison of two programs", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.on, "ab", false, "alternate runs of the programs BASE and NEW, then compare them")
		fs.IntVar(&f.Runs, "runs", 7, "`N` runs of each program, at least 3")
		fs.Uint64Var(&f.Seed, "seed", 1, "random seed `N` for the order of runs")
	})
}

// check reads the arguments: two programs and, after --, the sweep that both run.
func (f *abFlags) check(dash int, args []string) error {
	const hint = "rnnbench compare --ab OLD NEW -- sweep --preset quick"
	if dash != 2 || len(args) < 3 || args[2] != "sweep" {
		return exit.Misuse(errors.New("compare --ab takes two programs and, after --, the sweep command for both"), hint)
	}
	if f.Runs < turns.LeastRuns {
		return exit.Misuse(fmt.Errorf("--runs %d is too few: estimating the spread between runs takes at least %d runs per program", f.Runs, turns.LeastRuns), hint)
	}
	for i, a := range args[:2] {
		f.Programs[i] = turns.Program{Label: [2]string{"base", "new"}[i], Path: a}
		if label, path, ok := strings.Cut(a, "="); ok && !exists(a) {
			f.Programs[i] = turns.Program{Label: label, Path: path}
		}
	}
	labels := []string{f.Programs[0].Label, f.Programs[1].Label}
	if labels[0] == labels[1] || slices.ContainsFunc(labels, func(l string) bool { return l == "" || strings.ContainsAny(l, `/\,`) || l[0] == '.' }) {
		return exit.Misuse(fmt.Errorf("invalid labels %q and %q: labels must differ and be valid folder names", labels[0], labels[1]), hint)
	}
	f.Command = args[2:]
	return ownFolder(f.Command, "compare --ab")
}

// run runs both programs and returns the two sides as compare's arguments.
func (f *abFlags) run(ctx context.Context, p *program, dir string) ([]string, error) {
	if err := f.Find(); err != nil {
		return nil, exit.Misuse(err, "BASE and NEW must be paths of rnnbench programs")
	}
	if err := f.MakeFolder(dir, p.start); err != nil {
		return nil, exit.With(exit.Error, err, "set --out DIR or RNNBENCH_RESULTS to a writable folder")
	}
	ctx, stop := p.Interruptible(ctx, p.Progress(nil, 0))
	defer stop()
	f.Failures, f.Start = exit.Failures, worker.StartTied
	err := f.Run(ctx, func(t turns.Turn) {
		p.Note("run %d of %d: %s, %s; took %v", t.Run, t.All, t.Label, plural(t.Records, "record"), t.Took.Round(100*time.Millisecond))
	})
	if err != nil {
		return nil, f.stopped(err, ctx.Err() != nil)
	}
	p.Note("runs in %s; rnnbench compare %s compares them again", f.Dir, strings.Join(f.Sides(), " "))
	return f.Sides(), nil
}

// stopped wraps the error that ended the runs, and hints at the finished runs.
func (f *abFlags) stopped(err error, interrupted bool) error {
	n := len(f.Done[0]) + len(f.Done[1])
	code := codeOf(err)
	if interrupted {
		code, err = exit.Interrupted, errors.New("interrupted")
	}
	switch {
	case n == 0:
		_ = os.Remove(f.Dir) // empty, unless a run was begun
		return exit.With(code, err, "")
	case len(f.Done[0]) == 0 || len(f.Done[1]) == 0:
		return exit.With(code, err, fmt.Sprintf("the finished run is saved in %s", f.Dir))
	}
	return exit.With(code, err, fmt.Sprintf("the %d finished runs are saved: rnnbench compare %s", n, strings.Join(f.Sides(), " ")))
}

// codeOf is the exit code of the error that ended runs in turns.
func codeOf(err error) int {
	var failed *turns.Failure
	if errors.As(err, &failed) && failed.Exit != nil && (failed.Exit.ExitCode() == exit.Usage || failed.Exit.ExitCode() == exit.NoDevice) {
		return failed.Exit.ExitCode() // both mean the same here
	}
	return exit.Error
}
