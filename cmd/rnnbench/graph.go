package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/internal/tomlfile"
	"rnnbench/plots/table"
	"rnnbench/record/files"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
	"rnnbench/rnn/graph"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/network"
)

// graphFlags are the flags of the command graph.
type graphFlags struct {
	settings
	stack  graph.Stack // sizes of a cell's network
	size   graph.Size  // of a run
	run    bool
	out    string
	format string
}

const graphLong = `Graph reads a network of layers and connections. It finds the strongly connected
components with Tarjan's algorithm and prints them in order of activation. Recurrent
components run step by step; all others can run over all steps at once (Hwang and Sung
2015). Graph draws the network twice: as given, and with each component as one node.

The network is a cell or a TOML file. The file has [[layer]] tables (name, size, input =
"dense" or "symbols", aggregate = "sum", "product" or "max", activation, bias) and
[[connection]] tables (from, to, weight = "full", "identity" or "diagonal", delay in
steps).

--run trains the network step by step and with parallel steps. It checks the gradients
of both against a float64 reference and times both.`

func graphCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "graph CELL|FILE.cell|FILE.toml [flags]",
		Short:   "Find the loops of a network and draw its components",
		GroupID: "inside",
		Long:    graphLong,
		Example: `  rnnbench graph lstm-peephole
  rnnbench graph gru --layers 2 --output 10 --out figures
  rnnbench graph network.toml --run --batch 8 --steps 32 --history 32
  rnnbench graph network.toml -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Misuse(fmt.Errorf("graph takes one cell or one file, but got %d arguments", len(args)), "rnnbench list cells")
			}
			return nil
		},
		ValidArgsFunction: completeNetwork,
	}
	f := &graphFlags{stack: graph.Stack{Layers: 1, Input: 64, Hidden: 64}, size: graph.Size{Batch: 1, Steps: 64}, out: config.Dir, format: "table"}
	addGroup(cmd, "Network of a cell", func(fs *pflag.FlagSet) {
		fs.IntVarP(&f.stack.Hidden, "hidden", "H", f.stack.Hidden, "units per layer")
		fs.IntVar(&f.stack.Input, "input", f.stack.Input, "number of input features or symbols")
		fs.IntVar(&f.stack.Output, "output", 0, "classes of a softmax layer on top (default none)")
		fs.IntVar(&f.stack.Layers, "layers", f.stack.Layers, "stacked layers")
		fs.BoolVar(&f.stack.Symbols, "onehot", false, "read one one-hot symbol per step")
	})
	addGroup(cmd, "Run", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.run, "run", false, "train the network and check its gradients, with and without parallel steps")
		fs.IntVarP(&f.size.Batch, "batch", "B", f.size.Batch, "sequences per batch")
		fs.IntVarP(&f.size.Steps, "steps", "T", f.size.Steps, "new steps per sequence")
		fs.IntVar(&f.size.History, "history", 0, "steps saved from the previous minibatch")
	})
	f.device(cmd)
	f.source(cmd)
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.StringVar(&f.out, "out", f.out, "`DIR` for the DOT and SVG drawings; - for none")
		fs.VarP(choice{&f.format, "format", table.Formats()}, "format", "o", "how to print: "+strings.Join(table.Formats(), ", "))
	})
	_ = cmd.MarkFlagDirname("out") // the flag is there
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, args []string) error {
		if err := f.checkUnused(cmd, args[0]); err != nil {
			return misused(cmd, err)
		}
		g, err := f.load(args[0])
		if err != nil {
			if strings.HasSuffix(args[0], ".toml") { // its keys are not axes
				return exit.Misuse(err, cmd.CommandPath()+" --help")
			}
			return misused(cmd, err)
		}
		if size := f.size; size.Batch < 1 || size.Steps < 1 || size.History < 0 {
			return misused(cmd, errors.New("--batch and --steps must be at least 1, --history at least 0"))
		}
		a, err := g.Analyze()
		if err != nil {
			return err
		}
		if people := f.format == "table" || f.format == "markdown"; people || !f.run { // the other formats hold one table
			if err := table.Components(g, a).Write(p.out, f.format, p.style()); err != nil {
				return err
			}
		}
		if f.out != "-" {
			if err := drawGraph(p, g, f.out); err != nil {
				return err
			}
		}
		if !f.run {
			return nil
		}
		return runGraph(p, cmd, f, g)
	})
}

// completeNetwork completes the names of cells and of files.
func completeNetwork(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []cobra.Completion
	for _, c := range cell.All() {
		list = append(list, cobra.CompletionWithDesc(c.Name, c.Doc))
	}
	return list, cobra.ShellCompDirectiveDefault // files, too
}

// checkUnused returns an error for a flag without effect: a size if the network is a file, or a
// flag of the run without --run.
func (f *graphFlags) checkUnused(cmd *cobra.Command, name string) error {
	given := func(names ...string) string {
		i := slices.IndexFunc(names, func(n string) bool { return cmd.Flags().Changed(n) })
		if i < 0 {
			return ""
		}
		return names[i]
	}
	if flag := given("hidden", "input", "output", "layers", "onehot"); flag != "" && cell.Lookup(name) == nil && !equations.IsFile(name) && exists(name) {
		return fmt.Errorf("--%s applies only to a cell, but %s is a file with its own sizes", flag, name)
	}
	if flag := given("batch", "steps", "history"); flag != "" && !f.run {
		return fmt.Errorf("--%s needs --run", flag)
	}
	return nil
}

// load reads a file, or makes the network of a cell.
func (f *graphFlags) load(name string) (*graph.Graph, error) {
	c := cell.Lookup(name)
	if equations.IsFile(name) {
		var err error
		if c, err = equations.Load(name); err != nil {
			return nil, err
		}
	}
	if c != nil {
		f.stack.Cell = c
		if s := f.stack; min(s.Hidden, s.Input, s.Layers) < 1 || s.Output < 0 {
			return nil, errors.New("--hidden, --input and --layers must be at least 1, --output at least 0")
		}
		if f.stack.Layers > rnn.MaxLayers {
			return nil, fmt.Errorf("--layers must be at most %d", rnn.MaxLayers)
		}
		return graph.New(f.stack)
	}
	text, err := tomlfile.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && filepath.Ext(name) == "" {
		return nil, grid.Unknown("cell", name, cellNames())
	}
	if err != nil {
		return nil, err
	}
	g, err := graph.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if g.Name == "" {
		g.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	return g, nil
}

// drawGraph writes g into dir as DOT and SVG: as given, and with components grouped.
func drawGraph(p *program, g *graph.Graph, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return exit.With(exit.Error, fmt.Errorf("cannot create the folder for drawings: %w", err), "use --out DIR for another folder, or --out - for no drawings")
	}
	base := strings.Map(func(r rune) rune { // a name from a file must not leave dir
		if strings.ContainsRune(`/\:`, r) || r < ' ' {
			return '-'
		}
		return r
	}, g.Name)
	for _, grouped := range []bool{false, true} {
		for _, draw := range []struct {
			ending string
			write  func(io.Writer, bool) error
		}{{"dot", g.DOT}, {"svg", g.SVG}} {
			name := base + map[bool]string{true: "-grouped"}[grouped] + "." + draw.ending
			path := filepath.Join(dir, name)
			if err := files.Write(path, func(w io.Writer) error { return draw.write(w, grouped) }); err != nil {
				return err
			}
			p.Note("wrote %s", path)
		}
	}
	return nil
}

// runGraph trains g with intra-stream parallelism and without, checks both and
// compares their speed.
func runGraph(p *program, cmd *cobra.Command, f *graphFlags, g *graph.Graph) error {
	if err := f.resolve(p); err != nil {
		return misused(cmd, err)
	}
	b, err := bench.Open(f.Options, p)
	if err != nil {
		return misused(cmd, err)
	}
	defer b.Close()
	r, err := network.Train(b.Device, g, f.size, f.Config.Measure.Seed, b.Free())
	if wrong := (*network.WrongError)(nil); errors.As(err, &wrong) {
		return exit.With(exit.Failures, err, "")
	}
	if err != nil {
		return err
	}
	if f.format == "table" || f.format == "markdown" {
		if _, err := fmt.Fprintln(p.out); err != nil {
			return err
		}
	}
	return r.Table(b.Info.Model).Write(p.out, f.format, p.style())
}
