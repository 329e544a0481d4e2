package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/model"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// thisMachine is the word for the machine that the program runs on.
const thisMachine = "here"

func modelCommand(p *program) *cobra.Command {
	machines := append([]string{thisMachine}, model.Builtin()...)
	cmd := &cobra.Command{
		Use:     "model [MACHINE] [flags]",
		Short:   "Predict step times of persistent recurrent layers",
		GroupID: "inside",
		Long: `Model predicts the time of one step of a recurrent layer, by the model of Diamos et al.
(2016). It prints the best tiling of the recurrent product, the memory that holds the
recurrent weights, and the parts of the step time. A MACHINE is one of
` + strings.Join(model.Builtin(), ", ") + `, a file from doctor --machine, or ` + thisMachine + `.
The default, ` + thisMachine + `, measures this machine.

Variants are hypothetical machines: twice the registers, the multiprocessors or the
bandwidth of main memory, 16-bit arithmetic, half the latency.`,
		Example: `  rnnbench model
  rnnbench model titanx -H 256:2048:x2 -B 4
  rnnbench model titanx -H 1152 -B 4 --variant all
  rnnbench model h200 --cell lstm -H 512,1024 -B 1,16 -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Misuse(fmt.Errorf("model takes one machine, but got also %q", args[1]), "rnnbench model --help")
			}
			return nil
		},
		ValidArgs: machines,
	}
	var s settings
	variants := "base"
	format := "table"
	addGroup(cmd, "Axes (512 or 4k, lists 64,128, ranges 64:512:64, doublings 256:4096:x2)", func(f *pflag.FlagSet) {
		s.add(f, "hidden", "LIST", "H")
		s.add(f, "batch", "LIST", "B")
		s.add(f, "cell", "LIST", "")
		s.add(f, "precision", "LIST", "")
	})
	addGroup(cmd, "Machine", func(f *pflag.FlagSet) {
		f.StringVar(&variants, "variant", variants, "`LIST` of variants: "+strings.Join(model.VariantNames(), ", ")+", or all")
	})
	s.device(cmd)
	s.source(cmd)
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.VarP(choice{&format, "format", table.Formats()}, "format", "o", "how to print: "+strings.Join(table.Formats(), ", "))
	})
	completeGrid(cmd)
	completeFlag(cmd, "variant", described(func() (list [][2]string) {
		for _, v := range model.Variants() {
			list = append(list, [2]string{v.Name, v.Doc})
		}
		return append(list, [2]string{"all", "all variants"})
	}))
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, args []string) error {
		var usual config.Layer
		if err := errors.Join(usual.Set("hidden", "128:2048:x2"), usual.Set("batch", "1,4"), usual.Set("cell", "rnn-tanh")); err != nil {
			return err
		}
		if err := s.resolve(p, usual); err != nil {
			return misused(cmd, err)
		}
		points, err := modelPoints(s.Config.Grid)
		if err != nil {
			return misused(cmd, err)
		}
		list, err := variantsOf(variants)
		if err != nil {
			return misused(cmd, err)
		}
		m, err := p.machine(&s, args)
		if err != nil {
			return err
		}
		found, err := tuner.Predictions(m, list, points)
		if err != nil {
			return misused(cmd, err)
		}
		return table.Predictions(m, found).Write(p.out, format, p.style())
	})
}

// machine returns the machine that args name, or measures this one.
func (p *program) machine(s *settings, args []string) (*model.Machine, error) {
	if len(args) > 0 && args[0] != thisMachine {
		m, err := model.Load(args[0])
		if err != nil {
			return nil, exit.Misuse(err, "run rnnbench doctor --machine FILE to describe this machine")
		}
		return m, nil
	}
	b, err := bench.Open(s.Options, p)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := b.MeasureMachine(); err != nil {
		return nil, err
	}
	if b.Machine == nil {
		return nil, bench.ErrNoMachine
	}
	return b.Machine, nil
}

// modelPoints returns the points that a request names.
func modelPoints(r grid.Request) ([]record.Point, error) {
	r.Impl = []string{bench.Reference} // a grid needs a technique, though the model uses none
	v := bench.Words()
	v.Impls = []string{bench.Reference}
	g, err := grid.New(r, v)
	if err != nil {
		return nil, err
	}
	return g.Points()
}

// variantsOf parses a list of variants.
func variantsOf(text string) ([]model.Variant, error) {
	if text == "all" {
		return model.Variants(), nil
	}
	var list []model.Variant
	for name := range strings.SplitSeq(text, ",") {
		v, err := model.LookupVariant(strings.TrimSpace(name))
		if err != nil {
			return nil, fmt.Errorf("--variant: %w", grid.Unknown("variant", name, append(model.VariantNames(), "all")))
		}
		list = append(list, v)
	}
	return list, nil
}
