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
	"rnnbench/report"
	"rnnbench/results"
	"rnnbench/results/files"
)

func (p *program) reportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "report [RUN...] -f FILE [flags]",
		Short:   "Make one page of runs to send to somebody",
		GroupID: "analyse",
		Long: `Report writes one HTML file about runs: what is the fastest at each point and by how
much, throughput and speed-ups as figures, rooflines, the papers' tables beside what was
measured, every point without a result and why, the machine, and the commands that
measure it all again. The file needs no other and asks for none.

` + runArgs + `
Where runs measured the same, their labels tell them apart.`,
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
		f.StringVarP(&file, "file", "f", "", "`FILE` to write; - is stdout")
		f.StringVar(&o.Title, "title", "", "`TEXT` above the page (default what was measured)")
		f.StringVar(&o.Baseline, "baseline", "naive", "`TECHNIQUE` that speed-ups are over")
	})
	_ = cmd.MarkFlagFilename("file", "html") // the flag is there
	completeFlag(cmd, "baseline", implCompletions)
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, args []string) error {
		switch ext := strings.ToLower(filepath.Ext(file)); {
		case file == "" && terminal(p.out):
			return misused(cmd, errors.New("there is no file to write: add -f report.html"))
		case file != "" && file != "-" && ext != ".html" && ext != ".htm":
			return misused(cmd, fmt.Errorf("-f %s: the page is HTML: name it .html", file))
		}
		sets, err := s.readSets(p, cmd, args)
		if err != nil {
			return err
		}
		recs := merge(sets)
		if err := knownBaseline(cmd, recs, o.Baseline); err != nil {
			return err
		}
		o.Settings = func(r *results.Record) string { return spelledOut(r.Impl.Name, r.Impl.Knobs, r.Point, r.Device) }
		write := func(w io.Writer) error { return report.Write(w, sets, recs, o) }
		if file == "" || file == "-" {
			return write(p.out)
		}
		done := p.busy(late, "drawing "+file)
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
		if info.Mode().IsRegular() { // of a pipe nothing is left
			size = ", " + quantity.Bytes(float64(info.Size()))
		}
		p.note("wrote %s%s", file, size)
		return nil
	})
}

// computed says whether a run is of an experiment that measures nothing.
func computed(s results.Set) bool { return s.Manifest.Label != "" && s.Manifest.Plan.Records == 0 }
