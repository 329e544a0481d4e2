package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/experiments"
	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/record/merge"
	"rnnbench/train"
	"rnnbench/tuner/wisdom"
)

func mergeCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "merge RUN... [flags]",
		Short:   "Make one run of the shards of a plan",
		GroupID: "measure",
		Long: `Merge makes one run of the shards that sweep, tune, train or reproduce measured with --shard.
A RUN is the folder of a shard, or a folder that holds the shards of one plan. The merged
run lies beside the shards and has their name without the number.

Merge refuses shards of different plans, devices or versions of rnnbench. It names shards
that are missing, unfinished or failed, and then exits with 3. It may run while shards are
being measured; the same command later adds what is new. Each record names its machine.

Every shard also measures one control point. Merge compares the machines by it and warns
if they differ by more than the noise. Winners of tune go into the wisdom file.`,
		Example: `  rnnbench merge out/nightly-*-of-16
  rnnbench merge out --allow-missing
  rnnbench merge out && rnnbench show`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Misuse(errors.New("merge needs the shards to merge"), "rnnbench merge --help")
			}
			return nil
		},
		ValidArgsFunction: completeRuns,
	}
	s := &settings{}
	var o mergeOptions
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		s.add(fs, "out", "DIR", "")
		fs.BoolVar(&o.allowMissing, "allow-missing", false, "exit with 0 although shards are missing, unfinished or failed")
		fs.BoolVar(&o.noWisdom, "no-wisdom", false, "do not write wisdom")
		addWisdomFlag(fs, &o.wisdom)
	})
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, args []string) error {
		if err := s.resolve(p); err != nil {
			return misused(cmd, err)
		}
		if cmd.Flags().Changed("out") {
			o.dir = s.Config.Dir
		}
		paths := make([]string, len(args))
		for i, a := range args {
			if a == "" {
				return misused(cmd, errors.New("the name of a run is empty: write a name, or leave the argument out"))
			}
			paths[i] = record.Find(a, s.Config.Dir)
		}
		return mergeShards(p, cmd, paths, o)
	})
}

// mergeOptions are the flags of merge.
type mergeOptions struct {
	dir, wisdom            string // "": beside the shards; the default file
	allowMissing, noWisdom bool
}

func mergeShards(p *program, cmd *cobra.Command, paths []string, o mergeOptions) error {
	g, err := merge.Read(paths, train.Saved)
	if err != nil && strings.Contains(err.Error(), "is no shard") {
		return exit.Misuse(err, "to put whole runs together, name them all: rnnbench show RUN RUN, or report, plot or compare")
	}
	if err != nil {
		return misused(cmd, err)
	}
	for _, w := range g.Warnings {
		p.Warn("%v", w)
	}
	if o.dir == "" {
		o.dir = filepath.Dir(filepath.Clean(g.Sets[0].Dir))
	}
	dir, m, err := g.Write(o.dir)
	if err != nil {
		return exit.With(exit.Error, err, "")
	}
	if err := mergeWisdom(p, g, dir, o); err != nil {
		return err
	}
	sum := 0
	for _, n := range m.Counts {
		sum += n
	}
	p.Note("%d of %s merged into %s: %s", len(m.Merged.Shards), plural(m.Merged.Count, "shard"), dir, plural(sum, "record"))
	tellNodes(p, m.Merged)
	for _, path := range g.Ahead {
		p.Warn("%s is left out, since it was saved while the records were read: run the same merge again", path)
	}
	if id := experiments.Of(m); id != "" {
		p.Note("hint: rnnbench reproduce %s --from %s reports on the run", id, dir)
	}
	gaps := m.Merged.Gaps()
	for _, line := range gaps {
		p.Note("%s", line)
	}
	if len(gaps) == 0 || o.allowMissing {
		return nil
	}
	return exit.With(exit.Failures, fmt.Errorf("the run is not complete"), "start the jobs of these shards again, then run the same merge")
}

// tellNodes prints how far the machines differ.
func tellNodes(p *program, m *record.Merged) {
	for _, line := range m.Lines() {
		p.Note("%s", line)
	}
	warnNodes(p, m)
}

// warnNodes warns where machines differ by more than the noise.
func warnNodes(p *program, m *record.Merged) {
	if names := m.Differ(); names != nil {
		p.Warn("nodes differ by more than the noise, so compare only techniques at the same point: %s", strings.Join(names, ", "))
	}
}

// mergeWisdom merges the shards' wisdom into the merged run's file and into the user's.
func mergeWisdom(p *program, g *merge.Group, dir string, o mergeOptions) error {
	all := &wisdom.Book{}
	for _, s := range g.Sets {
		b, err := wisdom.Read(filepath.Join(s.Dir, record.WisdomFile))
		if err != nil {
			return exit.With(exit.Error, err, "")
		}
		all.Merge(b)
	}
	if len(all.Entries) == 0 {
		return nil
	}
	put := func(path string) error {
		_, err := wisdom.Update(path, func(b *wisdom.Book) bool { taken, _ := b.Merge(all); return taken > 0 })
		if err != nil {
			return exit.With(exit.Error, err, "use --wisdom FILE for another file, or --no-wisdom to save none")
		}
		return nil
	}
	if err := put(filepath.Join(dir, record.WisdomFile)); err != nil || o.noWisdom {
		return err
	}
	path, err := wisdom.Path(o.wisdom)
	if err != nil {
		return exit.With(exit.Error, err, "use --no-wisdom to save none")
	}
	if err := put(path); err != nil {
		return err
	}
	p.Note("%s merged into %s", entries(len(all.Entries)), path)
	return nil
}
