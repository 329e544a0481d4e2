package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/record/files"
	"rnnbench/report"
	"rnnbench/tuner/bench"
)

func reportCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "report [RUN...] -f FILE [flags]",
		Short:   "Write a shareable HTML report",
		GroupID: "analyse",
		Long: `Report writes one self-contained HTML file about runs. It shows:

  - the fastest technique at each point, and its lead
  - figures of throughput, speed-ups and rooflines
  - the papers' tables next to the measured numbers
  - each point without a result, and the reason
  - the machine, and the commands that repeat the measurements

` + runArgs + `
If several runs measured the same points, the report adds their labels.`,
		Example: `  rnnbench report -f report.html
  rnnbench report results/cpu-intel-xeon-2t/* -f papers.html
  rnnbench report before=old after=new --title 'Two compilers' -f compilers.html
  rnnbench report --where cell=lstm --baseline cudnnstyle -f lstm.html`,
		ValidArgsFunction: completeRuns,
	}
	s := &selection{}
	var o report.Options
	var file string
	s.flags(cmd)
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVarP(&file, "file", "f", "", "output `FILE`; - for stdout")
		f.StringVar(&o.Title, "title", "", "title `TEXT` (default: a summary of the runs)")
		f.StringVar(&o.Baseline, "baseline", "naive", "baseline `TECHNIQUE` of speed-ups")
	})
	_ = cmd.MarkFlagFilename("file", "html") // the flag is there
	completeFlag(cmd, "baseline", implCompletions)
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, args []string) error {
		switch ext := strings.ToLower(filepath.Ext(file)); {
		case file == "" && terminal(p.out):
			return misused(cmd, errors.New("no output file: add -f report.html"))
		case file != "" && file != "-" && ext != ".html" && ext != ".htm":
			return misused(cmd, fmt.Errorf("-f %s: the report is HTML: use the ending .html", file))
		}
		sets, err := s.readSets(p, cmd, args)
		if err != nil {
			return err
		}
		recs := quantity.Merge(sets)
		if err := knownBaseline(cmd, recs, o.Baseline); err != nil {
			return err
		}
		o.Settings = func(r *record.Record) string { return bench.FormatSpec(r.Impl.Name, r.Impl.Knobs, r.Point, r.Device) }
		write := func(w io.Writer) error { return report.Write(w, sets, recs, o) }
		if file == "" || file == "-" {
			return write(p.out)
		}
		done := p.Busy("drawing " + file)
		err = files.Write(file, write)
		done()
		if err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		size := ""
		if info.Mode().IsRegular() { // a pipe has no size
			size = ", " + quantity.Bytes(float64(info.Size()))
		}
		p.Note("wrote %s%s", file, size)
		return nil
	})
}

// computed reports whether a run belongs to an experiment that measures nothing.
func computed(s record.Set) bool { return s.Manifest.Label != "" && s.Manifest.Scope.Records == 0 }
