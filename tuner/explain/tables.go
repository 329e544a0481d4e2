package explain

import (
	"fmt"
	"io"
	"math"
	"strings"

	"rnnbench/internal/safe"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
)

// Write writes e as text, or its passes alone.
func (e *Explanation) Write(w io.Writer, passes bool, style table.Options) error {
	title := fmt.Sprintf("%s · %v", e.Label, e.Point)
	if e.Settings != e.Label {
		title += " · " + e.Settings
	}
	var notes []string
	if e.Predicted != nil {
		notes = table.BandNotes(e.Predicted)
	}
	all := e.Tables(title, notes)
	if passes {
		all = []*table.Table{e.PassTable()}
	}
	if e.Declined != nil {
		if _, err := fmt.Fprintf(w, "%s\ndeclined: %s\n", safe.Text(title), safe.Text(*e.Declined)); err != nil {
			return err
		}
	}
	for i, t := range all {
		if i > 0 || e.Declined != nil {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := t.Write(w, "table", style); err != nil {
			return err
		}
	}
	return nil
}

// Tables returns e as tables, all but the passes.
func (e *Explanation) Tables(title string, notes []string) []*table.Table {
	if e.Declined != nil {
		return e.choices()
	}
	all := []*table.Table{e.operations(title, notes)}
	if len(e.Kernels) > 0 {
		all = append(all, e.kernels())
	}
	if e.Measured != nil {
		all = append(all, e.Measured.table())
	}
	return append(all, e.choices()...)
}

// operations is the table of the schedule's operations.
func (e *Explanation) operations(title string, notes []string) *table.Table {
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
	if len(e.Interpreted) > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("interpreted: the steps of %s run operation by operation, without assembly of their own", strings.Join(e.Interpreted, ", ")))
	}
	t.Notes = append(t.Notes, e.Call.notes()...)
	if e.AtPeak != nil && e.AtCopy != nil {
		t.Notes = append(t.Notes, fmt.Sprintf("lower bounds: %s at %s; %s at %s without cache reuse",
			quantity.SI(*e.AtPeak, "s"), quantity.SI(*e.Peak, "FLOP/s"), quantity.SI(*e.AtCopy, "s"), quantity.SI(*e.Copy, "B/s")))
	}
	t.Notes = append(t.Notes, notes...)
	if len(e.Kernels) == 0 { // else the kernels' table has it
		t.Notes = append(t.Notes, e.Floor.notes(e.Measured)...)
	}
	return t
}

// kernels is the table of the kernels that a run launches.
func (e *Explanation) kernels() *table.Table {
	t := &table.Table{Title: "Kernels of one run", Columns: []table.Column{
		{Name: "kernel", Key: "name"}, {Name: "variant", Key: "variant"}, {Name: "launches", Key: "launches", Right: true},
		{Name: "grid", Key: "grid", Right: true}, {Name: "block", Key: "block", Right: true}, {Name: "cluster", Key: "cluster", Right: true},
		{Name: "registers", Key: "registers", Right: true}, {Name: "spills", Key: "spill_bytes", Right: true}, {Name: "shared", Key: "shared_bytes", Right: true},
	}}
	unknown := false
	for _, k := range e.Kernels {
		t.Rows = append(t.Rows, []table.Cell{
			table.Text(k.Name), table.Text(text(k.Variant)), table.Int(k.Launches), table.Text(extent(k.Grid)), table.Text(extent(k.Block)),
			number(k.Cluster), number(k.Registers), bytes(k.Spills), bytes(k.Shared),
		})
		unknown = unknown || k.Grid != nil && k.Registers == nil
		if k.Config != nil {
			t.Notes = append(t.Notes, k.Name+": "+*k.Config)
		}
	}
	if unknown {
		t.Notes = append(t.Notes, "registers and spills are unknown: without a GPU, kernels are not compiled")
	}
	t.Notes = append(t.Notes, e.times()...)
	return t
}

// times says how long a run is predicted to take, and how long it takes at least.
func (e *Explanation) times() (notes []string) {
	if p := e.Expected; p != nil {
		within := "the error of its fit was not recorded for all variants that run"
		if p.Error != nil {
			within = fmt.Sprintf("its error was %.0f %% (root mean square) where it was fitted", 100**p.Error)
		}
		notes = append(notes, fmt.Sprintf("predicted time of the %s: %s%s by the model %q; %s", p.Part, quantity.SI(p.Seconds, "s"), e.parts(), p.Model, within))
	}
	return append(notes, e.Floor.notes(e.Measured)...)
}

// parts says which steps make up the predicted time; "" if they do not add up to it.
func (e *Explanation) parts() string {
	var words []string
	steps, start := 0.0, 0.0
	for _, c := range e.Choices {
		if c.Runs.Step == nil || c.Runs.Start == nil {
			return ""
		}
		of := fmt.Sprintf("%s of %s", quantity.Plural(c.Steps, "step"), quantity.SI(*c.Runs.Step, "s"))
		if c.Count > 1 {
			of = fmt.Sprintf("%d times %s", c.Count, of)
		}
		words = append(words, of)
		steps += float64(c.Count*c.Steps) * *c.Runs.Step
		start += float64(c.Count) * *c.Runs.Start
	}
	if math.Abs(steps+start-e.Expected.Seconds) > e.Expected.Seconds/1000 { // layers that run side by side share time
		return ""
	}
	return fmt.Sprintf(" (%s, and %s to start and end)", strings.Join(words, ", "), quantity.SI(start, "s"))
}

// choices returns, for each choice, the table of the variants that could run the layer.
func (e *Explanation) choices() []*table.Table {
	var all []*table.Table
	for _, c := range e.Choices {
		title := "Variants for an " + c.Layer
		if !strings.ContainsAny(c.Layer[:1], "aeilr") {
			title = "Variants for a " + c.Layer
		}
		if c.Count > 1 {
			title += fmt.Sprintf(", %d times", c.Count)
		}
		t := &table.Table{Title: title, Columns: []table.Column{
			{Name: "variant", Key: "variant"}, {Name: "group", Key: "group"}, {Name: "cycles", Key: "cycles", Right: true}, {Name: "step", Key: "step_s", Right: true},
			{Name: "floor", Key: "floor_s", Right: true}, {Name: "outcome", Key: "why"},
		}}
		add := func(o Option, outcome string) {
			cycles := table.Text("")
			if o.Cycles != nil {
				cycles = table.Number(*o.Cycles, fmt.Sprintf("%.0f", *o.Cycles))
			}
			t.Rows = append(t.Rows, []table.Cell{table.Text(o.Variant), table.Text(text(o.Group)), cycles, seconds(o.Step), seconds(o.Floor), table.Text(outcome)})
		}
		ran := "runs"
		if c.Runs.Why != nil {
			ran += ": " + *c.Runs.Why
		}
		add(c.Runs, ran)
		for _, o := range c.Others {
			add(o, o.outcome(c.Runs))
		}
		t.Notes = append(t.Notes, "group: the blocks that share one copy of the weights, a cluster or spread over the GPU",
			"cycles, step and floor are of one step; floor is the least time of the exchange of states")
		if c.Runs.Source != nil {
			t.Notes = append(t.Notes, fmt.Sprintf("source of %s: %s; Go writes the entry that calls it", c.Runs.Variant, *c.Runs.Source))
		}
		if len(c.Others) > 0 && c.Others[0].Cycles != nil && c.Others[0].Why == nil {
			t.Notes = append(t.Notes, fmt.Sprintf("runner-up %s: %s", c.Others[0].Variant, *c.Others[0].Config))
		}
		all = append(all, t)
	}
	return all
}

// outcome says why o does not run in place of runs.
func (o Option) outcome(runs Option) string {
	switch {
	case o.Config == nil && o.Why != nil:
		return "does not fit: " + *o.Why
	case o.Why != nil:
		return *o.Why
	case o.Cycles != nil && runs.Cycles != nil:
		if *o.Cycles < *runs.Cycles {
			return fmt.Sprintf("expected to be %.0f %% faster, but knobs ask for another", 100*(1 - *o.Cycles / *runs.Cycles))
		}
		if slower := *o.Step / *runs.Step - 1; slower > 0 {
			return fmt.Sprintf("expected to be %.0f %% slower", 100*slower)
		}
		return fmt.Sprintf("ranked behind: %.0f %% more cycles", 100*(*o.Cycles / *runs.Cycles - 1))
	}
	return ""
}

// PassTable lists what each pass found.
func (e *Explanation) PassTable() *table.Table {
	t := &table.Table{Title: "Passes that lower the schedule", Columns: []table.Column{{Name: "pass", Key: "pass"}, {Name: "found", Key: "found"}}}
	for _, p := range e.Passes {
		if len(p.Found) == 0 {
			t.Rows = append(t.Rows, []table.Cell{table.Text(p.Name), table.Text("nothing")})
		}
		for _, f := range p.Found {
			t.Rows = append(t.Rows, []table.Cell{table.Text(p.Name), table.Text(f)})
		}
	}
	return t
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func number(n *int) table.Cell {
	if n == nil {
		return table.Text("")
	}
	return table.Int(*n)
}

func bytes(n *int) table.Cell {
	if n == nil {
		return table.Text("")
	}
	return table.Number(float64(*n), quantity.Bytes(float64(*n)))
}

func seconds(s *float64) table.Cell {
	if s == nil {
		return table.Text("")
	}
	return table.Number(*s, quantity.SI(*s, "s"))
}

// extent spells a geometry without trailing dimensions of 1.
func extent(e *[3]int) string {
	switch {
	case e == nil:
		return ""
	case e[2] > 1:
		return fmt.Sprintf("%d×%d×%d", e[0], e[1], e[2])
	case e[1] > 1:
		return fmt.Sprintf("%d×%d", e[0], e[1])
	}
	return fmt.Sprint(e[0])
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
