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
)

func showCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show [RUN...] [flags]",
		Short:   "Print records as a table or in other formats",
		GroupID: "analyse",
		Long: `Show prints the records of runs, one per row, or one metric along two axes.

` + runArgs,
		Example: `  rnnbench show
  rnnbench show --where 'hidden>=512' --baseline cudnnstyle
  rnnbench show --pivot hidden,impl --metric speedup
  rnnbench show here=out there=out/20261121T000300Z-cuda-cd34 --by machine
  rnnbench show before=out/20261121T000300Z-cpu-ab12 after=out -o markdown
  rnnbench show -o benchfmt > new.txt && benchstat old.txt new.txt
  rnnbench show -o jsonl | jq .stats.median`,
		ValidArgsFunction: completeRuns,
	}
	s := &selection{}
	var format, baseline, pivot, metric, by string
	s.flags(cmd)
	addGroup(cmd, "Layout", func(f *pflag.FlagSet) {
		f.StringVar(&pivot, "pivot", "", "print one metric along two axes: `ROWS,COLUMNS`, such as hidden,impl")
		f.Var(choice{&by, "layout", []string{byMachine}}, "by", "compare what several machines measured: machine; per peak, per copy rate and per watt")
		f.StringVar(&metric, "metric", "flops", "`METRIC` of a pivot (rnnbench list metrics)")
	})
	formatFlags(p, cmd, &format, &baseline)
	completeFlag(cmd, "metric", metricCompletions)
	completeFlag(cmd, "baseline", implCompletions)
	completeFlag(cmd, "pivot", axisCompletions)
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, args []string) error {
		rows, columns, ok := strings.Cut(pivot, ",")
		rows, columns = strings.TrimSpace(rows), strings.TrimSpace(columns)
		switch {
		case pivot != "" && (!ok || rows == "" || columns == "" || strings.Contains(columns, ",")):
			return misused(cmd, fmt.Errorf("--pivot: %q is not two axes: write them as hidden,impl", pivot))
		case pivot != "" && by != "":
			return misused(cmd, fmt.Errorf("--pivot and --by exclude each other: --pivot hidden,device --metric percent has one number a machine"))
		case pivot == "" && cmd.Flags().Changed("metric"):
			return misused(cmd, fmt.Errorf("--metric needs --pivot, such as --pivot hidden,impl"))
		}
		sets, recs, err := s.read(p, cmd, args)
		if err != nil {
			return err
		}
		if err := knownBaseline(cmd, recs, baseline); err != nil {
			return err
		}
		if by != "" && slices.Contains(table.Formats(), format) {
			t, err := table.Machines(recs)
			if err != nil {
				return misused(cmd, err)
			}
			return t.Write(p.out, format, p.style())
		}
		if pivot == "" || format == "jsonl" || format == "benchfmt" {
			if err := records(p, recs, format, baseline); err != nil {
				return err
			}
			return showNodes(p, sets, format)
		}
		t, err := table.Pivot(recs, rows, columns, metric, baseline)
		if err != nil {
			return misused(cmd, err)
		}
		return t.Write(p.out, format, p.style())
	})
}

// byMachine is the value of --by.
const byMachine = "machine"

// showNodes prints, below a table, how far the machines of merged runs differ.
func showNodes(p *program, sets []record.Set, format string) error {
	for i := range sets {
		m := sets[i].Manifest.Merged
		warnNodes(p, m)
		if format != "table" && format != "markdown" {
			continue
		}
		if err := table.WriteLines(p.out, m.Lines(), 4, p.style()); err != nil {
			return err
		}
	}
	return nil
}
