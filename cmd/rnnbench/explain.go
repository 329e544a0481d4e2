package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device/cuda"
	"rnnbench/tuner"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/explain"
	"rnnbench/tuner/grid"
)

const explainLong = `Explain prints the schedule of each technique at one point:

  - operations by kind, FLOPs, bytes, memory, streams and waits
  - the critical path and the available parallelism
  - lower bounds on time, from the peak and the copy rate of this machine
  - for a persistent technique on a CPU, the cache that holds the weights, and the step
    time predicted by rnnbench model

On a GPU it also prints the kernels that a run launches, with registers and spills. For
each persistent layer it prints the kernel variant that runs and its source file. It
lists the expected time of every other variant, or why that variant cannot run. --machine
does so without the GPU; registers are then unknown. --passes prints what each lowering
pass found.

It prints the floor: the least time that exchanges, products, bytes through each memory and
launches take. It says which of them binds, and what would have to change. The floor needs
the machine's rates; rnnbench doctor measures those of a processor.

--run also runs each technique on a CPU and prints the measured time of its operations,
grouped by kind and size: share of a run, rate, and the time that the model predicts.
It says how much of a run is outside operations, and how long workers are idle. Timing
each operation makes runs somewhat longer; the difference is printed.

For several techniques, a last table compares them, to show why one is faster.

-o dump lists every operation. -o dot draws the operations for Graphviz.`

// explainFlags are the flags of explain.
type explainFlags struct {
	settings
	format, machine  string
	noLimits, passes bool
	run              bool
}

func explainCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "explain [flags]",
		Short:   "Show the schedule of one point: operations, kernels, streams, critical path",
		GroupID: "inside",
		Long:    explainLong,
		Example: `  rnnbench explain --point H=512,B=64,T=100,L=4
  rnnbench explain --cell gru --pass train -H 256 -B 8 -T 20 --impl cudnnstyle:fused=0,cudnnstyle
  rnnbench explain -H 4 -B 1 -T 3 --impl naive -o dump
  rnnbench explain -H 4 -B 1 -T 3 --layers 2 --impl cudnnstyle -o dot | dot -Tsvg > wave.svg
  rnnbench explain --run -H 512 -B 16 -T 100 --impl persistent,cudnnstyle
  rnnbench explain --machine h200 --point H=512,B=16,T=100 --precision bf16 --impl persistent`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := &explainFlags{format: "summary"}
	f.grid(cmd)
	f.device(cmd)
	addGroup(cmd, "Machine", func(fs *pflag.FlagSet) {
		machines := cuda.Machines()
		fs.Var(choice{&f.machine, "machine", machines}, "machine", "explain for a GPU that is not here, by `NAME`: "+strings.Join(machines, ", "))
	})
	f.source(cmd)
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		formats := []string{"summary", "dump", "dot", "json"}
		fs.VarP(choice{&f.format, "format", formats}, "format", "o", "what to print: "+strings.Join(formats, ", "))
		fs.BoolVar(&f.run, "run", false, "run the point on a CPU and print the time of each operation")
		fs.BoolVar(&f.noLimits, "no-limits", false, "skip the measurement of peak rates")
		fs.BoolVar(&f.passes, "passes", false, "print what each pass that lowers the schedule for a GPU found")
	})
	completeGrid(cmd)
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		return explainPoint(ctx, p, cmd, f)
	})
}

// explainPoint explains the point that flags name.
func explainPoint(ctx context.Context, p *program, cmd *cobra.Command, f *explainFlags) error {
	f.Verified = true // as where sweep runs it
	if err := f.resolve(p); err != nil {
		return misused(cmd, err)
	}
	b, err := openExplained(p, f)
	if err != nil {
		return misused(cmd, err)
	}
	defer b.Close()
	if err := f.checkRun(b); err != nil {
		return misused(cmd, err)
	}
	layouts, err := b.OnePoint(f.Config.Grid, b.Vocabulary())
	if err != nil {
		return misused(cmd, err)
	}
	b.TellChoices(specsOf(layouts))
	if f.format == "dump" || f.format == "dot" {
		return dump(p, cmd, layouts, f.format)
	}
	o := bench.Explaining{Limits: !f.noLimits && f.machine == "", Bands: !f.noLimits, Run: f.run}
	all, err := bench.Explain(ctx, b, layouts, o, f.Config.Measure)
	if err != nil {
		return err
	}
	if f.format == "json" {
		return p.json(all)
	}
	return printExplanations(p, cmd, all, f.passes, b.Info.Name)
}

// printExplanations prints each explanation as text, then a table that compares them.
func printExplanations(p *program, cmd *cobra.Command, all []*explain.Explanation, passes bool, device string) error {
	for i, e := range all {
		if passes && len(e.Passes) == 0 && e.Declined == nil {
			return misused(cmd, fmt.Errorf("--passes: %s has no lowering passes: name a GPU with --device cuda:0 or --machine %s", device, cuda.Machines()[0]))
		}
		if i > 0 {
			if _, err := fmt.Fprintln(p.out); err != nil {
				return err
			}
		}
		if err := e.Write(letters(p, p.out), passes, p.style()); err != nil {
			return err
		}
	}
	beside := explain.Compare(all)
	if passes || beside == nil {
		return nil
	}
	if _, err := fmt.Fprintln(p.out); err != nil {
		return err
	}
	return beside.Write(p.out, "table", p.style())
}

// openExplained opens the device that flags name, or the description of the GPU of --machine.
func openExplained(p *program, f *explainFlags) (*bench.Bench, error) {
	if f.machine == "" {
		return bench.Open(f.Options, p)
	}
	if f.given("device") {
		return nil, errors.New("--machine names a GPU that is not here, and --device one that is: omit one of them")
	}
	d, err := cuda.Machine(f.machine)
	if err != nil {
		return nil, err
	}
	return bench.New(d, f.Options, p)
}

// specsOf returns the techniques of layouts.
func specsOf(layouts []*tuner.Layout) []grid.Spec {
	var list []grid.Spec
	for _, l := range layouts {
		list = append(list, l.Spec)
	}
	return list
}

// dump writes the whole schedule of the only layout. A second layout is an error.
func dump(p *program, cmd *cobra.Command, layouts []*tuner.Layout, format string) error {
	if len(layouts) > 1 {
		return misused(cmd, fmt.Errorf("-o %s writes one schedule, but the flags name %d techniques: name one, as in --impl naive", format, len(layouts)))
	}
	l := layouts[0]
	if l.Reason != "" {
		return errors.New(l.Reason)
	}
	if format == "dot" {
		return l.Schedule.DOT(p.out)
	}
	return l.Schedule.Dump(p.out)
}

// checkRun returns an error for --run where operations cannot be measured.
func (f *explainFlags) checkRun(b *bench.Bench) error {
	switch {
	case !f.run:
		return nil
	case b.Info.Name != "cpu":
		return fmt.Errorf("--run measures operations on CPUs only, not on %s: nsys and ncu measure the kernels of a GPU", b.Info.Name)
	case f.passes || f.format == "dump" || f.format == "dot":
		return errors.New("--run goes with -o summary and -o json: omit --passes and other formats")
	}
	return nil
}
