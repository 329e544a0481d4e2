package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/internal/exit"
	"rnnbench/modelfile"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// A catalogue is one list that the command list prints.
type catalogue struct {
	name, doc string
	table     func(l lister) (*table.Table, error)
}

// A lister is the program with the flags of the command list.
type lister struct {
	cell  string // of --cell
	model string // of --model
	*program
	rivals []string // files of --rival
}

func catalogues() []catalogue {
	return []catalogue{
		{"techniques", "ways to run a network, for --impl", techniqueTable},
		{"cells", "recurrent units, for --cell", cellTable},
		{"devices", "processors and GPUs, for --device", deviceTable},
		{"presets", "named sets of points, for --preset", presetTable},
		{"networks", "networks with names, for --network", networkTable},
		{"axes", "dimensions of a point", axisTable},
		{"metrics", "values of a record, for plot --y and show --metric", metricTable},
		{"knobs", "settings of techniques and devices, for --impl NAME:KNOB=VALUE", knobTable},
		{"rivals", "other programs as techniques, for --rival, and what they lack to run here", rivalTable},
		{"layers", "recurrent layers of a model's file, for --model", layerTable},
	}
}

func listCommand(p *program) *cobra.Command {
	var names []string
	for _, c := range catalogues() {
		names = append(names, c.name)
	}
	cmd := &cobra.Command{
		Use:     "list [WHAT] [flags]",
		Short:   "List " + strings.Join(names, ", "),
		GroupID: "manage",
		Example: `  rnnbench list
  rnnbench list presets
  rnnbench list knobs
  rnnbench list cells --cell cells/mgu.cell
  rnnbench list rivals --rival mine.toml
  rnnbench list layers --model model.pt
  rnnbench list techniques -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && !slices.Contains(names, args[0]) {
				return exit.Misuse(grid.Unknown("list of", args[0], names), "rnnbench list")
			}
			if len(args) > 1 {
				return exit.Misuse(fmt.Errorf("list takes one argument, but got also %q", args[1]), "rnnbench list --help")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var list []cobra.Completion
			for _, c := range catalogues() {
				list = append(list, cobra.CompletionWithDesc(c.name, c.doc))
			}
			return list, cobra.ShellCompDirectiveNoFileComp
		},
	}
	format, l := "table", lister{program: p}
	addGroup(cmd, "Techniques", func(f *pflag.FlagSet) {
		f.StringArrayVar(&l.rivals, "rival", nil, "list rivals of this TOML `FILE` as well; repeatable")
	})
	addGroup(cmd, "Cells", func(f *pflag.FlagSet) {
		f.StringVar(&l.cell, "cell", "", "show what is derived from this cell, or from this `FILE` of equations")
	})
	addGroup(cmd, "Models", func(f *pflag.FlagSet) {
		f.StringVar(&l.model, "model", "", "show the recurrent layers of this `FILE`: "+strings.Join(modelfile.Formats(), ", "))
	})
	_ = cmd.MarkFlagFilename("rival", "toml") // the flags are there
	_ = cmd.MarkFlagFilename("model", modelEndings...)
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.VarP(choice{&format, "format", table.Formats()}, "format", "o", "how to print: "+strings.Join(table.Formats(), ", "))
	})
	return p.verb(cmd, func(_ context.Context, _ *cobra.Command, args []string) error {
		if l.cell != "" && !slices.Equal(args, []string{"cells"}) {
			return exit.Misuse(errors.New("--cell works only with list cells"), "rnnbench list cells --cell "+l.cell)
		}
		if l.rivals != nil && !slices.Equal(args, []string{"rivals"}) {
			return exit.Misuse(errors.New("--rival works only with list rivals"), "rnnbench list rivals --rival "+l.rivals[0])
		}
		if l.model != "" && !slices.Equal(args, []string{"layers"}) {
			return exit.Misuse(errors.New("--model works only with list layers"), "rnnbench list layers --model "+l.model)
		}
		t := words("list", "of")
		for _, c := range catalogues() {
			t.Rows = append(t.Rows, row(c.name, c.doc))
			if len(args) > 0 && args[0] == c.name {
				var err error
				if t, err = c.table(l); err != nil {
					return err
				}
				break
			}
		}
		return t.Write(p.out, format, pageStyle(p))
	})
}

// words returns an empty table with columns of text.
func words(columns ...string) *table.Table {
	t := &table.Table{}
	for _, c := range columns {
		t.Columns = append(t.Columns, table.Column{Name: c, Key: strings.ReplaceAll(c, " ", "_")})
	}
	return t
}

func row(cells ...string) []table.Cell {
	var r []table.Cell
	for _, c := range cells {
		r = append(r, table.Text(c))
	}
	return r
}

func techniqueTable(lister) (*table.Table, error) {
	t := words("technique", "idea")
	for _, x := range impl.All() {
		t.Rows = append(t.Rows, row(x.Name(), x.Doc()))
	}
	return t, nil
}

func cellTable(l lister) (*table.Table, error) {
	if l.cell != "" {
		return derivedTable(l.cell)
	}
	t := words("cell", "gates", "states", "equations")
	for _, c := range cell.All() {
		t.Rows = append(t.Rows, row(c.Name, strings.Join(c.Gates, " "), strings.Join(c.States, " "), c.Doc))
	}
	return t, nil
}

func deviceTable(l lister) (*table.Table, error) {
	t := words("device", "model", "key", "workers", "memory", "libraries")
	t.Columns[3].Right, t.Columns[4].Right, t.Columns[4].Key = true, true, "mem_bytes"
	for i := -1; ; i++ { // the processor, then GPUs until there are no more
		name := "cpu"
		if i >= 0 {
			name = fmt.Sprintf("cuda:%d", i)
		}
		b, err := bench.OpenDevice(bench.Options{Config: config.Config{Devices: []string{name}, Measure: config.Default()}}, l)
		if err != nil && i < 0 {
			return nil, err
		}
		if err != nil {
			if i == 0 {
				t.Notes = []string{err.Error() + "."}
			}
			return t, nil
		}
		var libraries []string
		for _, name := range slices.Sorted(maps.Keys(b.Info.Libraries)) {
			libraries = append(libraries, name+" "+b.Info.Libraries[name])
		}
		r := row(b.Info.Name, b.Info.Model, b.Info.Key, "", "", strings.Join(libraries, ", "))
		r[3], r[4] = table.Int(b.Info.Workers), table.Cell{Text: quantity.Bytes(float64(b.Info.Memory)), Value: b.Info.Memory}
		t.Rows = append(t.Rows, r)
		b.Close()
	}
}

func presetTable(lister) (*table.Table, error) {
	t := words("preset", "points", "what", "source")
	t.Columns[1].Right = true
	for _, x := range grid.Presets() {
		g, err := grid.New(grid.Request{Presets: []string{x.Name}, Impl: []string{"naive"}}, grid.Vocabulary{Impls: implNames()})
		if err != nil {
			return nil, err
		}
		points, err := g.Points()
		if err != nil {
			return nil, err
		}
		r := row(x.Name, "", x.Doc, x.Source)
		r[1] = table.Int(len(points))
		t.Rows = append(t.Rows, r)
	}
	return t, nil
}

func networkTable(lister) (*table.Table, error) {
	t := words("network", "axes", "what")
	for _, n := range config.Networks() {
		var axes []string
		for _, name := range axis.Names() {
			if v, ok := n.Axes[name]; ok {
				axes = append(axes, name+"="+v)
			}
		}
		t.Rows = append(t.Rows, row(n.Name, strings.Join(axes, " "), n.Doc))
	}
	return t, nil
}

func axisTable(lister) (*table.Table, error) {
	t := words("axis", "letter", "default", "values", "what")
	for _, a := range axis.All() {
		t.Rows = append(t.Rows, row(a.Name, a.Letter, a.Default, forms(a), a.Help))
	}
	t.Notes = []string{"Conditions also accept impl, mem (bytes), flops and intensity."}
	return t, nil
}

// forms says how the values of an axis are written.
func forms(a axis.Axis) string {
	values := "sizes: 512, 4k, 64,128, 64:512:64, 256:4096:x2"
	switch {
	case a.Forms != "":
		return a.Forms
	case !a.Sized():
		return strings.Join(wordsOf(a.Name), ", ")
	case a.Zero != "":
		values += ", " + a.Zero
	}
	return values
}

func metricTable(lister) (*table.Table, error) {
	t := words("metric", "unit", "better", "what")
	for _, m := range quantity.Measures() {
		better := "more"
		if m.Less {
			better = "less"
		}
		t.Rows = append(t.Rows, row(m.Name, m.Unit, better, m.Title))
	}
	return t, nil
}

// knobTable lists the knobs of each technique, for a network to which all of them apply, and the
// knobs of each kind of device.
func knobTable(lister) (*table.Table, error) {
	t := words("of", "knob", "default", "values", "what")
	t.Columns[2].Right = true
	problem, err := tuner.Problem(example())
	if err != nil {
		return nil, err
	}
	for _, x := range impl.All() {
		addKnobs(t, x.Name(), exampleKnobs(x))
	}
	addKnobs(t, "cpu", cpu.Vocabulary())
	addKnobs(t, "cuda", cuda.Vocabulary())
	var internal []string
	for _, k := range cuda.Vocabulary() {
		if k.Internal {
			internal = append(internal, k.Name)
		}
	}
	t.Notes = []string{
		"Techniques: knobs for " + problem.String() + "; values can differ for other problems. batchsizes needs --lengths.",
		"Devices: knobs of each kind of device. A point skips settings that do not apply to it.",
		"Tests and experiments also set scan:alone and, on a GPU, " + strings.Join(internal, ", ") + ".",
	}
	return t, nil
}

func addKnobs(t *table.Table, owner string, knobs []knob.Knob) {
	for _, k := range knob.Public(knobs) {
		r := row(owner, k.Name, "", offered(k), k.Doc)
		r[2] = table.Int(k.Values[0])
		t.Rows = append(t.Rows, r)
	}
}

// offered formats a knob's values: those worth trying, then the range of other valid ones.
func offered(k knob.Knob) string {
	var values []string
	for _, v := range k.Values {
		values = append(values, strconv.Itoa(v))
	}
	s := strings.Join(values, ", ")
	switch {
	case k.Max == math.MaxInt32:
		s += fmt.Sprintf("; any from %d", k.Min)
	case k.Max > 0:
		s += fmt.Sprintf("; any of %d to %d", k.Min, k.Max)
	}
	return s
}
