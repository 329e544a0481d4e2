package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/internal/git"
	"rnnbench/plots"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/record/compare"
)

const historyLong = `History follows each technique at each point over many runs, and finds the runs since
which it is faster or slower for good. A FOLDER is searched for runs, with all folders
inside it. The default is the results folder.

Each step, and each line without one, gets a verdict:

  FASTER, SLOWER  since that commit, by more than chance and by at least --min-effect
  STEADY          no step, and one of 10 % would have been found
  CANNOT TELL     no step was found, but the runs differ too much or are too few

A step needs four runs before and after it. Each device has its own history. Runs are in
the order of the commits of the programs that measured them, or of their dates.

The exit code is 4 if a step has a verdict named by --fail-on.`

const historyExample = `  rnnbench history nightly/
  rnnbench history nightly/ --all --where cell=lstm
  rnnbench history --git origin/benchmarks:runs --fail-on slower
  rnnbench history nightly/ -f history.svg -o json`

// historyFlags are the flags of history.
type historyFlags struct {
	selection
	verdictFlags
	git, by, figure string
	all             bool
}

func historyCommand(p *program) *cobra.Command {
	f := &historyFlags{by: string(compare.ByCommit), verdictFlags: verdictFlags{options: compare.Usual(), effect: "2%", alpha: "1%", level: "95%", format: "table"}}
	cmd := &cobra.Command{
		Use:     "history [FOLDER...] [flags]",
		Short:   "Show since when points are faster or slower, over many runs",
		GroupID: "analyse",
		Long:    historyLong,
		Example: historyExample,
	}
	f.flags(cmd)
	addGroup(cmd, "Runs", func(fs *pflag.FlagSet) {
		fs.StringVar(&f.git, "git", "", "read the runs of a `BRANCH[:FOLDER]` of the git repository here")
		fs.Var(choice{&f.by, "order", []string{string(compare.ByCommit), string(compare.ByDate)}}, "by", "order of runs: commit, date")
	})
	addGroup(cmd, "Verdicts", func(fs *pflag.FlagSet) {
		fs.StringVar(&f.effect, "min-effect", f.effect, "smallest relevant change in `PERCENT`")
		fs.StringVar(&f.alpha, "alpha", f.alpha, "chance of any false step in a history in `PERCENT`")
		fs.StringVar(&f.level, "confidence", f.level, "confidence level of intervals in `PERCENT`")
		fs.StringSliceVar(&f.failOn, "fail-on", nil, "exit with 4 if a step has one of these `VERDICTS`: slower, faster")
	})
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.all, "all", false, "list lines without a step, too")
		fs.VarP(choice{&f.format, "format", table.Formats()}, "format", "o", "how to print: "+strings.Join(table.Formats(), ", "))
		fs.StringVarP(&f.figure, "file", "f", "", "also draw the lines with steps: `FILE` .svg, .png or .pdf")
	})
	completeFlag(cmd, "fail-on", described(func() [][2]string { return [][2]string{{"slower", ""}, {"faster", ""}} }))
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return f.run(ctx, p, cmd, args)
	})
}

// run reads the runs, follows them and prints what it found.
func (f *historyFlags) run(ctx context.Context, p *program, cmd *cobra.Command, args []string) error {
	if err := f.check(p, args); err != nil {
		return misused(cmd, err)
	}
	if f.git != "" {
		dir, err := f.checkout(ctx)
		if err != nil {
			return exit.With(exit.Error, err, "give a branch of the repository here, such as --git origin/benchmarks:runs")
		}
		defer os.RemoveAll(dir)
		args = []string{dir}
	}
	if len(args) == 0 {
		args = []string{f.Config.Dir}
	}
	sets, err := f.sets(p, cmd, args)
	if err != nil {
		return err
	}
	by := compare.Order(f.by)
	if by == compare.ByCommit && slices.ContainsFunc(sets, func(s record.Set) bool { return s.Manifest.Environment.Tool.Time == "" }) {
		p.Warn("some runs do not say which commit their program is of, so runs are in the order of their dates")
		by = compare.ByDate
	}
	list, err := compare.Histories(sets, by, f.options)
	if err != nil {
		return exit.With(exit.Error, err, "measure the same sweep more often: rnnbench sweep --out "+f.Config.Dir)
	}
	if err := table.History(list, f.all).Write(p.out, f.format, p.style()); err != nil {
		return err
	}
	if err := f.draw(p, list); err != nil {
		return err
	}
	return f.failed(list)
}

// check reads flags that do not depend on runs.
func (f *historyFlags) check(p *program, args []string) error {
	if err := f.percentages(); err != nil {
		return err
	}
	if f.git != "" && len(args) > 0 {
		return errors.New("--git and folders exclude each other: name the folder as --git BRANCH:FOLDER")
	}
	for _, word := range f.failOn {
		if !slices.Contains([]string{"slower", "faster"}, strings.ToLower(word)) {
			return fmt.Errorf("--fail-on: unknown verdict %q: use slower or faster", word)
		}
	}
	if format := strings.ToLower(strings.TrimPrefix(filepath.Ext(f.figure), ".")); f.figure != "" && !slices.Contains(plots.Formats(), format) {
		return fmt.Errorf("-f %s: unknown format: use one of the endings .%s", f.figure, strings.Join(plots.Formats(), ", ."))
	}
	return f.resolve(p)
}

// checkout writes the runs of --git into a temporary folder.
func (f *historyFlags) checkout(ctx context.Context) (string, error) {
	branch, folder, ok := strings.Cut(f.git, ":")
	if !ok || folder == "" {
		folder = "."
	}
	dir, err := os.MkdirTemp("", "rnnbench-history-")
	if err != nil {
		return "", err
	}
	if err := (git.Repository{Dir: "."}).Extract(ctx, branch, strings.TrimSuffix(folder, "/"), dir, record.OfRun); err != nil {
		_ = os.RemoveAll(dir) // the other error is told
		return "", err
	}
	return dir, nil
}

// sets reads the runs below folders.
func (f *historyFlags) sets(p *program, cmd *cobra.Command, folders []string) ([]record.Set, error) {
	sets, err := f.below(p, folders)
	if err != nil {
		return nil, err
	}
	return f.chosen(cmd, sets, folders)
}

// chosen keeps the records that --where and --filter select, and the runs that have any.
func (f *historyFlags) chosen(cmd *cobra.Command, sets []record.Set, folders []string) ([]record.Set, error) {
	records, err := f.choose(cmd, sets)
	switch {
	case err != nil:
		return nil, err
	case records == 0:
		return nil, exit.With(exit.Error, fmt.Errorf("no runs with records in %s", strings.Join(folders, ", ")), "name a folder that holds several runs")
	}
	return slices.DeleteFunc(sets, func(s record.Set) bool { return len(s.Records) == 0 }), nil
}

// draw writes the figure of each device's history. Those of several devices have the device in their names.
func (f *historyFlags) draw(p *program, list []compare.History) error {
	for i := range list {
		name := f.figure
		if name == "" || len(list[i].Runs) < 2 {
			continue
		}
		if ext := filepath.Ext(name); len(list) > 1 {
			name = strings.TrimSuffix(name, ext) + "-" + list[i].Device + ext
		}
		if err := plots.Save(name, plots.History(&list[i])); err != nil {
			return err
		}
		p.Note("wrote %s", name)
	}
	return nil
}

// failed returns the error of --fail-on.
func (f *historyFlags) failed(list []compare.History) error {
	slower, faster := 0, 0
	for i := range list {
		for _, l := range list[i].Stepped() {
			for _, s := range l.Steps {
				if s.Ratio.Value > 1 {
					slower++
				} else {
					faster++
				}
			}
		}
	}
	var found []string
	for _, word := range f.failOn {
		if n := map[string]int{"slower": slower, "faster": faster}[strings.ToLower(word)]; n > 0 {
			found = append(found, fmt.Sprintf("%d %s", n, strings.ToUpper(word)))
		}
	}
	if found != nil {
		return exit.With(exit.Changed, fmt.Errorf("--fail-on: %s", strings.Join(found, ", ")), "")
	}
	return nil
}
