package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/job"
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
		fs.BoolVar(&f.AllowFailures, "allow-failures", false, "exit with 0 despite wrong answers, if at least one is right")
	})
	progressFlag(p, cmd)
	completeGrid(cmd)
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		return verify(ctx, p, cmd, f, format)
	})
}

func verify(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, format string) error {
	f.Verified = true
	if err := f.resolve(p); err != nil {
		return misused(cmd, err)
	}
	j, err := job.Open(&f.Request, nil, p)
	if err != nil {
		return misused(cmd, err)
	}
	defer j.Close()
	if j.Agenda, err = j.Bench.Agenda(f.Config); err != nil {
		return misused(cmd, err)
	}
	q := j.Agenda
	f.Config.Measure = f.Config.Measure.Once()
	j.Bench.TellChoices(q.Specs())
	look, err := j.Bench.Forecast(ctx, q, f.Config.Measure)
	if err != nil {
		return misused(cmd, err)
	}
	p.Note("%s", look.Line(q.Summary))
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
	recs, err := j.Verify(ctx, progress.New(o, look))
	if len(recs) > 0 {
		if err := writeChecks(p, recs, format); err != nil {
			return err
		}
	}
	code, outcome := job.OutcomeOfChecks(recs, err, f.Config.Measure.OnError == "stop", f.AllowFailures)
	if code == exit.Interrupted {
		return exit.With(code, outcome, "")
	}
	if outcome != nil {
		return exit.With(code, outcome, job.Reasons(recs, format))
	}
	return nil
}

// writeChecks prints the outcome of each check.
func writeChecks(p *program, recs []record.Record, format string) error {
	for i := range recs {
		recs[i].Untime()
	}
	if format == "jsonl" {
		return table.JSONL(p.out, recs)
	}
	return table.Checks(recs).Write(p.out, format, p.style())
}
