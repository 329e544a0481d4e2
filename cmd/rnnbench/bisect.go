package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device/worker"
	"rnnbench/internal/exit"
	"rnnbench/internal/git"
	"rnnbench/plots/table"
	"rnnbench/record/bisect"
	"rnnbench/record/build"
	"rnnbench/record/compare"
	"rnnbench/record/turns"
)

const bisectLong = `Bisect finds the commit that made points slower. It first runs the sweep after -- by the
programs of GOOD and of BAD in turns, until a point is clearly slower. Then it halves the
commits between them: each runs in turns with GOOD, until its share of the slowdown is
clearly below or above one half. Commits that cannot be built are left out.

With --programs, it searches several programs, oldest first, instead of commits.

Everything measured stays in a folder of --out. The same command goes on from there. The
exit code is 4 if it cannot tell.`

const bisectExample = `  rnnbench bisect v1.2 HEAD -- sweep --preset quick
  rnnbench bisect HEAD~30 HEAD --build 'make build' --built bin/rnnbench -- sweep -H 256 -B 16 -T 50
  rnnbench bisect --programs old,monday,tuesday,new -- sweep -H 256 -B 16 -T 50`

// bisectFlags are the flags of bisect.
type bisectFlags struct {
	settings
	build, built, effect string
	programs             []string
	runs, most           int
	seed                 uint64
	options              compare.Options
	good, bad            string
	command              []string
}

func bisectCommand(p *program) *cobra.Command {
	f := &bisectFlags{options: compare.Usual(), effect: "2%"}
	cmd := &cobra.Command{
		Use:     "bisect GOOD BAD [flags] -- sweep ...",
		Short:   "Find the commit or program that made points slower",
		GroupID: "analyse",
		Long:    bisectLong,
		Example: bisectExample,
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error { return f.check(cmd.ArgsLenAtDash(), args) }
	addGroup(cmd, "Programs", func(fs *pflag.FlagSet) {
		buildFlags(fs, &f.build, &f.built)
		fs.StringSliceVar(&f.programs, "programs", nil, "search these `PROGRAMS` instead of commits, oldest first")
	})
	addGroup(cmd, "Runs", func(fs *pflag.FlagSet) {
		fs.IntVar(&f.runs, "runs", 5, "`N` runs of each program before a first verdict, at least 3")
		fs.IntVar(&f.most, "max-runs", 15, "at most `N` runs of each program")
		fs.StringVar(&f.effect, "min-effect", f.effect, "smallest relevant change in `PERCENT`")
		fs.Uint64Var(&f.seed, "seed", 1, "random seed `N` for the order of runs")
		f.add(fs, "out", "DIR", "")
	})
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		return f.run(ctx, p, cmd)
	})
}

// buildFlags adds the flags that say how a commit becomes a program.
func buildFlags(fs *pflag.FlagSet, build, built *string) {
	fs.StringVar(build, "build", "make build", "shell `COMMAND` that builds a commit")
	fs.StringVar(built, "built", "bin/rnnbench", "`FILE` that it builds")
}

// check reads the arguments: two revisions, unless programs are named, and, after --, the sweep.
func (f *bisectFlags) check(dash int, args []string) error {
	const hint = "rnnbench bisect GOOD BAD -- sweep --preset quick"
	named := 2
	if f.programs != nil {
		named = 0
	}
	if dash != named || len(args) <= named || args[named] != "sweep" {
		return exit.Misuse(errors.New("bisect takes a good and a bad commit, or --programs, and after -- the sweep command"), hint)
	}
	if named == 2 {
		f.good, f.bad = args[0], args[1]
	} else if len(f.programs) < 2 {
		return exit.Misuse(errors.New("--programs takes two programs or more, the oldest first"), hint)
	}
	if f.runs < turns.LeastRuns || f.most < f.runs {
		return exit.Misuse(fmt.Errorf("--runs %d and --max-runs %d: a verdict takes at least %d runs, and no more than --max-runs", f.runs, f.most, turns.LeastRuns), hint)
	}
	f.command = args[named:]
	return ownFolder(f.command, "bisect")
}

// ownFolder refuses flags of a sweep that each run of a command sets by itself.
func ownFolder(command []string, verb string) error {
	for _, a := range command {
		name, _, _ := strings.Cut(a, "=")
		if slices.Contains([]string{"--out", "--label", "--resume", "--dry-run", "--print-config", "--profile", "--help", "-h"}, name) {
			return exit.Misuse(fmt.Errorf("the sweep of %s does not take %s: each run is new and has its own folder", verb, name), "put --out before -- to name the folder of all runs")
		}
	}
	return nil
}

// run searches and prints what it found.
func (f *bisectFlags) run(ctx context.Context, p *program, cmd *cobra.Command) (err error) {
	if f.options.MinEffect, err = share(f.effect); err != nil {
		return misused(cmd, fmt.Errorf("--min-effect: %w", err))
	}
	if err := f.resolve(p); err != nil {
		return misused(cmd, err)
	}
	s, done, err := f.search(ctx, cmd)
	if err != nil {
		return err
	}
	defer done()
	s.Tell = p.Note
	if _, err := os.Stat(s.Dir); err == nil {
		p.Note("going on with %s: remove it to begin anew", s.Dir)
	}
	p.Note("searching %s, from %s to %s", plural(len(s.Versions), "version"), s.Versions[0].Name, s.Versions[len(s.Versions)-1].Name)
	ctx, stop := p.Interruptible(ctx, p.Progress(nil, 0))
	defer stop()
	r, err := s.Run(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return exit.With(exit.Interrupted, errors.New("interrupted"), fmt.Sprintf("what was measured is in %s: the same command goes on from there", s.Dir))
	case err != nil:
		hint := ""
		if bad := (*fs.PathError)(nil); errors.As(err, &bad) && bad.Op == "mkdir" {
			hint = "set --out DIR or RNNBENCH_RESULTS to a writable folder"
		}
		return exit.With(exit.Error, err, hint)
	}
	return found(p, s, r)
}

// search prepares a search. done ends it.
func (f *bisectFlags) search(ctx context.Context, cmd *cobra.Command) (s *bisect.Search, done func(), err error) {
	s = &bisect.Search{Command: f.command, Runs: f.runs, Most: f.most, Seed: f.seed, Options: f.options, Failures: exit.Failures, Start: worker.StartTied}
	if f.programs != nil {
		s.Program = f.program
		for i, path := range f.programs {
			found, err := exec.LookPath(path)
			if err != nil {
				return nil, nil, misused(cmd, fmt.Errorf("cannot run program %s: %w", path, err))
			}
			if f.programs[i], err = filepath.Abs(found); err != nil {
				return nil, nil, err
			}
			s.Versions = append(s.Versions, bisect.Version{Name: fmt.Sprintf("%d-%s", i+1, folderName(filepath.Base(path))), Note: path})
		}
		s.Dir = filepath.Join(f.Config.Dir, "bisect-programs-"+f.hash(strings.Join(f.programs, "\n")))
		return s, func() {}, nil
	}
	commits := &bisect.Commits{Tree: build.Tree{Repository: git.Repository{Dir: "."}, Command: f.build, Makes: f.built}}
	if s.Versions, err = commits.Versions(ctx, f.good, f.bad); err != nil {
		return nil, nil, exit.Misuse(err, "rnnbench bisect --help")
	}
	last := len(s.Versions) - 1
	s.Dir = filepath.Join(f.Config.Dir, fmt.Sprintf("bisect-%s-%s-%s", s.Versions[0].Name, s.Versions[last].Name, f.hash(f.build+"\n"+f.built)))
	commits.Dir, s.Program = s.Dir, commits.Program
	return s, func() { commits.Close(context.WithoutCancel(ctx)) }, nil
}

// folderName is name with "_" for what may mean something in paths and lists of runs.
func folderName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '.') {
			return r
		}
		return '_'
	}, name)
}

func (f *bisectFlags) program(_ context.Context, version int) (string, error) {
	return f.programs[version], nil
}

// hash names what is measured in a few letters.
func (f *bisectFlags) hash(what string) string {
	sum := sha256.Sum256([]byte(what + "\n" + strings.Join(f.command, "\n")))
	return fmt.Sprintf("%x", sum[:3])
}

// found prints what a search found.
func found(p *program, s *bisect.Search, r bisect.Result) error {
	if len(r.Slowdown.Changes) > 0 {
		list := []compare.Comparison{r.First}
		if err := table.Changes(list, s.Options, []compare.Verdict{compare.Slower}).Write(p.out, "table", p.style()); err != nil {
			return err
		}
	}
	good, bad := s.Versions[r.Good], s.Versions[r.Bad]
	if !r.Found {
		err := fmt.Errorf("cannot tell: %s", r.Why)
		hint := "a quieter machine, a longer sweep or more --max-runs may tell"
		if len(r.Slowdown.Changes) > 0 {
			hint = fmt.Sprintf("%s is not slower and %s is", good.Name, bad.Name)
		}
		return exit.With(exit.Changed, err, hint)
	}
	_, err := fmt.Fprintf(p.out, "\nslower since %s  %s\nnot slower:  %s  %s\n", bad.Name, bad.Note, good.Name, good.Note)
	return err
}
