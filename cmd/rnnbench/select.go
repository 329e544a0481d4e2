package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/tuner/config"
	"rnnbench/tuner/filter"
	"rnnbench/tuner/grid"
)

// A selection says which records of which runs a command reads.
type selection struct {
	settings
	where  []string
	filter string
}

const runArgs = `A RUN is a run's folder, its id or label, a results folder (its latest run), or - for
records on standard input. The latest run with a label counts. Write label=RUN to name a
run in tables. The default is the latest run.`

func (s *selection) flags(cmd *cobra.Command) {
	addGroup(cmd, "Record selection", func(f *pflag.FlagSet) {
		f.StringArrayVar(&s.where, "where", nil, "select records that meet a `CONDITION`, such as hidden<=2048 or impl!=naive; repeatable")
		f.StringVar(&s.filter, "filter", "", "benchstat filter `EXPRESSION`, such as '/impl:(naive OR scan) -/batch:1'")
		s.add(f, "out", "DIR", "")
	})
	completeFlag(cmd, "where", whereCompletions)
}

// noRecords returns the error that runs hold no records.
func noRecords(runs []string) error {
	text := "no records in " + strings.Join(runs, ", ")
	if slices.Equal(runs, []string{"-"}) {
		text = "no records in -, which is standard input: give it lines of a records.jsonl, or of show -o jsonl"
	}
	return errors.New(text)
}

// read returns the runs that args name, and the selected records of all of them.
func (s *selection) read(p *program, cmd *cobra.Command, args []string) ([]record.Set, []record.Record, error) {
	sets, err := s.runs(p, cmd, args)
	if err != nil {
		return sets, nil, err
	}
	recs := quantity.Merge(sets)
	if len(recs) == 0 {
		return sets, nil, noRecords(args)
	}
	wanted, err := filter.New(s.where, s.filter, recs)
	if err != nil {
		return sets, nil, misused(cmd, err)
	}
	kept, err := wanted.Choose(recs)
	if err != nil {
		return sets, nil, misused(cmd, err)
	}
	if len(kept) == 0 {
		return sets, nil, fmt.Errorf("--where and --filter select none of %s", plural(len(recs), "record"))
	}
	return sets, kept, nil
}

// readSets returns the runs that args name, each with its selected records.
func (s *selection) readSets(p *program, cmd *cobra.Command, args []string) ([]record.Set, error) {
	sets, err := s.runs(p, cmd, args)
	if err != nil {
		return nil, err
	}
	if _, err := s.choose(cmd, sets); err != nil {
		return nil, err
	}
	return sets, nil
}

// choose keeps the selected records of sets. It returns how many records there were, and fails if none of them is
// selected.
func (s *selection) choose(cmd *cobra.Command, sets []record.Set) (records int, err error) {
	var all []record.Record
	for _, set := range sets {
		all = append(all, set.Records...)
	}
	wanted, err := filter.New(s.where, s.filter, all)
	if err != nil {
		return len(all), misused(cmd, err)
	}
	kept := 0
	for i := range sets {
		if sets[i].Records, err = wanted.Choose(sets[i].Records); err != nil {
			return len(all), misused(cmd, err)
		}
		kept += len(sets[i].Records)
	}
	if kept == 0 && len(all) > 0 {
		return len(all), fmt.Errorf("--where and --filter select none of %s", plural(len(all), "record"))
	}
	return len(all), nil
}

// knownBaseline returns an error if --baseline names a technique without records.
func knownBaseline(cmd *cobra.Command, recs []record.Record, baseline string) error {
	return amongTechniques(cmd, baseline, len(recs), func(i int) (name, label string) {
		return recs[i].Impl.Name, quantity.Label(&recs[i])
	})
}

// amongTechniques returns an error if --baseline names none of n techniques.
func amongTechniques(cmd *cobra.Command, baseline string, n int, technique func(i int) (name, label string)) error {
	if !cmd.Flags().Changed("baseline") {
		return nil
	}
	var labels []string
	for i := range n {
		name, label := technique(i)
		if label == baseline || name == baseline {
			return nil
		}
		if !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	return misused(cmd, fmt.Errorf("--baseline: %w", grid.Unknown("technique", baseline, labels)))
}

// runs reads the runs that args name, or the latest.
func (s *selection) runs(p *program, cmd *cobra.Command, args []string) ([]record.Set, error) {
	err := s.resolve(p)
	dir := s.Config.Dir
	if err != nil {
		return nil, misused(cmd, err)
	}
	if len(args) == 0 {
		args = []string{dir}
		if !exists(dir) {
			return nil, exit.With(exit.Error, fmt.Errorf("no runs found: folder %s does not exist", dir), "run rnnbench sweep --preset quick to create one")
		}
	}
	paths := make([]string, len(args))
	for i, a := range args {
		label, run, ok := record.CutLabel(a, dir)
		if run == "" {
			return nil, misused(cmd, errors.New("the name of a run is empty: write a name, or leave the argument out"))
		}
		if paths[i] = record.Find(run, dir); ok {
			paths[i] = label + "=" + paths[i]
		}
	}
	sets, warnings, err := record.ReadAllFrom(p.in, paths)
	warnSome(p, warnings)
	if err != nil {
		return nil, exit.With(exit.Error, err, "runs in "+dir+" are named by id or label; without a name, the command reads the latest")
	}
	if !slices.ContainsFunc(sets, func(s record.Set) bool { return len(s.Records) > 0 || computed(s) }) {
		return sets, noRecords(args)
	}
	return sets, nil
}

// below reads the runs at or below folders. Shards and runs that cannot be read are left out with a warning.
func (s *selection) below(p *program, folders []string) (sets []record.Set, err error) {
	var paths []string
	for _, folder := range folders {
		found, err := record.Below(record.Find(folder, s.Config.Dir))
		if err != nil {
			return nil, exit.With(exit.Error, fmt.Errorf("cannot search %s for runs: %w", folder, err), "name the folder that holds the runs")
		}
		for _, path := range found {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	shards := 0
	var faults []record.Warning
	for _, path := range paths {
		list, warnings, err := record.ReadAll([]string{path})
		faults = append(faults, warnings...)
		switch {
		case err != nil:
			p.Warn("%s is left out: %v", path, err)
		case list[0].Manifest.Scope.Shard != nil:
			shards++
		default:
			sets = append(sets, list[0])
		}
	}
	warnSome(p, faults)
	if shards > 0 {
		p.Warn("left out %s: rnnbench merge makes a run of them", plural(shards, "shard"))
	}
	return sets, nil
}

// warnSome prints warnings about lines of files, as many as it takes to see what is wrong with a file.
func warnSome(p *program, warnings []record.Warning) {
	const enough = 5
	for _, w := range warnings[:min(enough, len(warnings))] {
		p.Warn("%v", w)
	}
	if more := len(warnings) - enough; more > 0 {
		p.Warn("omitted similar warnings about %s", plural(more, "line"))
	}
}

// completeRuns completes the runs of the results folder, the latest first, and their labels.
func completeRuns(cmd *cobra.Command, _ []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	dir := config.Dir
	if env := os.Getenv("RNNBENCH_RESULTS"); env != "" {
		dir = env
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var runs []cobra.Completion
	for _, e := range slices.Backward(entries) {
		if !e.IsDir() {
			continue
		}
		names := []string{e.Name()}
		if m, err := record.ReadManifest(filepath.Join(dir, e.Name())); err == nil && m.Label != "" {
			names = append(names, m.Label)
		}
		for _, name := range names {
			if strings.HasPrefix(name, start) && !slices.Contains(runs, name) {
				runs = append(runs, name)
			}
		}
	}
	return runs, cobra.ShellCompDirectiveDefault
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
