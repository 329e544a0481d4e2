package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

const plotLong = `Plot draws records as lines, speed-ups, heatmaps, winner maps or a roofline. The file
name's ending selects the format.

` + runArgs

const plotExample = `  rnnbench plot -f flops.svg
  rnnbench plot --x batch --panel hidden -f batch.svg -f batch.png
  rnnbench plot --kind winner --x batch --rows hidden -f winner.pdf
  rnnbench plot --kind speedup --baseline naive -f speedup.svg
  rnnbench plot --y latency --x batch -f latency.svg
  rnnbench plot --kind roofline --where 'pass=forward' -f roofline.svg
  rnnbench plot -f - | display`

func plotCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "plot [RUN...] -f FILE [flags]",
		Short:             "Draw figures from records",
		GroupID:           "analyse",
		Long:              plotLong,
		Example:           plotExample,
		ValidArgsFunction: completeRuns,
	}
	s := &selection{}
	spec := plots.Spec{Kind: "lines"}
	var files []string
	s.flags(cmd)
	addGroup(cmd, "Figure", func(f *pflag.FlagSet) {
		f.Var(choice{&spec.Kind, "kind of figure", plots.Kinds()}, "kind", strings.Join(plots.Kinds(), ", "))
		f.StringVarP(&spec.X, "x", "x", "", "x `AXIS` (default: the first that varies)")
		f.StringVarP(&spec.Y, "y", "y", "", "y `METRIC` (default: flops, or speedup)")
		f.StringVar(&spec.Rows, "rows", "", "y `AXIS` of a heatmap or winner map")
		f.StringVar(&spec.Panel, "panel", "", "`AXIS` with one panel per value")
		f.StringVar(&spec.Series, "series", "", "`AXIS` with one line per value (default: impl)")
		f.StringVar(&spec.Baseline, "baseline", "", "baseline `TECHNIQUE` of speed-ups (default: naive)")
		f.Var(choice{&spec.Scale, "scale", []string{"linear", "log"}}, "scale", "linear or log (default: chosen from the data)")
		f.StringVar(&spec.Title, "title", "", "title `TEXT`")
	})
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringArrayVarP(&files, "file", "f", nil, "output `FILE`: .svg, .png or .pdf; - for SVG on stdout; repeatable")
	})
	_ = cmd.MarkFlagFilename("file", plots.Formats()...) // the flag is there
	for _, name := range []string{"x", "rows", "panel", "series"} {
		completeFlag(cmd, name, axisCompletions)
	}
	completeFlag(cmd, "y", metricCompletions)
	completeFlag(cmd, "baseline", implCompletions)
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, args []string) error {
		if len(files) == 0 {
			if terminal(p.out) {
				return misused(cmd, errors.New("no output file: add -f figure.svg"))
			}
			files = []string{"-"}
		}
		for i, file := range files {
			if slices.ContainsFunc(files[:i], func(f string) bool { return filepath.Clean(f) == filepath.Clean(file) }) {
				return misused(cmd, fmt.Errorf("-f %s is given twice: omit one", file))
			}
			if format := strings.ToLower(strings.TrimPrefix(filepath.Ext(file), ".")); file != "-" && !slices.Contains(plots.Formats(), format) {
				return misused(cmd, fmt.Errorf("-f %s: unknown format: use one of the endings .%s", file, strings.Join(plots.Formats(), ", .")))
			}
		}
		sets, recs, err := s.read(p, cmd, args)
		if err != nil {
			return err
		}
		if err := checkDrawable(recs, spec); err != nil {
			return err
		}
		spec.Machine, spec.Copy, spec.Roofs = machine(sets)
		figure, err := plots.Draw(recs, spec)
		if err != nil {
			return misused(cmd, err)
		}
		for _, file := range files {
			if file == "-" {
				if err := plots.Write(p.out, figure, "svg"); err != nil {
					return err
				}
				continue
			}
			if err := plots.Save(file, figure); err != nil {
				return err
			}
			p.Note("wrote %s", file)
		}
		return nil
	})
}

// checkDrawable returns an error if no record has a value of the metric that spec draws.
func checkDrawable(recs []record.Record, spec plots.Spec) error {
	name := cmp.Or(spec.Y, "flops")
	if spec.Kind == "winner" || spec.Kind == "roofline" || spec.Kind == "speedup" {
		name = "time"
	}
	m, err := quantity.MeasureOf(name)
	if err != nil || slices.ContainsFunc(recs, func(r record.Record) bool { _, ok := m.Of(&r, &r); return ok }) {
		return nil // Draw reports an unknown name
	}
	what := "result"
	if slices.ContainsFunc(recs, func(r record.Record) bool { return r.Seconds() > 0 }) {
		what = m.Title
	}
	return exit.Misuse(fmt.Errorf("none of the %s has a value to draw: %s", plural(len(recs), "record"), what), "rnnbench show prints the status of each record")
}

// machine returns the name, copy rate in bytes/s and peaks by precision of the device that all runs
// share. It returns "", 0 and nil if they differ.
func machine(sets []record.Set) (name string, copyRate float64, roofs map[string]float64) {
	for i, s := range sets {
		if len(s.Manifest.Devices) == 0 {
			return "", 0, nil
		}
		d := s.Manifest.Devices[0]
		if i > 0 && d.Name != name {
			return "", 0, nil
		}
		name, roofs = d.Name, plots.RoofsOf(d)
		copyRate = max(copyRate, d.CopyRate())
	}
	return name, copyRate, roofs
}
