package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device"
	"rnnbench/impl/scc"
	"rnnbench/internal/tomlfile"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results/files"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/graph"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// graphFlags are those of the command graph.
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

func (p *program) graphCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "graph CELL|FILE.toml [flags]",
		Short:   "Find the loops of a network and draw its components",
		GroupID: "inside",
		Long:    graphLong,
		Example: `  rnnbench graph lstm-peephole
  rnnbench graph gru --layers 2 --output 10 --out figures
  rnnbench graph network.toml --run --batch 8 --steps 32 --history 32
  rnnbench graph network.toml -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(fmt.Errorf("graph takes one cell or one file, but got %d arguments", len(args)), "rnnbench list cells")
			}
			return nil
		},
		ValidArgsFunction: completeNetwork,
	}
	f := &graphFlags{stack: graph.Stack{Layers: 1, Input: 64, Hidden: 64}, size: graph.Size{Batch: 1, Steps: 64}, out: usualDir, format: "table"}
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
		if err := f.idle(cmd, args[0]); err != nil {
			return misused(cmd, err)
		}
		g, err := f.load(args[0])
		if err != nil {
			if strings.HasSuffix(args[0], ".toml") { // whose keys are no axes
				return usage(err, cmd.CommandPath()+" --help")
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
		if people := f.format == "table" || f.format == "markdown"; people || !f.run { // data is one table
			if err := components(g, a).Write(p.out, f.format, p.style()); err != nil {
				return err
			}
		}
		if f.out != "-" {
			if err := p.drawGraph(g, f.out); err != nil {
				return err
			}
		}
		if !f.run {
			return nil
		}
		return p.runGraph(cmd, f, g)
	})
}

// completeNetwork offers cells, and files for a network of one's own.
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

// idle finds flags that would say nothing: sizes of a network that is a file, and
// those of a run where nothing runs.
func (f *graphFlags) idle(cmd *cobra.Command, name string) error {
	given := func(names ...string) string {
		i := slices.IndexFunc(names, func(n string) bool { return cmd.Flags().Changed(n) })
		if i < 0 {
			return ""
		}
		return names[i]
	}
	if flag := given("hidden", "input", "output", "layers", "onehot"); flag != "" && cell.Lookup(name) == nil && exists(name) {
		return fmt.Errorf("--%s applies only to a cell, but %s is a file with its own sizes", flag, name)
	}
	if flag := given("batch", "steps", "history"); flag != "" && !f.run {
		return fmt.Errorf("--%s needs --run", flag)
	}
	return nil
}

// load reads a file, or makes the network of a cell.
func (f *graphFlags) load(name string) (*graph.Graph, error) {
	if c := cell.Lookup(name); c != nil {
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

// components lists what an analysis found.
func components(g *graph.Graph, a *graph.Analysis) *table.Table {
	t := words("component", "level", "kind", "layers in order of activation", "reads")
	t.Title = g.Name
	t.Columns[0].Right, t.Columns[1].Right, t.Columns[3].Key = true, true, "layers"
	recurrent, inLoops := 0, 0
	for i, c := range a.Components {
		kind := "at once"
		switch {
		case c.Recurrent:
			kind = "recurrent"
			recurrent++
			inLoops += len(c.Layers)
		case g.Layers[c.Layers[0]].Input != graph.Hidden:
			kind = "input"
		}
		var names, reads []string
		for _, k := range c.Layers {
			names = append(names, g.Layers[k].Name)
			for _, m := range g.Into(k) {
				e := g.Connections[m]
				name := g.Layers[e.From].Name
				if e.Delay > 0 {
					name += fmt.Sprintf(" (%d ago)", e.Delay)
				}
				if (!a.Inside(e) || e.Delay > 0) && !slices.Contains(reads, name) {
					reads = append(reads, name)
				}
			}
		}
		r := row("", "", kind, strings.Join(names, ", "), strings.Join(reads, ", "))
		r[0], r[1] = table.Int(i+1), table.Int(c.Level)
		t.Rows = append(t.Rows, r)
	}
	t.Notes = []string{fmt.Sprintf("%s, %s; %s in loops run step by step",
		plural(len(g.Layers), "layer"), plural(recurrent, "recurrent node"), plural(inLoops, "layer"))}
	return t
}

// drawGraph writes the drawings of g.
func (p *program) drawGraph(g *graph.Graph, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return &failure{exitError, fmt.Errorf("cannot create the folder for drawings: %w", err), "use --out DIR for another folder, or --out - for no drawings"}
	}
	base := strings.Map(func(r rune) rune { // names are the user's, paths are not
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
			p.note("wrote %s", path)
		}
	}
	return nil
}

// runGraph trains g with intra-stream parallelism and without, checks both and
// compares their speed.
func (p *program) runGraph(cmd *cobra.Command, f *graphFlags, g *graph.Graph) error {
	c, err := f.resolve(p)
	if err != nil {
		return misused(cmd, err)
	}
	b, err := p.open(&f.settings, c)
	if err != nil {
		return misused(cmd, err)
	}
	defer b.Close()
	f.size.Train = true
	networks, err := layBoth(b, g, f.size)
	if err != nil {
		return err
	}
	in := g.Draw(f.size, rand.New(rand.NewPCG(c.Measure.Seed, 0)))
	want, err := g.Reference(f.size, in)
	if err != nil {
		return err
	}
	var programs [2]device.Program
	t := words("training", "time per minibatch", "sequence steps per second", "speed-up", "largest error")
	t.Title = fmt.Sprintf("%s · B=%d T=%d history=%d · %s", g.Name, f.size.Batch, f.size.Steps, f.size.History, b.info.Model)
	t.Columns[1] = table.Column{Name: t.Columns[1].Name, Key: "time_s", Right: true}
	t.Columns[2] = table.Column{Name: t.Columns[2].Name, Key: "events_per_s", Right: true}
	t.Columns[3] = table.Column{Name: t.Columns[3].Name, Key: "speedup", Right: true}
	t.Columns[4] = table.Column{Name: t.Columns[4].Name, Key: "error"}
	var errs [2]string
	for intra := range programs {
		n := networks[intra]
		if programs[intra], err = b.Compile(n.Schedule, nil); err != nil {
			return err
		}
		defer programs[intra].Close()
		if err := errors.Join(n.Write(programs[intra], in), programs[intra].Prepare()); err != nil {
			return err
		}
		if _, err := programs[intra].Run(1); err != nil {
			return err
		}
		got, err := n.Read(programs[intra])
		if err != nil {
			return err
		}
		d, err := n.Compare(got, want)
		if err != nil {
			return err
		}
		if !d.OK() {
			return &failure{exitFailures, fmt.Errorf("%s is wrong: %v", g.Name, d), ""}
		}
		errs[intra] = fmt.Sprintf("%.2g × the tolerance, in %s", d.Error/d.Tolerance, d.Tensor)
	}
	seconds, err := takeTurns(programs[:])
	if err != nil {
		return err
	}
	for intra, name := range []string{"step by step", "only loops step by step"} {
		s := seconds[intra]
		rate, up := float64(f.size.Batch*f.size.Steps)/s, seconds[0]/s
		t.Rows = append(t.Rows, []table.Cell{table.Text(name), table.Number(s, quantity.SI(s, "s")),
			table.Number(rate, quantity.SI(rate, "/s")), table.Number(up, fmt.Sprintf("%.2f", up)), table.Text(errs[intra])})
	}
	if f.format == "table" || f.format == "markdown" {
		if _, err := fmt.Fprintln(p.out); err != nil {
			return err
		}
	}
	return t.Write(p.out, f.format, p.style())
}

// takeTurns times programs in turns and returns the median of each, in seconds
// per run.
func takeTurns(programs []device.Program) ([]float64, error) {
	const rounds, burst = 9, 10 * time.Millisecond
	samples := make([][]float64, len(programs))
	runs := make([]int, len(programs))
	for range rounds {
		for i, prog := range programs {
			if runs[i] == 0 {
				b, err := prog.Run(1)
				if err != nil {
					return nil, err
				}
				runs[i] = 1 + int(burst/max(b.Wall, 1))
			}
			b, err := prog.Run(runs[i])
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], b.Wall.Seconds()/float64(runs[i]))
		}
	}
	var medians []float64
	for _, s := range samples {
		slices.Sort(s)
		medians = append(medians, s[len(s)/2])
	}
	return medians, nil
}

// layBoth lays g out step by step, and with parallelism between steps, if both fit
// into memory.
func layBoth(b *bench, g *graph.Graph, size graph.Size) (networks [2]*scc.Network, err error) {
	need, free := g.Footprint(size), float64(b.free())
	fits := func() error {
		if free > 0 && need > free {
			return fmt.Errorf("training %s needs %s, but only %s is available", g.Name, quantity.Bytes(need), quantity.Bytes(free))
		}
		return nil
	}
	for intra := range networks {
		if err := fits(); err != nil { // laying out takes memory as well
			return networks, err
		}
		if networks[intra], err = scc.Layout(g, size, knob.Params{"intra": intra}); err != nil {
			return networks, err
		}
		memory, err := b.Memory(networks[intra].Schedule, nil)
		if err != nil {
			return networks, err
		}
		need += float64(memory)
	}
	return networks, fits()
}
