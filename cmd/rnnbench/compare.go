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

	"rnnbench/internal/exit"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/record/compare"
	"rnnbench/tuner/grid"
)

const compareLong = `Compare compares runs with a base run, point by point and technique by technique.
Each point gets one verdict:

  FASTER, SLOWER  the change is significant and at least --min-effect
  SAME            the interval of the change is within --min-effect
  AMBG            the result is ambiguous and needs more runs
  NEW, GONE       only one side has the point
  BROKEN          the point had a result before and has none now
  FIXED           the point had no result before and has one now

The exit code is 4 if a point has a verdict named by --fail-on, or if the runs share
no points.

` + runArgs + `
To give one side several runs, write A1,A2,A3 or repeat its label. The samples are then
the medians of the runs. A single run per side cannot separate a change from drift of
the machine, so only large changes get a verdict.

With --ab, compare alternates runs of two programs. BASE and NEW are paths of rnnbench,
and the command after -- is the sweep for both. Runs are saved under out/.`

const compareExample = `  rnnbench compare --ab old/rnnbench bin/rnnbench -- sweep --preset quick
  rnnbench compare out/20261121T000300Z-cpu-ab12  # the latest against this
  rnnbench compare before=old after=new --fail-on slower,broken
  rnnbench compare old new --only slower,broken,ambg -o markdown
  rnnbench compare old new --where impl=cudnnstyle --min-effect 5%
  rnnbench compare old=a1,a2,a3 new=b1,b2,b3 --fail-on slower
  rnnbench compare old monday=a tuesday=b -o csv > week.csv
  rnnbench compare old new -o junit --fail-on slower,broken > results.xml
  rnnbench compare old new -o benchfmt | benchstat -col run -`

func compareCommand(p *program) *cobra.Command {
	f := &abFlags{}
	cmd := &cobra.Command{
		Use:     "compare BASE [RUN...] [flags]",
		Short:   "Show what got faster, slower, broken or fixed",
		GroupID: "analyse",
		Long:    compareLong,
		Example: compareExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.on {
				return f.check(cmd.ArgsLenAtDash(), args)
			}
			if cmd.ArgsLenAtDash() >= 0 || cmd.Flags().Changed("runs") || cmd.Flags().Changed("seed") {
				return exit.Misuse(errors.New("--runs, --seed and a command after -- need --ab"), "rnnbench compare --help")
			}
			if len(args) == 0 {
				return exit.Misuse(errors.New("compare needs a base run"), "rnnbench compare --help")
			}
			return nil
		},
		ValidArgsFunction: completeRuns,
	}
	s := &selection{}
	v := &verdictFlags{}
	s.flags(cmd)
	f.flags(cmd)
	v.judging(cmd)
	addGroup(cmd, "Verdicts", func(f *pflag.FlagSet) {
		f.BoolVar(&v.options.Across, "across-devices", false, "compare runs from different devices")
	})
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		v.format = "table"
		f.VarP(choice{&v.format, "format", changeFormats()}, "format", "o", "how to print: "+strings.Join(changeFormats(), ", "))
		f.StringSliceVar(&v.only, "only", nil, "list only points with these `VERDICTS`; counts cover all points")
	})
	completeVerdicts(cmd, "only")
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return compareRuns(ctx, p, cmd, args, s, f, v)
	})
}

// verdictFlags are the flags that say what counts as a change and what is listed.
type verdictFlags struct {
	options              compare.Options
	effect, alpha, level string
	failOn, only         []string
	format               string
}

// judging adds the flags that say what counts as a change.
func (v *verdictFlags) judging(cmd *cobra.Command) {
	*v = verdictFlags{options: compare.Usual(), effect: "2%", alpha: "5%", level: "95%"}
	addGroup(cmd, "Verdicts", func(f *pflag.FlagSet) {
		f.StringVar(&v.effect, "min-effect", v.effect, "smallest relevant change in `PERCENT`")
		f.StringVar(&v.alpha, "alpha", v.alpha, "family-wise false-positive rate in `PERCENT`")
		f.StringVar(&v.level, "confidence", v.level, "confidence level of intervals in `PERCENT`")
		f.StringSliceVar(&v.failOn, "fail-on", nil, "exit with 4 if a point has one of these `VERDICTS`, such as slower,broken")
	})
	completeVerdicts(cmd, "fail-on")
}

func completeVerdicts(cmd *cobra.Command, flag string) {
	completeFlag(cmd, flag, described(func() (list [][2]string) {
		for _, verdict := range compare.Verdicts() {
			list = append(list, [2]string{strings.ToLower(string(verdict)), ""})
		}
		return list
	}))
}

// parse reads the flags. It returns the verdicts of --fail-on.
func (v *verdictFlags) parse() (bad []compare.Verdict, err error) {
	if err := v.percentages(); err != nil {
		return nil, err
	}
	return verdicts("fail-on", v.failOn)
}

// percentages reads the flags that are percentages.
func (v *verdictFlags) percentages() (err error) {
	o := &v.options
	for _, x := range []struct {
		name, text string
		to         *float64
	}{{"min-effect", v.effect, &o.MinEffect}, {"alpha", v.alpha, &o.Alpha}, {"confidence", v.level, &o.Level}} {
		if *x.to, err = share(x.text); err != nil {
			return fmt.Errorf("--%s: %w", x.name, err)
		}
	}
	return nil
}

// compareRuns measures the runs of --ab, if asked to, and compares the runs.
func compareRuns(ctx context.Context, p *program, cmd *cobra.Command, args []string, s *selection, f *abFlags, v *verdictFlags) error {
	bad, err := v.parse()
	if err != nil {
		return misused(cmd, err)
	}
	listed, err := verdicts("only", v.only)
	if err != nil {
		return misused(cmd, err)
	}
	if err := s.resolve(p); err != nil {
		return misused(cmd, err)
	}
	dir := s.Config.Dir
	switch {
	case f.on:
		if args, err = f.run(ctx, p, dir); err != nil {
			return err
		}
	case len(args) == 1:
		args = append(args, dir)
	}
	args, side := record.FindSides(args, dir)
	sets, err := s.readSets(p, cmd, args)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(sets, func(s record.Set) bool { return len(s.Records) == 0 }); i >= 0 {
		return exit.With(exit.Changed, fmt.Errorf("no records to compare in %s", args[i]), "")
	}
	if run := compare.OnBothSides(sets, side); run != "" {
		p.Warn("both sides are run %s: a run compared with itself shows no change", run)
	}
	compare.KeepApart(sets, side)
	return p.compare(sets, v.options, listed, bad, v.format)
}

// compare prints how the sets differ from the first.
func (p *program) compare(sets []record.Set, o compare.Options, only, bad []compare.Verdict, format string) error {
	sides := compare.Sides(sets)
	list, err := changes(sides, o)
	if err != nil {
		return err
	}
	for _, side := range sides[1:] {
		for _, d := range table.Differences(sets[0], side.Runs[0]) {
			p.Warn("%s", d)
		}
	}
	switch format {
	case "junit":
		err = table.JUnit(p.out, list, bad)
	case "benchfmt":
		err = table.BenchfmtOf(p.out, sets)
	default:
		err = table.Changes(list, o, only).Write(p.out, format, p.style())
	}
	if err != nil {
		return err
	}
	return failed(list, bad)
}

// changes compares sides with the first of them.
func changes(sides []compare.Side, o compare.Options) ([]compare.Comparison, error) {
	list, err := compare.Runs(sides[0], sides[1:], o)
	switch {
	case errors.Is(err, compare.ErrNothing):
		err = exit.With(exit.Changed, err, "records must agree in point, technique, knobs, device and measuring mode")
	case errors.Is(err, compare.ErrDevices):
		err = exit.Misuse(err, "add --across-devices to compare different devices")
	case err != nil:
		err = exit.Misuse(err, "rnnbench compare --help")
	}
	return list, err
}

// failed returns an error if a point has one of the verdicts of --fail-on.
func failed(list []compare.Comparison, bad []compare.Verdict) error {
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
		return exit.With(exit.Changed, fmt.Errorf("--fail-on: %s", strings.Join(found, ", ")), "")
	}
	return nil
}

// changeFormats are the formats of comparisons.
func changeFormats() []string { return append(table.Formats(), "junit", "benchfmt") }

// verdicts parses the verdicts of a flag, in upper or lower case.
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

// share parses a percentage, or a share below 1 if the text has no percent sign.
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
