package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device/worker"
	"rnnbench/internal/exit"
	"rnnbench/internal/git"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/record/build"
	"rnnbench/record/compare"
	"rnnbench/record/files"
	"rnnbench/record/turns"
)

const ciLong = `Ci tells whether a change made something slower, for jobs of continuous integration. It
builds the commits --base and --head, or takes the programs of those paths. Both run the
sweep after -- in turns until the budget is spent. The folder of --out then has:

  summary.md       what changed, as a comment for a pull request
  comparison.md    each point with its verdict, as of compare
  comparison.json  the same as data
  junit.xml        each point as a test
  benchmarks.txt   all samples, for benchstat
  base, head       the recorded runs

The summary says how small a change the machine showed, and how long a change of --see
would take. The exit code is 4 if a point has a verdict named by --fail-on. After an
interruption, the same command goes on with the runs that are there.`

const ciExample = `  rnnbench ci --base HEAD^1 -- sweep --preset quick
  rnnbench ci --base origin/main --budget 20m --fail-on slower,broken -- sweep -H 256 -B 16 -T 50
  rnnbench ci --base old/rnnbench --head bin/rnnbench -o checked -- sweep --preset quick`

// ciFlags are the flags of ci.
type ciFlags struct {
	verdictFlags
	base, head   string
	build, built string
	budget       time.Duration
	most         int
	seed         uint64
	see, dir     string
	visible      float64 // --see as a share
	command      []string
}

func ciCommand(p *program) *cobra.Command {
	f := &ciFlags{see: "5%"}
	cmd := &cobra.Command{
		Use:     "ci --base COMMIT [flags] -- sweep ...",
		Short:   "Tell a pull request what it made faster, slower or broken",
		GroupID: "analyse",
		Long:    ciLong,
		Example: ciExample,
		Args:    func(cmd *cobra.Command, args []string) error { return f.check(cmd.ArgsLenAtDash(), args) },
	}
	addGroup(cmd, "Programs", func(fs *pflag.FlagSet) {
		fs.StringVar(&f.base, "base", "", "`COMMIT`, or path of a program, to compare with")
		fs.StringVar(&f.head, "head", "HEAD", "`COMMIT`, or path of a program, that may be slower")
		buildFlags(fs, &f.build, &f.built)
	})
	addGroup(cmd, "Runs", func(fs *pflag.FlagSet) {
		fs.DurationVar(&f.budget, "budget", 10*time.Minute, "`TIME` for all runs; building is extra")
		fs.IntVar(&f.most, "max-runs", 20, "at most `N` runs of each program")
		fs.StringVar(&f.see, "see", f.see, "change in `PERCENT` that the runs should show")
		fs.Uint64Var(&f.seed, "seed", 1, "random seed `N` for the order of runs")
	})
	f.judging(cmd)
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.StringVarP(&f.dir, "out", "o", "rnnbench-ci", "`DIR` of all that is written")
	})
	_ = cmd.MarkFlagDirname("out") // the flag is there
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		bad, err := f.parse()
		if err == nil {
			if f.visible, err = share(f.see); err != nil {
				err = fmt.Errorf("--see: %w", err)
			}
		}
		if err != nil {
			return misused(cmd, err)
		}
		return f.run(ctx, p, bad)
	})
}

// check reads the arguments: after --, the sweep.
func (f *ciFlags) check(dash int, args []string) error {
	const hint = "rnnbench ci --base HEAD^1 -- sweep --preset quick"
	switch {
	case dash != 0 || len(args) == 0 || args[0] != "sweep":
		return exit.Misuse(errors.New("ci takes flags and, after --, the sweep command for both programs"), hint)
	case f.base == "":
		return exit.Misuse(errors.New("ci needs --base: the commit or program to compare with"), hint)
	case f.budget <= 0 || f.most < 1:
		return exit.Misuse(fmt.Errorf("--budget %v and --max-runs %d must be more than 0", f.budget, f.most), hint)
	}
	f.command = args
	return ownFolder(f.command, "ci")
}

// run measures both programs, writes what is found, and returns an error for a verdict of --fail-on.
func (f *ciFlags) run(ctx context.Context, p *program, bad []compare.Verdict) error {
	ctx, stop := p.Interruptible(ctx, p.Progress(nil, 0))
	defer stop()
	m, err := f.measure(ctx, p)
	if err != nil {
		var wrong *exit.Failure
		switch {
		case ctx.Err() != nil:
			return exit.With(exit.Interrupted, errors.New("interrupted"), fmt.Sprintf("the finished runs are in %s: the same command goes on from there", f.dir))
		case !errors.As(err, &wrong):
			wrong = &exit.Failure{Code: codeOf(err), Err: err}
		}
		if m.claimed { // a job comments with what there is
			text := fmt.Sprintf("### rnnbench: nothing was compared\n\n%v\n", err)
			err = f.write("summary.md", func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
			wrong.Err = errors.Join(wrong.Err, err)
		}
		return wrong
	}
	return f.conclude(p, m, bad)
}

// inTurns are the runs of both programs.
type inTurns struct {
	turns.Turns
	claimed bool   // the folder is theirs
	of      string // which programs they are
	took    time.Duration
}

// measure makes both programs and runs them in turns.
func (f *ciFlags) measure(ctx context.Context, p *program) (m inTurns, err error) {
	tree := &build.Tree{Repository: git.Repository{Dir: "."}, Command: f.build, Makes: f.built, Dir: f.dir}
	var sides [2]revision
	for i, name := range []string{f.base, f.head} {
		if sides[i], err = revisionOf(ctx, tree.Repository, [2]string{"--base", "--head"}[i], name); err != nil {
			return m, exit.Misuse(err, "rnnbench ci --help")
		}
	}
	if err := os.MkdirAll(f.dir, 0o777); err != nil {
		return m, exit.With(exit.Error, err, "set --out DIR to a writable folder")
	}
	again := exists(filepath.Join(f.dir, ciFile))
	if err := turns.Claim(filepath.Join(f.dir, ciFile), map[string]any{
		"base": sides[0].id, "head": sides[1].id, "build": f.build, "built": f.built, "command": f.command,
	}); err != nil {
		return m, exit.Misuse(err, "rnnbench ci --help")
	}
	if m.claimed = true; again {
		p.Note("going on with %s: remove it to begin anew", f.dir)
	}
	m.Turns = turns.Turns{Command: f.command, Seed: f.seed, Failures: exit.Failures, Start: worker.StartTied, Dir: f.dir}
	defer tree.Close(context.WithoutCancel(ctx))
	labels := []string{"base", "head"}
	for i, label := range labels {
		at := sides[i].path
		if at == "" {
			done := p.Busy("building " + sides[i].name)
			at, err = tree.Program(ctx, sides[i].id)
			done()
		}
		if err != nil {
			return m, fmt.Errorf("%s %s: %w", label, sides[i].name, err)
		}
		m.Programs[i] = turns.Program{Label: label, Path: at}
	}
	if err := m.Continue(); err != nil {
		return m, err
	}
	m.of = fmt.Sprintf("head %s against base %s", sides[1].name, sides[0].name)
	m.took, err = m.Within(ctx, turns.Budget{Time: f.budget, Most: f.most}, func(x turns.Turn) {
		p.Note("%s: run %d took %v", x.Label, len(m.Done[slices.Index(labels, x.Label)]), x.Took.Round(100*time.Millisecond))
	})
	return m, err
}

// ciFile says what a folder's runs were made for.
const ciFile = "ci.json"

// conclude compares the runs and writes all files.
func (f *ciFlags) conclude(p *program, m inTurns, bad []compare.Verdict) error {
	var sets []record.Set
	var sides []compare.Side
	for i, program := range m.Programs {
		runs, err := m.Read(i)
		if err != nil {
			return err
		}
		sets, sides = append(sets, runs...), append(sides, compare.Side{Label: program.Label, Runs: runs})
	}
	list, err := changes(sides, f.options)
	if err != nil {
		return err
	}
	runs := min(len(m.Done[0]), len(m.Done[1]))
	if runs < turns.LeastRuns {
		p.Warn("the budget has time for %s of each program: from %d on, the spread between runs is known", plural(runs, "run"), turns.LeastRuns)
	}
	brief := table.Brief{Comparison: &list[0], Options: f.options, Of: m.of, Notes: []string{table.Sees(&list[0], f.options, runs, m.took, f.visible)}}
	brief.Notes = append(brief.Notes, table.Differences(sides[0].Runs[0], sides[1].Runs[0])...)
	all := table.Changes(list, f.options, nil)
	for _, x := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"summary.md", brief.Write},
		{"comparison.md", func(w io.Writer) error { return all.Write(w, "markdown", table.Options{}) }},
		{"comparison.json", func(w io.Writer) error { return all.Write(w, "json", table.Options{}) }},
		{"junit.xml", func(w io.Writer) error { return table.JUnit(w, list, bad) }},
		{"benchmarks.txt", func(w io.Writer) error { return table.BenchfmtOf(w, sets) }},
	} {
		if err := f.write(x.name, x.write); err != nil {
			return err
		}
	}
	all.Notes = append(all.Notes, brief.Notes...)
	if err := all.Write(p.out, "table", p.style()); err != nil {
		return err
	}
	p.Note("wrote %s", filepath.Join(f.dir, "summary.md"))
	return failed(list, bad)
}

// write writes a file of the folder.
func (f *ciFlags) write(name string, write func(io.Writer) error) error {
	return files.Replace(filepath.Join(f.dir, name), write)
}

// A revision is one of the two programs: a commit, or a program that is there.
type revision struct {
	name string // for readers
	id   string // its commit, or a hash of the program
	path string // of the program; "": it is to be built
}

// revisionOf finds what a flag names. A path of a program goes first, since few commits are called like one.
func revisionOf(ctx context.Context, in git.Repository, flag, name string) (revision, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		r := revision{name: filepath.Base(name)}
		if r.path, err = filepath.Abs(name); err != nil {
			return r, err
		}
		if _, err := exec.LookPath(r.path); err == nil {
			r.id, err = hashOf(name)
			return r, err
		}
	}
	if filepath.IsAbs(name) || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
		return revision{}, fmt.Errorf("%s: no program is at %s", flag, name)
	}
	commit, err := in.Commit(ctx, name)
	switch {
	case err != nil && in.Shallow(ctx):
		return revision{}, fmt.Errorf("%s: %s is not in this shallow repository: clone it with more commits, or run git fetch --unshallow", flag, name)
	case err != nil:
		return revision{}, fmt.Errorf("%s: %w", flag, err)
	}
	if here, err := in.Commit(ctx, "HEAD"); err == nil && here == commit {
		switch dirty, err := in.Dirty(ctx); {
		case err != nil:
			return revision{}, err
		case dirty:
			return revision{}, fmt.Errorf("%s: changed files of the working tree are not in %s: commit or stash them, or name a program", flag, name)
		}
	}
	r := revision{name: name, id: commit}
	if short := build.Name(commit); !strings.HasPrefix(commit, name) {
		r.name = fmt.Sprintf("%s (%s)", name, short)
	}
	return r, nil
}

// hashOf is a hash of a file.
func hashOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
