package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"rnnbench/device"
	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/record/files"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/probe"
)

// Diagnose measures the machine and its noise. It saves the machine for the floors of later records.
func Diagnose(ctx context.Context, b *Bench, env record.Environment) (Diagnosis, error) {
	if err := b.MeasureLimits(); err != nil {
		return Diagnosis{}, err
	}
	if err := b.MeasureMachine(); err != nil {
		return Diagnosis{}, err
	}
	b.SaveMachine()
	noise, err := listen(ctx, b)
	if err != nil {
		return Diagnosis{}, err
	}
	if env.CPU.Steal != nil { // of the last seconds rather than since the start
		env.CPU.Steal = record.Capture(record.Options{Interval: 300 * time.Millisecond}).CPU.Steal
	}
	d := Diagnosis{Environment: env, Device: b.Record(), Noise: noise, machine: b.Machine, rates: b.Limits.More, State: []finding{}, Advice: []advice{}}
	if i, ok := b.Device.(device.Inspector); ok {
		findings, err := i.Inspect()
		if err != nil {
			return Diagnosis{}, err
		}
		for _, f := range findings {
			d.State = append(d.State, finding{f.Name, f.Value})
			if f.Remedy != "" {
				d.Advice = append(d.Advice, advice{f.Name + ": " + f.Value, f.Remedy})
			}
		}
	}
	for _, a := range slices.Concat(b.Crowded(env), b.Disturbed(), b.otherRuns(), b.company(), record.Warnings(env), noise.Advice()) {
		d.Advice = append(d.Advice, advice(a))
	}
	return d, nil
}

// A Diagnosis is what doctor finds.
type Diagnosis struct {
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
func listen(ctx context.Context, b *Bench) (probe.Noise, error) {
	defer b.tell.BusyNow("measuring noise")()
	at := record.Point{Cell: "lstm", Pass: "forward", Hidden: 128, Input: 128, Layers: 1, Batch: 8, Steps: 10, Precision: "fp32"}
	l, err := b.LayOut(at, grid.Spec{Name: "cudnnstyle"})
	if err != nil {
		return probe.Noise{}, err
	}
	prog, err := b.Device.Compile(l.Schedule, l.DeviceKnobs)
	if err != nil {
		return probe.Noise{}, err
	}
	defer prog.Close()
	return probe.Listen(ctx, prog)
}

// WriteMachine writes the measured machine to a file.
func (b *Hardware) WriteMachine(path string) error {
	if b.Machine == nil {
		return ErrNoMachine
	}
	text, err := b.Machine.Format()
	if err != nil {
		return err
	}
	return files.Write(path, func(w io.Writer) error { _, err := w.Write(text); return err })
}

// Print writes d as text in lines of at most width columns; 0: of any length.
func (d Diagnosis) Print(w io.Writer, width int) error {
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
	line("", "%s, %s; this process may use %d", quantity.Plural(c.Cores, "core"), quantity.Plural(c.Threads, "thread"), c.Allowed)
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
func (d Diagnosis) unsure(name string) string { return unsure(d.Device.Unsure, name) }

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
func (d Diagnosis) printGPU(line func(name, format string, args ...any)) {
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
