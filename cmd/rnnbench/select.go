package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"

	"rnnbench/plots/quantity"
	"rnnbench/results"
	"rnnbench/rnn"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// A selection is which records of which runs are looked at.
type selection struct {
	settings
	where  []string
	filter string
}

const runArgs = `A RUN is a run's folder, its id, a results folder (its latest run), or - for records
on standard input. Write label=RUN to name it in tables. The default is the latest run.`

func (s *selection) flags(cmd *cobra.Command) {
	addGroup(cmd, "Record selection", func(f *pflag.FlagSet) {
		f.StringArrayVar(&s.where, "where", nil, "select records that meet a `CONDITION`, such as hidden<=2048 or impl!=naive; repeatable")
		f.StringVar(&s.filter, "filter", "", "benchstat filter `EXPRESSION`, such as '/impl:(naive OR scan) -/batch:1'")
		s.add(f, "out", "DIR", "")
	})
	completeFlag(cmd, "where", whereCompletions)
}

// read reads the runs and keeps what is selected.
func (s *selection) read(p *program, cmd *cobra.Command, args []string) ([]results.Set, []results.Record, error) {
	sets, err := s.runs(p, cmd, args)
	if err != nil {
		return sets, nil, err
	}
	recs := merge(sets)
	if len(recs) == 0 {
		return sets, nil, errors.New("no records in " + strings.Join(args, ", "))
	}
	wanted, err := s.chooser(recs)
	if err != nil {
		return sets, nil, misused(cmd, err)
	}
	kept, err := choose(recs, wanted)
	if err != nil {
		return sets, nil, misused(cmd, err)
	}
	if len(kept) == 0 {
		return sets, nil, fmt.Errorf("--where and --filter select none of the %d records", len(recs))
	}
	return sets, kept, nil
}

// readSets reads the runs and keeps what is selected of each.
func (s *selection) readSets(p *program, cmd *cobra.Command, args []string) ([]results.Set, error) {
	sets, err := s.runs(p, cmd, args)
	if err != nil {
		return nil, err
	}
	var all []results.Record
	for _, set := range sets {
		all = append(all, set.Records...)
	}
	wanted, err := s.chooser(all)
	if err != nil {
		return nil, misused(cmd, err)
	}
	kept := 0
	for i := range sets {
		if sets[i].Records, err = choose(sets[i].Records, wanted); err != nil {
			return nil, misused(cmd, err)
		}
		kept += len(sets[i].Records)
	}
	if kept == 0 && len(all) > 0 {
		return nil, fmt.Errorf("--where and --filter select none of the %d records", len(all))
	}
	return sets, nil
}

// knownBaseline finds a baseline that was asked for and that no record is of.
func knownBaseline(cmd *cobra.Command, recs []results.Record, baseline string) error {
	return amongTechniques(cmd, baseline, len(recs), func(i int) (name, label string) {
		return recs[i].Impl.Name, quantity.Label(&recs[i])
	})
}

// amongTechniques finds a baseline that was asked for and that is none of n
// techniques.
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
func (s *selection) runs(p *program, cmd *cobra.Command, args []string) ([]results.Set, error) {
	dir, err := s.dir(p)
	if err != nil {
		return nil, misused(cmd, err)
	}
	if len(args) == 0 {
		args = []string{dir}
		if !exists(dir) {
			return nil, &failure{exitError, fmt.Errorf("no runs found: folder %s does not exist", dir), "run rnnbench sweep --preset quick to create one"}
		}
	}
	paths := make([]string, len(args))
	for i, a := range args {
		label, path, ok := strings.Cut(a, "=")
		if a == "" || ok && path == "" && !exists(a) {
			return nil, misused(cmd, errors.New("the name of a run is empty: write a name, or leave the argument out"))
		}
		if ok && !exists(a) {
			paths[i] = label + "=" + runPath(path, dir)
		} else {
			paths[i] = runPath(a, dir)
		}
	}
	sets, warnings, err := p.readAll(paths)
	const enough = 5 // to see what is wrong with a file
	for _, w := range warnings[:min(enough, len(warnings))] {
		p.warn("%v", w)
	}
	if more := len(warnings) - enough; more > 0 {
		p.warn("omitted similar warnings about %s", plural(more, "line"))
	}
	if err != nil {
		return nil, &failure{exitError, err, "runs are folders in " + dir + "; without a name, the command reads the latest"}
	}
	if !slices.ContainsFunc(sets, func(s results.Set) bool { return len(s.Records) > 0 || computed(s) }) {
		return sets, errors.New("no records in " + strings.Join(args, ", "))
	}
	return sets, nil
}

// readAll reads runs, with "-" for this program's standard input.
func (p *program) readAll(paths []string) ([]results.Set, []results.Warning, error) {
	var sets []results.Set
	var warnings []results.Warning
	for _, path := range paths {
		label, name, ok := strings.Cut(path, "=")
		if !ok {
			label, name = "", path
		}
		if name != "-" {
			some, w, err := results.ReadAll([]string{path})
			warnings = append(warnings, w...)
			if err != nil {
				return sets, warnings, err
			}
			sets = append(sets, some...)
			continue
		}
		recs, w, err := results.ReadRecords(p.in, "standard input")
		warnings = append(warnings, w...)
		if err != nil {
			return sets, warnings, err
		}
		if label == "" {
			label = "-"
		}
		sets = append(sets, results.Set{Label: label, Records: recs})
	}
	return sets, warnings, nil
}

// merge puts runs together. Where two of them measured the same, techniques get
// the run's label in front, so that neither hides the other.
func merge(sets []results.Set) []results.Record {
	owner := map[string]int{}
	clash := false
	for i, s := range sets {
		for j := range s.Records {
			key := s.Records[j].Key()
			if o, ok := owner[key]; ok && o != i {
				clash = true
			}
			owner[key] = i
		}
	}
	var all []results.Record
	for _, s := range sets {
		for _, r := range s.Records {
			if clash {
				r.Impl.Label = s.Label + ": " + quantity.Label(&r)
			}
			all = append(all, r)
		}
	}
	return all
}

// A chooser says whether a record is selected.
type chooser func(*results.Record) (bool, error)

// choose keeps the records that are wanted.
func choose(recs []results.Record, wanted chooser) ([]results.Record, error) {
	var kept []results.Record
	for i := range recs {
		ok, err := wanted(&recs[i])
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, recs[i])
		}
	}
	return kept, nil
}

// chooser applies --where and --filter, which may name what occurs in recs.
func (s *selection) chooser(recs []results.Record) (chooser, error) {
	var filter *benchproc.Filter
	if s.filter != "" {
		var err error
		if filter, err = benchproc.NewFilter(s.filter); err != nil {
			return nil, fmt.Errorf("--filter: %w", err)
		}
	}
	var at *results.Record // which record a condition is about
	v := grid.Vocabulary{Cells: cellNames(), Passes: rnn.Passes(), Precisions: rnn.Precisions(), Impls: implNames()}
	add := func(list *[]string, word string) {
		if !slices.Contains(*list, word) {
			*list = append(*list, word)
		}
	}
	for i := range recs {
		r := &recs[i]
		add(&v.Cells, r.Point.Cell)
		add(&v.Passes, r.Point.Pass)
		add(&v.Precisions, r.Point.Precision)
		add(&v.Impls, r.Impl.Name)
		add(&v.Impls, quantity.Label(r))
	}
	v.Derive = func(p results.Point, _ grid.Spec, key string) (float64, error) {
		switch key {
		case "mem":
			return float64(at.Work.Memory), nil
		case "intensity":
			return float64(at.Work.Flops) / float64(max(1, at.Work.Bytes)), nil
		}
		problem, err := tuner.Problem(p)
		return float64(problem.FLOPs()), err
	}
	g, err := grid.New(grid.Request{Where: s.where, Impl: implNames()[:1]}, v) // a grid has a technique; records' own need not be words of a spec
	if err != nil {
		return nil, err
	}
	return func(r *results.Record) (bool, error) {
		at = r
		ok, err := g.Wants(r.Point, grid.Spec{Name: r.Impl.Name, Label: quantity.Label(r), Knobs: r.Impl.Knobs})
		if err != nil || !ok || filter == nil {
			return ok, err
		}
		m, err := filter.Match(benchmark(r))
		if err != nil {
			return false, fmt.Errorf("--filter: %w", err)
		}
		return m.All(), nil
	}, nil
}

// benchmark is r as benchstat sees it: axes and knobs are parts of its name.
func benchmark(r *results.Record) *benchfmt.Result {
	name := "RNN"
	seen := map[string]bool{}
	part := func(key, value string) {
		if !seen[key] {
			seen[key] = true
			name += "/" + key + "=" + strings.NewReplacer("/", "_", " ", "_").Replace(value)
		}
	}
	part("impl", quantity.Label(r))
	for _, a := range quantity.Axes() {
		part(a.Name, a.Text(r))
	}
	part("status", string(r.Status))
	for k, v := range r.Impl.Knobs {
		part(k, fmt.Sprint(v))
	}
	res := &benchfmt.Result{Name: benchfmt.Name(name), Iters: 1, Values: []benchfmt.Value{{Value: r.Seconds(), Unit: "sec/op"}}}
	res.SetConfig("device", r.Device)
	return res
}

// completeRuns offers the runs of the results folder.
func completeRuns(cmd *cobra.Command, _ []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	dir := usualDir
	if env := os.Getenv("RNNBENCH_RESULTS"); env != "" {
		dir = env
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var runs []cobra.Completion
	for _, e := range slices.Backward(entries) {
		if e.IsDir() && strings.HasPrefix(e.Name(), start) {
			runs = append(runs, e.Name())
		}
	}
	return runs, cobra.ShellCompDirectiveDefault
}
