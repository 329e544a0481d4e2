package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/impl"
	"rnnbench/internal/exit"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/report/site"
)

const siteLong = `Site writes a folder of HTML pages about all runs in the folders RUN, with all folders inside
them. The default is the results folder. The site has:

  - an index, with a search of layers by shape
  - a page for each machine, with its history
  - a page for each experiment of a paper, with its claims, tables and figures
  - a page for each layer: what each technique takes on each machine
  - a page for each technique and each run

Each measured number leads to its record, and ratios and means to the records that they
are of. The pages need no server: open index.html. The same runs give the same files. A
folder with other files is refused, unless it holds an earlier site.`

const siteExample = `  rnnbench site results/ -o site
  rnnbench site nightly/ --where precision=bf16 -o site
  rnnbench site --title 'Our machines' -o public`

func siteCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "site [RUN...] -o DIR [flags]",
		Short:             "Write a web site of all runs",
		GroupID:           "analyse",
		Long:              siteLong,
		Example:           siteExample,
		ValidArgsFunction: completeRuns,
	}
	s := &selection{}
	var o site.Options
	var dir string
	s.flags(cmd)
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVarP(&dir, "output", "o", "", "write the site into the folder `DIR`")
		f.StringVar(&o.Title, "title", "", "title `TEXT` of the index (default: rnnbench results)")
	})
	_ = cmd.MarkFlagDirname("output") // the flag is there
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, args []string) error {
		if dir == "" {
			return misused(cmd, errors.New("no folder for the site: add -o site"))
		}
		if err := site.Fits(dir); err != nil { // before all runs are read
			return exit.With(exit.Error, err, "")
		}
		sets, err := siteRuns(p, s, cmd, args)
		if err != nil {
			return err
		}
		o.Idea = techniqueIdea
		done := p.Busy("writing " + dir)
		w, err := site.Write(dir, sets, o)
		done()
		if err != nil {
			return exit.With(exit.Error, err, "")
		}
		p.Note("wrote %s, %s", plural(w.Pages, "page"), quantity.Bytes(float64(w.Bytes)))
		p.Note("open %s", filepath.Join(dir, "index.html"))
		return nil
	})
}

// siteRuns reads the runs of a site, each with its selected records. Runs of experiments that measure nothing
// count, too.
func siteRuns(p *program, s *selection, cmd *cobra.Command, args []string) ([]record.Set, error) {
	if err := s.resolve(p); err != nil {
		return nil, misused(cmd, err)
	}
	if len(args) == 0 {
		args = []string{s.Config.Dir}
	}
	if i := slices.Index(args, ""); i >= 0 {
		return nil, misused(cmd, errors.New("the name of a run is empty: write a name, or leave the argument out"))
	}
	sets, err := s.below(p, args)
	if err != nil {
		return nil, err
	}
	if _, err := s.choose(cmd, sets); err != nil {
		return nil, err
	}
	selected := len(s.where) > 0 || s.filter != ""
	sets = slices.DeleteFunc(sets, func(s record.Set) bool { return len(s.Records) == 0 && (selected || !computed(s)) })
	if len(sets) == 0 {
		return nil, exit.With(exit.Error, fmt.Errorf("no runs with records in %s", strings.Join(args, ", ")), "name a folder that holds runs, such as results/")
	}
	return sets, nil
}

// techniqueIdea is the idea of a technique in one line; "": it is a rival.
func techniqueIdea(name string) string {
	if x := impl.Lookup(name); x != nil {
		return x.Doc()
	}
	return ""
}
