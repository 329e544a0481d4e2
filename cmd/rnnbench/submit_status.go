package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/cluster"
	"rnnbench/internal/exit"
	"rnnbench/plots/table"
	"rnnbench/record"
)

func submitStatus(p *program) *cobra.Command {
	s := &settings{}
	retry, format := false, "table"
	cmd := &cobra.Command{
		Use:   "status DIR [flags]",
		Short: "Print which shards are done, and submit others again",
		Long: `Status prints which shards of the submission in DIR are done, running, queued, failed or
missing. It reads their folders, and asks the scheduler if its command is installed. It
exits with 3 if shards failed or are missing. --retry submits those again.`,
		Example: `  rnnbench submit status out/nightly
  rnnbench submit status out/nightly --retry
  rnnbench submit status nightly -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return exit.Misuse(errors.New("submit status takes the folder of one submission"), "rnnbench submit status --help")
			}
			return nil
		},
		ValidArgsFunction: completeRuns,
	}
	addGroup(cmd, "Jobs", func(fs *pflag.FlagSet) {
		fs.BoolVar(&retry, "retry", false, "submit failed and missing shards again, and the merge")
	})
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		s.add(fs, "out", "DIR", "")
		fs.VarP(choice{&format, "format", table.Formats()}, "format", "o", "how to print: "+strings.Join(table.Formats(), ", "))
	})
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, args []string) error {
		if err := s.resolve(p); err != nil {
			return misused(cmd, err)
		}
		return status(p, cmd, record.Find(args[0], s.Config.Dir), retry, format)
	})
}

// status prints the state of each shard of the submission in dir. With retry, it submits failed and
// missing shards again.
func status(p *program, cmd *cobra.Command, dir string, retry bool, format string) error {
	s, err := cluster.Read(dir)
	if err != nil {
		return misused(cmd, err)
	}
	by, err := s.Of()
	if err != nil {
		return misused(cmd, err)
	}
	if retry {
		if err := installed(by); err != nil {
			return err
		}
	}
	states, unknown := by.States(runner(p), s)
	switch {
	case unknown != nil && retry:
		return exit.With(exit.Error, fmt.Errorf("the scheduler cannot be asked which jobs still wait, so nothing was submitted: %w", unknown), "try again when it answers")
	case unknown != nil:
		p.Warn("the scheduler cannot be asked, so the states are those of the shards' folders: %v", unknown)
	}
	list, err := s.Status(dir, states)
	if err != nil {
		return exit.With(exit.Error, err, "")
	}
	if err := cluster.Table(list, len(s.Groups) > 1).Write(p.out, format, p.style()); err != nil {
		return err
	}
	count := map[cluster.Phase]int{}
	for _, x := range list {
		count[x.Phase]++
	}
	var words []string
	for _, ph := range []cluster.Phase{cluster.Done, cluster.Running, cluster.Queued, cluster.Failed, cluster.Missing} {
		if count[ph] > 0 {
			words = append(words, fmt.Sprintf("%d %s", count[ph], ph))
		}
	}
	p.Note("%s: %s", plural(len(list), "shard"), strings.Join(words, ", "))
	lacking := count[cluster.Failed] + count[cluster.Missing]
	switch {
	case retry && s.Again(list):
		s.Rounds[len(s.Rounds)-1].Time = time.Now().UTC().Truncate(time.Second)
		return start(p, s, dir)
	case retry:
		p.Note("no shard failed or is missing, so nothing was submitted")
		return nil
	case lacking > 0:
		return exit.With(exit.Failures, fmt.Errorf("%s failed or missing", plural(lacking, "shard")), "rnnbench submit status "+dir+" --retry submits them again")
	}
	return nil
}
