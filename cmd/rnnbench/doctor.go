package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device"
	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/record/files"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/probe"
)

func doctorCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "doctor [flags]",
		Short:   "Check the speed, noise and measurement problems of this machine",
		GroupID: "manage",
		Long: `Doctor describes the machine and measures its peak rates and its noise. It lists
measurement problems with a remedy for each. Doctor takes a few seconds and exits with 0
even if it finds problems. It saves the measured memories and barriers in the user's cache
folder, for the floors in later records, and changes nothing else.

--machine saves the measured rates of caches, barriers and products to a file for
rnnbench model.`,
		Example: `  rnnbench doctor
  rnnbench doctor --threads 1 --simd avx2
  rnnbench doctor --machine here.toml && rnnbench model here.toml
  rnnbench doctor -o json > machine.json`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var s settings
	s.device(cmd)
	var hideHost bool
	format, machine := "text", ""
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.VarP(choice{&format, "format", []string{"text", "json"}}, "format", "o", "how to print: text, json")
		f.BoolVar(&hideHost, "no-hostname", false, "omit the host name")
		f.StringVar(&machine, "machine", "", "save the measured machine to a `FILE` for rnnbench model")
	})
	_ = cmd.MarkFlagFilename("machine", "toml") // the flag is there
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		c, err := s.resolve(p)
		if err != nil {
			return misused(cmd, err)
		}
		env := environment(hideHost)
		b, err := p.open(&s, c)
		if err != nil {
			return misused(cmd, err)
		}
		defer b.Close()
		d, err := diagnose(ctx, p, b, env)
		if err != nil {
			return err
		}
		if err := writeMachine(p, b, machine); err != nil {
			return err
		}
		if format == "json" {
			return p.json(d)
		}
		return d.print(letters(p, p.out), fits(p, p.out))
	})
}

// diagnose measures the machine and its noise. It saves the machine for the floors of later records.
func diagnose(ctx context.Context, p *program, b *bench, env record.Environment) (diagnosis, error) {
	if err := measureBench(p, b); err != nil {
		return diagnosis{}, err
	}
	if err := measureModel(p, b); err != nil {
		return diagnosis{}, err
	}
	b.saveMachine()
	noise, err := p.listen(ctx, b)
	if err != nil {
		return diagnosis{}, err
	}
	if env.CPU.Steal != nil { // of the last seconds rather than since the start
		env.CPU.Steal = record.Capture(record.Options{Interval: 300 * time.Millisecond}).CPU.Steal
	}
	d := diagnosis{Environment: env, Device: b.record(), Noise: noise, machine: b.machine, rates: b.limits.More, State: []finding{}, Advice: []advice{}}
	if i, ok := b.Device.(device.Inspector); ok {
		findings, err := i.Inspect()
		if err != nil {
			return diagnosis{}, err
		}
		for _, f := range findings {
			d.State = append(d.State, finding{f.Name, f.Value})
			if f.Remedy != "" {
				d.Advice = append(d.Advice, advice{f.Name + ": " + f.Value, f.Remedy})
			}
		}
	}
	for _, a := range slices.Concat(b.crowded(env), disturbed(b), otherRuns(b), company(b), record.Warnings(env), noise.Advice()) {
		d.Advice = append(d.Advice, advice(a))
	}
	return d, nil
}

// A diagnosis is what doctor finds.
type diagnosis struct {
	Environment record.Environment `json:"env"`
	Device      record.Device      `json:"device"`
	Noise       probe.Noise        `json:"noise"`
	State       []finding          `json:"state"` // of a device.Inspector
	Advice      []advice           `json:"advice"`

	machine *model.Machine // as in Device; nil: not measured
	rates   []device.Rate  // likewise
}

type finding struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type advice struct {
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

// listen times one short program many times and returns the spread of its times.
func (b *bench) listen(ctx context.Context) (probe.Noise, error) {
	at := record.Point{Cell: "lstm", Pass: "forward", Hidden: 128, Input: 128, Layers: 1, Batch: 8, Steps: 10, Precision: "fp32"}
	l, err := b.layOut(at, grid.Spec{Name: "cudnnstyle"})
	if err != nil {
		return probe.Noise{}, err
	}
	prog, err := b.Compile(l.Schedule, l.DeviceKnobs)
	if err != nil {
		return probe.Noise{}, err
	}
	defer prog.Close()
	return probe.Listen(ctx, prog)
}

// writeMachine writes the measured machine to the file path; "": it writes nothing.
func writeMachine(p *program, b *bench, path string) error {
	switch {
	case path == "":
		return nil
	case b.machine == nil:
		return errNoMachine
	}
	text, err := b.machine.Format()
	if err != nil {
		return err
	}
	if err := files.Write(path, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return err
	}
	p.note("wrote %s", path)
	return nil
}

// print writes d as text in lines of at most width columns; 0: of any length.
func (d diagnosis) print(w io.Writer, width int) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		if text := strings.TrimSpace(fmt.Sprintf(format, args...)); text != "" {
			fmt.Fprintln(&b, table.Paragraph(fmt.Sprintf("%-12s %s", name, text), width, 13))
		}
	}
	e := d.Environment
	c := e.CPU
	line("rnnbench", "%s, %s", e.Tool.Version, e.Tool.Go)
	line("host", "%s", e.Host.Name)
	line("system", "%s", joined(e.Host.System, e.Host.OS+"/"+e.Host.Arch, e.Host.Kernel, e.Host.Container, e.Host.VM))
	name := c.Model
	if d.Device.Facts["simd"] != "" { // it is the device
		name = d.Device.Name
	}
	line("processor", "%s", name)
	line("", "%s, %s; this process may use %d", plural(c.Cores, "core"), plural(c.Threads, "thread"), c.Allowed)
	line("topology", "%s", d.Device.Facts["topology"])
	var caches []string
	for _, x := range c.Caches {
		kind := ""
		if x.Kind != "unified" {
			kind = " " + x.Kind
		}
		caches = append(caches, fmt.Sprintf("L%d%s %s", x.Level, kind, quantity.Bytes(float64(x.Bytes))))
	}
	line("caches", "%s", strings.Join(caches, ", "))
	line("features", "%s", strings.Join(c.Features, " "))
	clock := ""
	if c.MaxClock != nil {
		clock = quantity.SI(*c.MaxClock, "Hz") + " at most"
	}
	line("clock", "%s", joined(clock, c.Governor, c.Driver))
	line("memory", "%s, %s available", quantity.Bytes(float64(e.Memory.Total)), quantity.Bytes(float64(e.Memory.Available)))
	if len(e.Host.Load) == 3 {
		line("load", "%.2f %.2f %.2f", e.Host.Load[0], e.Host.Load[1], e.Host.Load[2])
	}
	if c.Steal != nil {
		line("stolen", "%.1f %% of the processor time", 100**c.Steal)
	}
	b.WriteString("\n")
	if simd := d.Device.Facts["simd"]; simd != "" {
		line("measured", "with %s and %s:", workersText(d.Device.Facts["workers"]), simd)
	} else {
		d.printGPU(line)
	}
	if d.Device.Peak != nil {
		line("  peak", "%s of multiply-adds in fp32%s", quantity.SI(*d.Device.Peak, "FLOP/s"), d.unsure(device.LimitFLOPS))
	}
	if d.Device.Bandwidth != nil {
		line("  copy", "%s read and written%s", quantity.SI(*d.Device.Bandwidth, "B/s"), d.unsure(device.LimitCopy))
	}
	for _, r := range d.rates {
		line("  "+r.Name, "%s%s", quantity.SI(r.Value, r.Unit), d.unsure(r.Name))
	}
	if m := d.machine; m != nil {
		if d.Device.Facts["simd"] != "" {
			printHierarchy(line, m)
		} else {
			line("predictions", "use the built-in machine %s (rnnbench model %s)", m.Name, strings.ToLower(m.Name))
		}
	}
	n := d.Noise
	line("  noise", "%d samples of %s: quartiles ±%s, slowest %.0f %% over fastest; median of ten ±%s",
		n.Samples, quantity.SI(n.Sample, "s"), quantity.Half(n.Quartiles), 100*n.Range, quantity.Half(n.HalfWidth))
	b.WriteString("\n")
	if len(d.Advice) == 0 {
		b.WriteString("no measurement problems found\n")
	}
	for i, a := range d.Advice {
		fmt.Fprintln(&b, table.Paragraph(fmt.Sprintf("%d. %s", i+1, a.What), width, 3))
		fmt.Fprintln(&b, table.Paragraph("   → "+a.Remedy, width, 5))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// unsure marks a limit that may be too low.
func (d diagnosis) unsure(name string) string { return unsure(d.Device.Unsure, name) }

func unsure(names []string, name string) string {
	if slices.Contains(names, name) {
		return " (unsure)"
	}
	return ""
}

// printHierarchy prints a processor's measured barriers, memories and products.
func printHierarchy(line func(name, format string, args ...any), m *model.Machine) {
	for _, l := range m.Levels {
		if l.P > 1 {
			exchange := "exchange rate " + quantity.SI(l.X, "B/s")
			if l.X == 0 {
				exchange = "exchange rate hidden by noise"
			}
			line("  barrier", "%s for all workers; %s", quantity.SI(l.C, "s"), exchange)
		}
	}
	if n := len(m.Meetings); n > 1 {
		var few []string
		for _, x := range m.Meetings[:n-1] {
			few = append(few, fmt.Sprintf("%s for %d", quantity.SI(x.Seconds, "s"), x.Parts))
		}
		line("", "%s", strings.Join(few, ", "))
	}
	each := float64(m.Parts())
	var rates []string
	for i, l := range m.Levels {
		rate := l.B
		if i < m.Private() {
			rate *= each
		}
		rates = append(rates, l.Name+" "+quantity.SI(rate, "B/s")+unsure(m.Unsure, l.Name))
	}
	line("  weights", "%s, read by single-row products", strings.Join(rates, ", "))
	line("  products", "%s from the nearest cache; %s sigmoids in the cell", quantity.SI(m.FLOPS, "FLOP/s"), quantity.SI(m.Pointwise, "/s"))
}

// printGPU prints the GPU's name, libraries and state.
func (d diagnosis) printGPU(line func(name, format string, args ...any)) {
	line("GPU", "%s, %s multiprocessors", d.Device.Name, d.Device.Facts["workers"])
	var libraries []string
	for _, name := range []string{"driver", "cuda", "cublas", "nvrtc", "cudnn"} {
		if v := d.Device.Facts[name]; v != "" {
			libraries = append(libraries, name+" "+v)
		}
	}
	line("libraries", "%s", strings.Join(libraries, ", "))
	for _, f := range d.State {
		line(f.Name, "%s", f.Value)
	}
	line("measured", "on the GPU:")
}

// joined joins the non-empty words with commas.
func joined(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), ", ")
}

// workersText formats a number of workers.
func workersText(n string) string {
	if n == "1" {
		return "1 worker"
	}
	return n + " workers"
}
