package table

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// recordColumns builds a table of records.
type recordColumns struct{ builder[*record.Record] }

// result adds a column of what a record's measurement gave.
func (t *recordColumns) result(c Column, f func(*record.Record) Cell) {
	t.column(c, func(r *record.Record) Cell { return f(r).Of(r) })
}

// Records returns a table with one record per row, sorted by point and then by technique, as in
// legends. Axes on which the records agree are in the title. Speed-ups are over the technique
// named baseline.
func Records(recs []record.Record, baseline string) (*Table, error) {
	if len(recs) == 0 {
		return nil, fmt.Errorf("table: no records to show")
	}
	all := quantity.Latest(recs)
	axes := slices.DeleteFunc(quantity.Axes(), func(a quantity.Axis) bool { return a.Name == "impl" })
	impl, err := quantity.AxisOf("impl", nil)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(x, y *record.Record) int {
		for _, a := range append(slices.Clone(axes), impl) {
			if c := a.Compare(x, y); c != 0 {
				return c
			}
		}
		return cmp.Or(iterations(x)-iterations(y), strings.Compare(x.Key(), y.Key()))
	})
	c := &recordColumns{builder[*record.Record]{Table: &Table{Title: title(all)}}}
	c.points(all, axes)
	c.techniques(all)
	c.times(all)
	if err := c.measures(all, quantity.NewBaseline(recs, baseline), baseline); err != nil {
		return nil, err
	}
	c.outcomes(all)
	for _, r := range all {
		c.row(r)
	}
	c.Notes = append(c.Notes, quantity.Doubts(all)...)
	c.Fold(all)
	return c.Table, nil
}

// iterations returns the iterations of training; 0: r is not of training.
func iterations(r *record.Record) int {
	if r.Training == nil {
		return 0
	}
	return r.Training.Iterations
}

// points adds columns of the axes. Text formats show only axes on which records differ.
func (t *recordColumns) points(all []*record.Record, axes []quantity.Axis) {
	varying := map[string]bool{}
	for _, a := range quantity.Varying(all) {
		varying[a.Name] = true
	}
	for _, a := range axes {
		c := Column{Key: a.Name, Right: a.Numeric}
		if varying[a.Name] {
			c.Name = a.Name
		}
		t.column(c, func(r *record.Record) Cell {
			if n, ok := r.Point.Axis(a.Name); ok && a.Numeric {
				return Cell{Text: a.Text(r), Value: n}
			}
			return Text(a.Text(r))
		})
	}
}

// techniques adds columns of the technique, its knobs and the choice of auto.
func (t *recordColumns) techniques(all []*record.Record) {
	t.column(Column{Name: "impl", Key: "impl"}, func(r *record.Record) Cell { return Text(quantity.Label(r)) })
	t.column(Column{Key: "technique"}, func(r *record.Record) Cell { return Text(r.Impl.Name) })
	t.column(Column{Key: "streams_used"}, func(r *record.Record) Cell { return Int(r.Impl.Streams) })
	knobs := varyingKnobs(all)
	settings := Column{Key: "knobs"}
	if len(knobs) > 0 {
		settings.Name = "knobs"
	}
	t.column(settings, func(r *record.Record) Cell { return knobCell(r, knobs) })
	for _, c := range choiceColumns(t.Table, all) {
		t.column(c.Column, c.cell)
	}
}

// times adds columns of the time of a run and its interval.
func (t *recordColumns) times(all []*record.Record) {
	best := fastest(all)
	t.result(Column{Name: "time", Key: "time_s", Right: true}, func(r *record.Record) Cell {
		v, ok := quantity.Time(r)
		if !ok {
			return Cell{}
		}
		c := Number(v.Value, quantity.SI(v.Value, "s"))
		c.Grade = gradeOf(v.Value / best[pointOf(r)])
		return c
	})
	t.result(Column{Name: "± CI", Right: true}, func(r *record.Record) Cell {
		v, ok := quantity.Time(r)
		switch {
		case !ok:
			return Cell{}
		case r.Stats != nil && r.Stats.N == 1:
			return Cell{Text: "one sample"}
		case !v.Known():
			return Cell{Text: "n/a"}
		}
		return Cell{Text: v.Half()}
	})
	end := func(pick func(s *record.Stats) *float64) func(r *record.Record) Cell {
		return func(r *record.Record) Cell {
			if r.Stats == nil || pick(r.Stats) == nil {
				return Cell{}
			}
			return Number(*pick(r.Stats), "")
		}
	}
	t.result(Column{Key: "ci_lo_s"}, end(func(s *record.Stats) *float64 { return s.Lo }))
	t.result(Column{Key: "ci_hi_s"}, end(func(s *record.Stats) *float64 { return s.Hi }))
}

// measures adds columns of the measures that the records have.
func (t *recordColumns) measures(all []*record.Record, base quantity.Baseline, baseline string) error {
	measures := []string{"flops"}
	if slices.ContainsFunc(all, func(r *record.Record) bool { return r.PeakFLOPS() > 0 }) {
		measures = append(measures, "percent")
	}
	if slices.ContainsFunc(all, func(r *record.Record) bool { return r.Floor != nil }) {
		measures = append(measures, "floor")
	}
	if slices.ContainsFunc(all, func(r *record.Record) bool { return r.Training != nil }) {
		t.result(Column{Name: "iterations", Key: "iterations", Right: true}, func(r *record.Record) Cell {
			if r.Training == nil {
				return Cell{}
			}
			return Number(float64(r.Training.Iterations), strconv.Itoa(r.Training.Iterations))
		})
		measures = append(measures, "loss", "held-out")
		if slices.ContainsFunc(all, transcribed) {
			measures = append(measures, "label-errors")
		}
	}
	if slices.ContainsFunc(all, func(r *record.Record) bool { return r.Latency != nil }) {
		measures = append([]string{"latency", "p90", "p99"}, measures...)
	}
	if !base.Empty() {
		measures = append(measures, "speedup")
	}
	for _, name := range measures {
		m, err := quantity.MeasureOf(name)
		if err != nil {
			return err
		}
		t.result(measureColumn(m, baseline), func(r *record.Record) Cell {
			v, ok := m.Of(r, base.For(r))
			if !ok {
				return Cell{}
			}
			c := t.measured(m, v.Value)
			if m.Ratio && v.Known() {
				c.Text, c.Brief = quantity.Times(record.Interval(v)), c.Text
			}
			return c
		})
	}
	if m, err := quantity.MeasureOf("speedup"); err == nil && !base.Empty() {
		for _, end := range []struct {
			key  string
			pick func(quantity.Interval) float64
		}{{"_lo", func(v quantity.Interval) float64 { return v.Lo }}, {"_hi", func(v quantity.Interval) float64 { return v.Hi }}} {
			t.result(Column{Key: m.Key + end.key}, func(r *record.Record) Cell {
				v, ok := m.Of(r, base.For(r))
				if !ok || !v.Known() {
					return Cell{}
				}
				return Number(end.pick(v), "")
			})
		}
	}
	if slices.Contains(measures, "floor") {
		t.column(Column{Key: "floor_s"}, func(r *record.Record) Cell {
			if r.Floor == nil {
				return Cell{}
			}
			return Number(r.Floor.Seconds, "")
		})
		t.column(Column{Key: "floor_bound"}, func(r *record.Record) Cell {
			if r.Floor == nil {
				return Cell{}
			}
			return Text(r.Floor.Bound)
		})
	}
	return nil
}

// outcomes adds columns of memory, status, reasons and warnings.
func (t *recordColumns) outcomes(all []*record.Record) {
	t.column(Column{Key: "mem_bytes"}, func(r *record.Record) Cell { return Cell{Value: r.Work.Memory} })
	t.result(Column{Name: "status", Key: "status"}, t.status)
	word := func(p *string) Cell {
		if p == nil {
			return Cell{}
		}
		return Text(*p)
	}
	t.column(Column{Key: "reason_code"}, func(r *record.Record) Cell { return word(r.ReasonCode) })
	t.column(Column{Key: "reason"}, func(r *record.Record) Cell { return word(r.Reason) })
	warnings := Column{Key: "warnings", Into: "status"}
	if slices.ContainsFunc(all, func(r *record.Record) bool { return len(r.Warnings) > 0 }) {
		warnings.Name = "warnings"
	}
	t.column(warnings, func(r *record.Record) Cell { return Text(strings.Join(r.Warnings, " ")) })
}

// measureColumn returns the column of a measure. On a narrow terminal the unit is in the heading.
func measureColumn(m quantity.Measure, baseline string) Column {
	c := Column{Name: heading(m, baseline), Key: m.Key, Right: true}
	switch m.Name {
	case "flops":
		c.Brief, c.Spare = m.Unit, 3
	case "percent":
		c.Spare = 1
	case "floor": // more useful than percent: it shows how much is left to gain
		c.Spare = 2
	}
	return c
}

// measured returns the cell of a measure's value.
func (t *Table) measured(m quantity.Measure, v float64) Cell {
	switch {
	case m.Name == "percent" && v > 100:
		return Number(v, percent(v)+" "+t.note(beyondPeak))
	case m.Name == "percent" || m.Name == "floor":
		return Number(v, percent(v))
	}
	c := Number(v, m.Format(v))
	if m.Name == "flops" {
		c.Brief = quantity.Short(v)
	}
	return c
}

// status returns the cell of a record's status, with a mark of the note on its reason. The reason
// of a skipped record is in the note for its folded row.
func (t *Table) status(r *record.Record) Cell {
	c := Text(string(r.Status))
	if r.Status == record.OK {
		return c
	}
	c.Text += " (" + quantity.Reason(r) + ")"
	if r.Status != record.Skipped && r.Reason != nil && *r.Reason != "" {
		mark := " " + t.note(*r.Reason)
		c.Brief = string(r.Status) + mark
		c.Text += mark
	}
	return c
}

// beyondPeak is the note on a percentage above 100.
const beyondPeak = "the peak counts multiply-adds of this precision; fp32 on tensor cores and skipped work exceed it"

// note returns the mark of a numbered note, and adds the note if it is new.
func (t *Table) note(s string) string {
	s = quantity.OneLine(s)
	i := slices.IndexFunc(t.Notes, func(n string) bool { return strings.HasSuffix(n, "] "+s) })
	if i < 0 {
		i = len(t.Notes)
		t.Notes = append(t.Notes, fmt.Sprintf("[%d] %s", i+1, s))
	}
	return fmt.Sprintf("[%d]", i+1)
}

func title(recs []*record.Record) string {
	var words []string
	if !slices.ContainsFunc(recs, func(r *record.Record) bool { return r.Device != recs[0].Device }) {
		words = append(words, recs[0].Device)
	}
	words = append(words, quantity.Common(recs, "impl", "device"))
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " · ")
}

// transcribed reports whether r is of a network whose transcripts of held-out data were compared.
func transcribed(r *record.Record) bool {
	return r.Training != nil && r.Training.HeldOut != nil && r.Training.HeldOut.LabelErrors != nil
}

func heading(m quantity.Measure, baseline string) string {
	switch m.Name {
	case "latency":
		return "p50"
	case "p90", "p99":
		return m.Name
	case "percent":
		return "% of peak"
	case "floor":
		return "% of floor"
	case "copy":
		return "% of copy"
	case "loss", "held-out":
		return m.Name
	case "label-errors":
		return "label errors"
	case "speedup":
		return "over " + baseline
	}
	return m.Title
}

func percent(v float64) string {
	if v >= 9.95 {
		return strconv.FormatFloat(v, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " %"
}

// pointOf returns a key that records share if their techniques compete.
func pointOf(r *record.Record) string {
	p := r.Point
	p.Streams = 0
	return fmt.Sprintf("%s|%+v|%s|%t", r.Device, p, r.Mode.Cache, r.Mode.Graph)
}

func fastest(recs []*record.Record) map[string]float64 {
	best := map[string]float64{}
	for _, r := range recs {
		if s := r.Seconds(); s > 0 {
			if b, ok := best[pointOf(r)]; !ok || s < b {
				best[pointOf(r)] = s
			}
		}
	}
	return best
}

// varyingKnobs lists the knobs in which records of the same label at the same point differ. An
// unset knob counts as 0. Knobs that a technique sets differently from point to point do not count.
func varyingKnobs(recs []*record.Record) []string {
	first := map[string]*record.Record{}
	differ := map[string]bool{}
	for _, r := range recs {
		key := fmt.Sprintf("%s|%+v|%s", r.Device, r.Point, quantity.Label(r))
		f := first[key]
		if f == nil {
			first[key] = r
			continue
		}
		for k := range r.Impl.Knobs {
			if r.Impl.Knobs[k] != f.Impl.Knobs[k] {
				differ[k] = true
			}
		}
	}
	names := make([]string, 0, len(differ))
	for k := range differ {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// knobCell returns a cell of r's knobs: its text has those in shown, its value all.
func knobCell(r *record.Record, shown []string) Cell {
	var text, value []string
	names := make([]string, 0, len(r.Impl.Knobs))
	for k := range r.Impl.Knobs {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		s := k + "=" + strconv.Itoa(r.Impl.Knobs[k])
		value = append(value, s)
		if slices.Contains(shown, k) {
			text = append(text, s)
		}
	}
	return Cell{Text: strings.Join(text, " "), Value: strings.Join(value, " ")}
}
