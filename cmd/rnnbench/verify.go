package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/progress"
)

func verifyCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "verify [flags]",
		Short:   "Check techniques against the float64 reference, without timing",
		GroupID: "measure",
		Long: `Verify runs every technique once at every point of a grid. It checks each tensor of
the answer against the float64 reference: outputs, states and, in training, gradients.
For a large problem, verify checks each step from the run's own previous state, or
compares the run with a verified one; the column method says which. Verify times nothing
and saves nothing. It exits with 3 if an answer is wrong.`,
		Example: `  rnnbench verify --preset quick
  rnnbench verify --cell all --pass forward,train -H 33 -B 3 -T 7
  rnnbench verify --impl cudnnstyle:fused=0,cudnnstyle:overlap=0 --layers 3
  rnnbench verify --simd generic --threads 1 -o json`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := &sweepFlags{}
	f.grid(cmd)
	f.rivalFlag(cmd)
	f.measure(cmd, "seed", "data", "on-error")
	f.device(cmd)
	f.source(cmd)
	format := "table"
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		formats := append(table.Formats(), "jsonl")
		fs.VarP(choice{&format, "format", formats}, "format", "o", "how to print: "+strings.Join(formats, ", "))
		fs.BoolVar(&f.allowFailures, "allow-failures", false, "exit with 0 despite wrong answers, if at least one is right")
	})
	progressFlag(p, cmd)
	completeGrid(cmd)
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		return verify(ctx, p, cmd, f, format)
	})
}

func verify(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, format string) error {
	c, err := f.resolve(p)
	if err != nil {
		return misused(cmd, err)
	}
	b, err := p.open(&f.settings, c)
	if err != nil {
		return misused(cmd, err)
	}
	defer b.Close()
	q, err := planFor(p, c, b)
	if err != nil {
		return misused(cmd, err)
	}
	tellChoices(p, q.Specs())
	once := c.Measure.Once()
	look, err := forecast(ctx, p, b, q, once)
	if err != nil {
		return misused(cmd, err)
	}
	p.note("%s", look.Line(q.Summary))
	o := p.progressOptions(q.Records())
	o.Outcome = func(r *record.Record) string {
		if v := r.Verify; v != nil && r.Status == record.OK {
			s := fmt.Sprintf("ok: error of %s is %.2g, tolerance %.2g", v.Tensor, v.Error, v.Tolerance)
			if v.Kinks != nil && v.Kinks.Near > 0 {
				s += "; " + v.Kinks.String()
			}
			return s
		}
		return progress.Outcome(r)
	}
	show := progress.New(o, look)
	ctx, stop := interruptible(ctx, show)
	defer stop()
	var recs []record.Record
	j := job{bench: b, plan: q, measure: once, show: show, emit: func(r *record.Record) error {
		recs = append(recs, *r)
		return nil
	}}
	err = j.run(ctx)
	show.Close()
	if len(recs) > 0 {
		if err := p.verdicts(recs, format); err != nil {
			return err
		}
	}
	code, outcome := verdictCode(recs, err, c.Measure.OnError == "stop", f.allowFailures)
	if code == exitInterrupted {
		return &failure{code, outcome, ""}
	}
	if outcome != nil {
		return &failure{code, outcome, reasons(recs, format)}
	}
	return nil
}

// verdictCode is exitCode, but returns exitFailures also if every answer is wrong.
func verdictCode(recs []record.Record, err error, stopped, allow bool) (int, error) {
	code, outcome := exitCode(recs, err, stopped, allow)
	if code == exitError && slices.ContainsFunc(recs, func(r record.Record) bool { return r.Status.Wrong() }) {
		code = exitFailures
	}
	return code, outcome
}

// verdicts prints the outcome of each check.
func (p *program) verdicts(recs []record.Record, format string) error {
	for i := range recs {
		recs[i].Untime()
	}
	if format == "jsonl" {
		return table.JSONL(p.out, recs)
	}
	return table.Checks(recs).Write(p.out, format, p.style())
}
