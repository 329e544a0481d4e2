package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/safe"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// example is a point at which a schedule is short and every knob has a meaning.
func example() results.Point {
	return results.Point{Cell: "lstm", Pass: "train", Hidden: 512, Input: 512, Layers: 4, Batch: 64, Steps: 100, Precision: "fp32"}
}

const explainLong = `Explain prints the schedule of each technique at one point:

  - operations by kind, FLOPs, bytes, memory, streams and waits
  - the critical path and the available parallelism
  - lower bounds on time, from the peak and the copy rate of this machine
  - for a persistent technique, the cache that holds the weights, and the step time
    predicted by rnnbench model

-o dump lists every operation. -o dot draws the operations for Graphviz.`

func (p *program) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "explain [flags]",
		Short:   "Show the schedule of one point: operations, streams, waits, critical path",
		GroupID: "inside",
		Long:    explainLong,
		Example: `  rnnbench explain --point H=512,B=64,T=100,L=4
  rnnbench explain --cell gru --pass train -H 256 -B 8 -T 20 --impl cudnnstyle:fused=0,cudnnstyle
  rnnbench explain -H 4 -B 1 -T 3 --impl naive -o dump
  rnnbench explain -H 4 -B 1 -T 3 --layers 2 --impl cudnnstyle -o dot | dot -Tsvg > wave.svg`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var s settings
	s.grid(cmd)
	s.device(cmd)
	s.source(cmd)
	format := "summary"
	var noLimits bool
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		formats := []string{"summary", "dump", "dot", "json"}
		f.VarP(choice{&format, "format", formats}, "format", "o", "what to print: "+strings.Join(formats, ", "))
		f.BoolVar(&noLimits, "no-limits", false, "skip the measurement of peak rates")
	})
	completeGrid(cmd)
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, _ []string) error {
		c, err := s.resolve(p)
		if err != nil {
			return misused(cmd, err)
		}
		b, err := p.open(&s, c)
		if err != nil {
			return misused(cmd, err)
		}
		defer b.Close()
		layouts, err := b.onePoint(c.Grid, b.vocabulary())
		if err != nil {
			return misused(cmd, err)
		}
		p.tellChoices(specsOf(layouts))
		if format == "dump" || format == "dot" {
			return p.dump(cmd, layouts, format)
		}
		if !noLimits {
			if err := p.measureBench(b); err != nil {
				return err
			}
			if slices.ContainsFunc(layouts, persistent) {
				if err := p.measureModel(b); err != nil {
					return err
				}
			}
		}
		var all []explanation
		for _, l := range layouts {
			e, err := b.explain(l)
			if err != nil {
				return err
			}
			all = append(all, e)
		}
		if format == "json" {
			return p.json(all)
		}
		for i, e := range all {
			if i > 0 {
				if _, err := fmt.Fprintln(p.out); err != nil {
					return err
				}
			}
			if err := p.explanation(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// onePoint lays out the only point that a request names, with every technique.
func (b *bench) onePoint(r grid.Request, v grid.Vocabulary) ([]*tuner.Layout, error) {
	g, err := grid.New(r, v)
	if err != nil {
		return nil, err
	}
	points, err := g.Points()
	if err != nil {
		return nil, err
	}
	if len(points) > 1 {
		return nil, fmt.Errorf("the flags name %d points, such as %v and %v: name one, as in --point H=512,B=32,T=50", len(points), points[0], points[1])
	}
	var list []*tuner.Layout
	for _, s := range g.Specs() {
		if s.Name == referenceName {
			problem, err := tuner.Problem(points[0])
			if err != nil {
				return nil, err
			}
			list = append(list, &tuner.Layout{Point: points[0], Spec: s, Problem: problem})
			continue
		}
		l, err := b.layOut(points[0], s)
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

// specsOf are the techniques of layouts.
func specsOf(layouts []*tuner.Layout) []grid.Spec {
	var list []grid.Spec
	for _, l := range layouts {
		list = append(list, l.Spec)
	}
	return list
}

// dump writes the whole schedule of the only technique.
func (p *program) dump(cmd *cobra.Command, layouts []*tuner.Layout, format string) error {
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

// An explanation is what is known of a layout without running it.
type explanation struct {
	Point       results.Point `json:"point"`
	Impl        string        `json:"impl"`
	Label       string        `json:"label"`
	Knobs       knob.Params   `json:"knobs"`
	Declined    *string       `json:"declined"`
	FLOPs       int64         `json:"flops"`
	Executed    int64         `json:"flops_executed"`
	Traffic     int64         `json:"bytes"`
	Memory      int64         `json:"mem_bytes"`
	Streams     int           `json:"streams"`
	Operations  int           `json:"ops"`
	Waits       int           `json:"waits"`
	Prepared    int           `json:"prepare_ops"`
	Kinds       []kind        `json:"kinds"`
	Critical    int64         `json:"critical_flops"`
	Chain       int           `json:"critical_ops"`
	Parallelism float64       `json:"parallelism"`
	Peak        *float64      `json:"peak_flops_per_s"`
	Copy        *float64      `json:"copy_bytes_per_s"`
	AtPeak      *float64      `json:"at_peak_s"`
	AtCopy      *float64      `json:"at_copy_s"`
	Predicted   *prediction   `json:"predicted"` // of a persistent technique

	settings string // the technique with those that are no defaults
}

// A kind counts the operations of one kind.
type kind struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	FLOPs int64  `json:"flops"`
	Bytes int64  `json:"bytes"`
}

// persistent says whether l keeps its recurrent weights in caches, so that the
// model speaks of it.
func persistent(l *tuner.Layout) bool { return l.Spec.Name == "persistent" && l.Reason == "" }

func (b *bench) explain(l *tuner.Layout) (explanation, error) {
	e := explanation{Point: l.Point, Impl: l.Spec.Name, Label: l.Spec.Label, Knobs: l.Settings(), FLOPs: l.Problem.FLOPs(), Kinds: []kind{}}
	e.settings = spelledOut(l.Spec.Name, l.Settings(), l.Point, b.info.Key)
	if l.Reason != "" {
		e.Declined = &l.Reason
		return e, nil
	}
	s := l.Schedule.Summarize()
	e.Executed, e.Traffic, e.Memory, e.Streams = s.FLOPs, s.Traffic, l.Memory, l.Schedule.Streams
	e.Operations, e.Waits, e.Prepared = s.Nodes, s.Waits, len(l.Schedule.Prepare)
	e.Critical, e.Chain = s.Critical, s.Chain
	e.Parallelism = float64(s.FLOPs) / float64(max(1, s.Critical))
	for _, k := range s.Kinds {
		e.Kinds = append(e.Kinds, kind{k.Name, k.Count, k.FLOPs, k.Bytes})
	}
	if rate := b.limits.FLOPS; rate > 0 {
		t := float64(s.FLOPs) / rate
		e.Peak, e.AtPeak = &rate, &t
	}
	if rate := b.limits.Copy; rate > 0 {
		t := float64(s.Traffic) / rate
		e.Copy, e.AtCopy = &rate, &t
	}
	if !persistent(l) {
		return e, nil
	}
	var err error
	e.Predicted, err = b.predict(l)
	return e, err
}

// explanation prints e for people.
func (p *program) explanation(e explanation) error {
	title := fmt.Sprintf("%s · %v", e.Label, e.Point)
	if e.settings != e.Label {
		title += " · " + e.settings
	}
	if e.Declined != nil {
		_, err := fmt.Fprintf(p.out, "%s\ndeclined: %s\n", safe.Text(title), safe.Text(*e.Declined))
		return err
	}
	t := &table.Table{Title: title, Columns: []table.Column{
		{Name: "operation", Key: "op"}, {Name: "count", Key: "count", Right: true}, {Name: "FLOPs", Key: "flops", Right: true},
		{Name: "share", Key: "share", Right: true}, {Name: "bytes", Key: "bytes", Right: true},
	}}
	add := func(name string, count int, flops, bytes int64) {
		t.Rows = append(t.Rows, []table.Cell{
			table.Text(name), table.Int(count), {Text: quantity.SI(float64(flops), "")},
			{Text: fmt.Sprintf("%.1f %%", 100*float64(flops)/float64(max(1, e.Executed)))}, {Text: quantity.Bytes(float64(bytes))},
		})
	}
	for _, k := range e.Kinds {
		add(k.Name, k.Count, k.FLOPs, k.Bytes)
	}
	add("all", e.Operations, e.Executed, e.Traffic)
	if e.Executed != e.FLOPs {
		t.Notes = append(t.Notes, fmt.Sprintf("the problem itself needs %s FLOP in products; rates count only these", quantity.SI(float64(e.FLOPs), "")))
	}
	t.Notes = append(t.Notes,
		fmt.Sprintf("memory: %s; preparation: %s", quantity.Bytes(float64(e.Memory)), plural(e.Prepared, "operation")),
		fmt.Sprintf("streams: %d, with %s between them", e.Streams, plural(e.Waits, "wait")),
		fmt.Sprintf("critical path: %s and %s FLOP; possible speed-up from parallel operations: %.2g×", plural(e.Chain, "operation"),
			quantity.SI(float64(e.Critical), ""), e.Parallelism))
	if e.AtPeak != nil && e.AtCopy != nil {
		t.Notes = append(t.Notes, fmt.Sprintf("lower bounds: %s at %s; %s at %s without cache reuse",
			quantity.SI(*e.AtPeak, "s"), quantity.SI(*e.Peak, "FLOP/s"), quantity.SI(*e.AtCopy, "s"), quantity.SI(*e.Copy, "B/s")))
	}
	if e.Predicted != nil {
		t.Notes = append(t.Notes, e.Predicted.notes()...)
	}
	return t.Write(p.out, "table", p.style())
}
