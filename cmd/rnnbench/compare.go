package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/results/compare"
	"rnnbench/tuner/grid"
)

func (p *program) compareCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "compare BASE [RUN...] [flags]",
		Short:   "Say what became faster, slower, broke or was mended between runs",
		GroupID: "analyse",
		Long: `Compare sets runs beside a run before, point by point, each technique with itself: FASTER
and SLOWER differ by more than chance and by more than matters, SAME do not, and AMBG
needs more samples. NEW and GONE are in one run only; BROKEN had a result and has none,
FIXED the other way round. With --fail-on the exit code is 4 where there is such a point;
it is also 4 where the runs have nothing in common.

A RUN is a run's folder, its id, a results folder (its latest run), or - for records
on standard input; label=RUN names it in tables. Without any, the latest run counts.
Runs with the same label count as one of more samples. A machine's speed moves: runs of
both sides in turns tell a change from a slow moment, which two runs cannot.`,
		Example: `  rnnbench compare out/20261121T000300Z-cpu-ab12        # the latest run against this one
  rnnbench compare before=old after=new --fail-on slower,broken
  rnnbench compare old new --only slower,broken,ambg -o markdown
  rnnbench compare old new --where impl=cudnnstyle --min-effect 5%
  rnnbench compare old=a1 old=a2 old=a3 new=b1 new=b2 new=b3 --fail-on slower
  rnnbench compare old monday=a tuesday=b -o csv > week.csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("compare takes the run to compare with, and the runs to compare"), "rnnbench compare --help")
			}
			return nil
		},
		ValidArgsFunction: completeRuns,
	}
	s := &selection{}
	o := compare.Usual()
	effect, alpha, level := "2%", "5%", "95%"
	var failOn, only []string
	format := "table"
	s.flags(cmd)
	addGroup(cmd, "What counts", func(f *pflag.FlagSet) {
		f.StringVar(&effect, "min-effect", effect, "`PERCENT` of change that matters")
		f.StringVar(&alpha, "alpha", alpha, "`PERCENT` of comparisons that may call any unchanged point faster or slower")
		f.StringVar(&level, "confidence", level, "`PERCENT` of intervals that hold what they estimate")
		f.BoolVar(&o.Across, "across-devices", false, "compare runs although they are of different devices")
		f.StringSliceVar(&failOn, "fail-on", nil, "exit with 4 where a point is one of these `VERDICTS`, such as slower,broken")
	})
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.VarP(choice{&format, "format", table.Formats()}, "format", "o", "how to print: "+strings.Join(table.Formats(), ", "))
		f.StringSliceVar(&only, "only", nil, "list points with these `VERDICTS` alone; all are counted")
	})
	for _, name := range []string{"fail-on", "only"} {
		completeFlag(cmd, name, described(func() (list [][2]string) {
			for _, v := range compare.Verdicts() {
				list = append(list, [2]string{strings.ToLower(string(v)), ""})
			}
			return list
		}))
	}
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, args []string) error {
		bad, err := verdicts("fail-on", failOn)
		if err != nil {
			return misused(cmd, err)
		}
		listed, err := verdicts("only", only)
		if err != nil {
			return misused(cmd, err)
		}
		for _, v := range []struct {
			name, text string
			to         *float64
		}{{"min-effect", effect, &o.MinEffect}, {"alpha", alpha, &o.Alpha}, {"confidence", level, &o.Level}} {
			if *v.to, err = share(v.text); err != nil {
				return misused(cmd, fmt.Errorf("--%s: %w", v.name, err))
			}
		}
		if len(args) == 1 {
			dir, err := s.dir(p)
			if err != nil {
				return misused(cmd, err)
			}
			args = append(args, dir)
		}
		sets, err := s.readSets(p, cmd, args)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(sets, func(s results.Set) bool { return len(s.Records) == 0 }); i >= 0 {
			return &failure{exitChanged, fmt.Errorf("there is no record to compare in %s", args[i]), ""}
		}
		keepApart(sets, args)
		return p.compare(sets, o, listed, bad, format)
	})
}

// keepApart makes sure that only runs which were given the same label on the
// command line are taken for one.
func keepApart(sets []results.Set, args []string) {
	for i := range sets {
		if given := strings.HasPrefix(args[i], sets[i].Label+"=") && !exists(args[i]); given {
			continue
		}
		for n := 2; slices.ContainsFunc(sets[:i], func(s results.Set) bool { return s.Label == sets[i].Label }); n++ {
			label, _, _ := strings.Cut(sets[i].Label, " #")
			sets[i].Label = fmt.Sprintf("%s #%d", label, n)
		}
	}
}

// compare prints how the sets differ from the first.
func (p *program) compare(sets []results.Set, o compare.Options, only, bad []compare.Verdict, format string) error {
	sides := compare.Sides(sets)
	list, err := compare.Runs(sides[0], sides[1:], o)
	switch {
	case errors.Is(err, compare.ErrNothing):
		return &failure{exitChanged, err, "runs are compared where point, technique, knobs, device and way of measuring are the same"}
	case errors.Is(err, compare.ErrDevices):
		return usage(err, "--across-devices compares them all the same")
	case err != nil:
		return usage(err, "rnnbench compare --help")
	}
	for _, s := range sets[1:] {
		if s.Label != sets[0].Label {
			p.differences(sets[0], s)
		}
	}
	if err := table.Changes(list, o, only).Write(p.out, format, p.style()); err != nil {
		return err
	}
	var found []string
	for _, v := range bad {
		n := 0
		for i := range list {
			n += list[i].Count(v)
		}
		if n > 0 {
			found = append(found, fmt.Sprintf("%d %s", n, v))
		}
	}
	if found != nil {
		return &failure{exitChanged, fmt.Errorf("--fail-on: %s", strings.Join(found, ", ")), ""}
	}
	return nil
}

// differences warns of what besides the program may have changed times.
func (p *program) differences(a, b results.Set) {
	if a.Manifest.Environment.Tool.Go != "" && b.Manifest.Environment.Tool.Go != "" {
		if d := results.Diff(a.Manifest.Environment, b.Manifest.Environment); len(d) > 0 {
			p.warn("the environments of %s and %s differ: %s", a.Label, b.Label, strings.Join(d, "; "))
		}
	}
	for _, d := range a.Manifest.Devices {
		i := slices.IndexFunc(b.Manifest.Devices, func(e results.Device) bool { return e.Key == d.Key })
		if i < 0 {
			continue
		}
		const telling = 0.1 // what a peak moves from one run to the next
		e := b.Manifest.Devices[i]
		for _, v := range []struct {
			name, unit string
			was, is    *float64
		}{{"peak", "FLOP/s", d.Peak, e.Peak}, {"copy rate", "B/s", d.Bandwidth, e.Bandwidth}} {
			if v.was != nil && v.is != nil && (*v.is < *v.was*(1-telling) || *v.was < *v.is*(1-telling)) {
				p.warn("%s itself was another in %s and in %s: its %s was %s, then %s", d.Name, a.Label, b.Label, v.name,
					quantity.SI(*v.was, v.unit), quantity.SI(*v.is, v.unit))
			}
		}
	}
}

// verdicts reads the words of a flag.
func verdicts(flag string, words []string) ([]compare.Verdict, error) {
	var known []string
	for _, v := range compare.Verdicts() {
		known = append(known, strings.ToLower(string(v)))
	}
	var list []compare.Verdict
	for _, w := range words {
		i := slices.Index(known, strings.ToLower(w))
		if i < 0 {
			return nil, fmt.Errorf("--%s: %w", flag, grid.Unknown("verdict", w, known))
		}
		list = append(list, compare.Verdicts()[i])
	}
	return list, nil
}

// share reads a percentage, or a share where there is no percent sign.
func share(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0:
		return 0, fmt.Errorf("%q is not a percentage: write one such as 2%%", text)
	case percent:
		return v / 100, nil
	case v >= 1:
		return 0, fmt.Errorf("%q is not a share: did you mean %s%%?", text, text)
	}
	return v, nil
}
