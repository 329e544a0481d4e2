package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/impl"
	"rnnbench/modelfile"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/advise"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
)

// adviceFormats are the formats of advice.
var adviceFormats = []string{"table", "markdown", "json"}

func adviseCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "advise --model FILE [flags]",
		Short:   "Say which technique is fastest for a model's layers, and how to use it",
		GroupID: "measure",
		Long: `Advise answers one question: which way of running these recurrent layers is fastest on
this machine, by how much over what runs them today, and what to write to use it?

It reads the layers of a model's file, or takes those of --point. It races the likeliest
techniques, keeps the winner as wisdom, and measures it in turns with PyTorch and ONNX
Runtime if they are here. Layers that differ in their weights alone are measured once.
Batch and steps are 1 by default, as where a model runs on a stream of samples.`,
		Example: `  rnnbench advise --model silero_vad.onnx --calls 1000
  rnnbench advise --model speech.pt -B 16 -T 200
  rnnbench advise --model speech.pt --layer encoder.rnn --device cuda:0
  rnnbench advise --point H=256,L=2 --cell gru -T 100 -o markdown`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := &sweepFlags{}
	f.flags(cmd)
	addGroup(cmd, "Run", func(fs *pflag.FlagSet) {
		f.add(fs, "out", "DIR", "")
		f.add(fs, "label", "WORD", "")
		fs.BoolVar(&f.HideHost, "no-hostname", false, "omit the host name from the run")
	})
	progressFlag(p, cmd)
	f.format = adviceFormats[0]
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.VarP(choice{&f.format, "format", adviceFormats}, "format", "o", "how to print: "+strings.Join(adviceFormats, ", "))
	})
	completeGrid(cmd)
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if !f.given("model") && !f.given("point") && !f.given("hidden") && f.file == "" {
			return misused(cmd, errors.New("name a model's file with --model FILE, or a layer with --point H=512"))
		}
		return giveAdvice(ctx, p, cmd, f)
	})
}

// giveAdvice measures what f names and prints the advice.
func giveAdvice(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags) error {
	var m advise.Model
	if f.given("model") {
		var err error
		if m, err = f.oneOfEachShape(); err != nil {
			return misused(cmd, err)
		}
	}
	if !cmd.Flags().Changed("auto") {
		f.auto = autoRace
	}
	if len(f.rivals) == 0 {
		f.rivals = rivalsOfUsers()
	}
	for name, value := range map[string]string{"batch": "1", "steps": "1", "until": config.UntilClear} {
		if err := f.usual.Set(name, value); err != nil {
			return err
		}
	}
	var outside []string
	f.open = func(b *bench.Bench, c *config.Config) error {
		if len(c.Grid.Impl) == 0 {
			c.Grid.Impl = raced(b)
		}
		for _, r := range b.Rivals {
			outside = append(outside, r.Name())
		}
		return nil
	}
	f.show = func(recs []record.Record) error {
		all := advise.Of(recs, func(name string) bool { return slices.Contains(outside, name) }, m)
		alone := ""
		switch {
		case len(outside) > 0:
		case len(f.rivals) == 0:
			alone = "Neither PyTorch nor ONNX Runtime was found, so nothing is compared with them: name their files with --rival (see docs/rivals.md)."
		default:
			alone = "No rival runs here, so nothing is compared with them: rnnbench list rivals says what each lacks."
		}
		return p.advice(all, recs, f.format, alone)
	}
	return sweep(ctx, p, cmd, f)
}

// oneOfEachShape reads the model, and names for measuring one layer of each shape.
func (f *sweepFlags) oneOfEachShape() (advise.Model, error) {
	m := advise.Model{Layers: map[string][]string{}}
	var files []*modelfile.File
	for _, path := range f.values["model"].list {
		file, err := modelfile.Read(path)
		if err != nil {
			return m, err
		}
		files = append(files, file)
		m.File, m.Torch = path, file.Format != "ONNX"
	}
	layers, err := modelfile.Pick(files, f.values["layer"].list)
	if err != nil {
		return m, err
	}
	first := map[any]string{} // the layer that stands for its shape, by the shape
	var names []string
	for _, l := range layers {
		if first[l.Point] == "" {
			first[l.Point] = l.ID
			names = append(names, l.Name)
		}
		m.Layers[first[l.Point]] = append(m.Layers[first[l.Point]], l.Name)
	}
	f.values["layer"].list = names
	return m, nil
}

// rivalsOfUsers lists the files of the programs that most people run layers with, where they are found: below
// the working folder, or in the checkout whose bin has this program.
func rivalsOfUsers() (files []string) {
	folders := []string{"rivals"}
	if self, err := os.Executable(); err == nil {
		folders = append(folders, filepath.Join(filepath.Dir(self), "..", "rivals"))
	}
	for _, name := range []string{"onnxruntime.toml", "pytorch.toml"} {
		for _, folder := range folders {
			if path := filepath.Join(folder, name); exists(path) {
				files = append(files, path)
				break
			}
		}
	}
	return files
}

// raced lists what advise measures: auto, and each form of each rival and of each vendor's library.
func raced(b *bench.Bench) []string {
	list := []string{"auto"}
	add := func(name string, knobs []knob.Knob) {
		for _, k := range knob.Combinations(knobs, 2) {
			spec := name
			for _, set := range slices.Sorted(maps.Keys(k)) {
				spec += fmt.Sprintf(":%s=%d", set, k[set])
			}
			list = append(list, spec)
		}
	}
	for _, r := range b.Rivals {
		add(r.Name(), r.Varied())
	}
	for _, name := range slices.Sorted(maps.Keys(b.Info.Libraries)) {
		if t := impl.Lookup(name); t != nil && bench.IsVendor(name) {
			add(name, t.Knobs(rnn.Problem{}))
		}
	}
	return list
}

// advice prints advice. alone says why no rival was there; "": one was.
func (p *program) advice(all []advise.Advice, recs []record.Record, format, alone string) error {
	if format == "json" {
		return p.json(all)
	}
	t := advise.Table(all, recs)
	if alone != "" {
		t.Notes = append(t.Notes, alone)
	}
	if err := t.Write(p.out, format, p.style()); err != nil {
		return err
	}
	fence := ""
	if format == "markdown" {
		fence = "```"
	}
	lines := []string{"", "To use it (make lib builds the library; auto takes the technique above):"}
	for _, a := range all {
		lines = append(append(append(lines, fence), a.Use...), fence)
	}
	_, err := fmt.Fprintln(p.out, strings.Join(slices.Compact(lines), "\n"))
	return err
}
