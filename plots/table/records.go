package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/results"
)

// Records lists one record a row, sorted by point and then as legends list
// techniques. Axes along which the records do not differ are in the title
// instead of a column. Speed-ups are over the technique named baseline.
func Records(recs []results.Record, baseline string) (*Table, error) {
	if len(recs) == 0 {
		return nil, fmt.Errorf("table: no records to show")
	}
	all := quantity.Latest(recs)
	base := quantity.NewBaseline(recs, baseline)
	axes := slices.DeleteFunc(quantity.Axes(), func(a quantity.Axis) bool { return a.Name == "impl" })
	impl, err := quantity.AxisOf("impl", nil)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(x, y *results.Record) int {
		for _, a := range append(slices.Clone(axes), impl) {
			if c := a.Compare(x, y); c != 0 {
				return c
			}
		}
		return strings.Compare(x.Key(), y.Key())
	})
	varying := map[string]bool{}
	for _, a := range quantity.Varying(all) {
		varying[a.Name] = true
	}
	knobs := varyingKnobs(all)

	t := &Table{Title: title(all)}
	var fill []func(r *results.Record) Cell
	column := func(c Column, f func(r *results.Record) Cell) {
		t.Columns = append(t.Columns, c)
		fill = append(fill, f)
	}
	for _, a := range axes {
		c := Column{Key: a.Name, Right: a.Numeric}
		if varying[a.Name] {
			c.Name = a.Name
		}
		column(c, func(r *results.Record) Cell {
			if n, ok := r.Point.Axis(a.Name); ok && a.Numeric {
				return Cell{Text: a.Text(r), Value: n}
			}
			return Text(a.Text(r))
		})
	}
	column(Column{Name: "impl", Key: "impl"}, func(r *results.Record) Cell { return Text(quantity.Label(r)) })
	column(Column{Key: "technique"}, func(r *results.Record) Cell { return Text(r.Impl.Name) })
	column(Column{Key: "streams_used"}, func(r *results.Record) Cell { return Int(r.Impl.Streams) })
	settings := Column{Key: "knobs"}
	if len(knobs) > 0 {
		settings.Name = "knobs"
	}
	column(settings, func(r *results.Record) Cell { return knobCell(r, knobs) })
	for _, c := range choiceColumns(t, all) {
		column(c.Column, c.cell)
	}

	best := fastest(all)
	column(Column{Name: "time", Key: "time_s", Right: true}, func(r *results.Record) Cell {
		v, ok := quantity.Time(r)
		if !ok {
			return Cell{}
		}
		c := Number(v.Value, quantity.SI(v.Value, "s"))
		c.Grade = gradeOf(v.Value / best[pointOf(r)])
		return c
	})
	column(Column{Name: "± CI", Right: true}, func(r *results.Record) Cell {
		v, ok := quantity.Time(r)
		switch {
		case !ok:
			return Cell{}
		case !v.Known():
			return Cell{Text: "n/a"}
		}
		return Cell{Text: percent(100 * v.Spread())}
	})
	end := func(pick func(s *results.Stats) *float64) func(r *results.Record) Cell {
		return func(r *results.Record) Cell {
			if r.Stats == nil || pick(r.Stats) == nil {
				return Cell{}
			}
			return Number(*pick(r.Stats), "")
		}
	}
	column(Column{Key: "ci_lo_s"}, end(func(s *results.Stats) *float64 { return s.Lo }))
	column(Column{Key: "ci_hi_s"}, end(func(s *results.Stats) *float64 { return s.Hi }))
	measures := []string{"flops"}
	if slices.ContainsFunc(all, func(r *results.Record) bool { return r.PeakFLOPS() > 0 }) {
		measures = append(measures, "percent")
	}
	if !base.Empty() {
		measures = append(measures, "speedup")
	}
	for _, name := range measures {
		m, err := quantity.MeasureOf(name)
		if err != nil {
			return nil, err
		}
		column(measureColumn(m, baseline), func(r *results.Record) Cell {
			v, ok := m.Of(r, base.For(r))
			if !ok {
				return Cell{}
			}
			return t.measured(m, v.Value)
		})
	}
	column(Column{Key: "mem_bytes"}, func(r *results.Record) Cell { return Cell{Value: r.Work.Memory} })
	column(Column{Name: "status", Key: "status"}, t.status)
	word := func(p *string) Cell {
		if p == nil {
			return Cell{}
		}
		return Text(*p)
	}
	column(Column{Key: "reason_code"}, func(r *results.Record) Cell { return word(r.ReasonCode) })
	column(Column{Key: "reason"}, func(r *results.Record) Cell { return word(r.Reason) })
	warnings := Column{Key: "warnings", Into: "status"}
	if slices.ContainsFunc(all, func(r *results.Record) bool { return len(r.Warnings) > 0 }) {
		warnings.Name = "warnings"
	}
	column(warnings, func(r *results.Record) Cell { return Text(strings.Join(r.Warnings, " ")) })

	for _, r := range all {
		row := make([]Cell, len(fill))
		for i, f := range fill {
			row[i] = f(r)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(t.Notes, quantity.Doubts(all)...)
	t.Fold(all)
	return t, nil
}

// measureColumn is the column of a measure. A narrow terminal has the unit in the
// heading.
func measureColumn(m quantity.Measure, baseline string) Column {
	c := Column{Name: heading(m, baseline), Key: m.Key, Right: true}
	switch m.Name {
	case "flops":
		c.Brief, c.Spare = m.Unit, 2
	case "percent":
		c.Spare = 1
	}
	return c
}

// measured is the cell of a measure's value.
func (t *Table) measured(m quantity.Measure, v float64) Cell {
	switch {
	case m.Name == "percent" && v > 100:
		return Number(v, percent(v)+" "+t.note(beyondPeak))
	case m.Name == "percent":
		return Number(v, percent(v))
	}
	c := Number(v, m.Format(v))
	if m.Name == "flops" {
		c.Brief = quantity.Short(v)
	}
	return c
}

// status is the cell that says what came of a record. What was skipped has its
// reason in the note that stands for its row.
func (t *Table) status(r *results.Record) Cell {
	c := Text(string(r.Status))
	if r.Status == results.OK {
		return c
	}
	c.Text += " (" + quantity.Reason(r) + ")"
	if r.Status != results.Skipped && r.Reason != nil && *r.Reason != "" {
		mark := " " + t.note(*r.Reason)
		c.Brief = string(r.Status) + mark
		c.Text += mark
	}
	return c
}

// beyondPeak is the note at a percentage above 100.
const beyondPeak = "the peak counts multiply-adds of this precision; fp32 on tensor cores and skipped work exceed it"

// note returns the mark of a numbered note, adding it where it is new.
func (t *Table) note(s string) string {
	s = quantity.OneLine(s)
	i := slices.IndexFunc(t.Notes, func(n string) bool { return strings.HasSuffix(n, "] "+s) })
	if i < 0 {
		i = len(t.Notes)
		t.Notes = append(t.Notes, fmt.Sprintf("[%d] %s", i+1, s))
	}
	return fmt.Sprintf("[%d]", i+1)
}

func title(recs []*results.Record) string {
	var words []string
	if !slices.ContainsFunc(recs, func(r *results.Record) bool { return r.Device != recs[0].Device }) {
		words = append(words, recs[0].Device)
	}
	words = append(words, quantity.Common(recs, "impl", "device"))
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " · ")
}

func heading(m quantity.Measure, baseline string) string {
	switch m.Name {
	case "percent":
		return "% of peak"
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

// pointOf names the place at which records are rivals.
func pointOf(r *results.Record) string {
	p := r.Point
	p.Streams = 0
	return fmt.Sprintf("%s|%+v|%s|%t", r.Device, p, r.Mode.Cache, r.Mode.Graph)
}

func fastest(recs []*results.Record) map[string]float64 {
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

// varyingKnobs lists the knobs that tell records of the same label at the same
// point apart. What a technique sets by itself from point to point does not, and
// one that is not set is 0.
func varyingKnobs(recs []*results.Record) []string {
	first := map[string]*results.Record{}
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

// knobCell shows the knobs that vary; its value has all of them.
func knobCell(r *results.Record, shown []string) Cell {
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

// Pivot lays the measure of the records out along two axes. A place that has no
// result says why. Speed-ups are over the technique named baseline.
func Pivot(recs []results.Record, rows, columns, measure, baseline string) (*Table, error) {
	if len(recs) == 0 {
		return nil, fmt.Errorf("table: no records to show")
	}
	across, err := quantity.AxisOf(columns, recs)
	if err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	down, err := quantity.AxisOf(rows, recs)
	if err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	if rows == columns {
		return nil, fmt.Errorf("table: rows and columns are both %s: choose two different axes", rows)
	}
	m, err := quantity.MeasureOf(measure)
	if err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	base := quantity.NewBaseline(recs, baseline)
	if m.Ratio && base.Empty() {
		return nil, fmt.Errorf("table: the baseline %q has no result to compare with: choose another baseline", baseline)
	}
	all := quantity.Latest(recs)
	// What differs besides becomes columns in front, so that no value hides another.
	left := slices.DeleteFunc(quantity.Left(all, down, across), func(a quantity.Axis) bool { return a.Name == rows || a.Name == columns })
	key := append(slices.Clone(left), down)
	chosen, tuned := quantity.Choose(all, append(slices.Clone(key), across)...)

	name := m.Title
	switch {
	case m.Ratio:
		name += " over " + baseline
	case m.Name == "flops": // cells may leave it out
		name += " in " + m.Unit
	}
	t := &Table{Title: strings.Join(slices.DeleteFunc([]string{name, title(all)}, func(s string) bool { return s == "" }), " · ")}
	for _, a := range key {
		t.Columns = append(t.Columns, Column{Name: a.Name, Key: a.Name, Right: a.Numeric})
	}
	column := map[string]int{}
	for _, group := range quantity.Split(chosen, across) {
		column[across.Text(group[0])] = len(t.Columns)
		tag := across.Tag(group[0])
		t.Columns = append(t.Columns, Column{Name: tag, Key: tag, Right: true})
	}
	at := map[string]int{}
	values := [][]float64{}
	for _, r := range chosen {
		k := ""
		for _, a := range key {
			k += a.Text(r) + "\x00"
		}
		i, seen := at[k]
		if !seen {
			i = len(t.Rows)
			at[k] = i
			row := make([]Cell, len(t.Columns))
			for j, a := range key {
				row[j] = axisCell(a, r)
			}
			t.Rows = append(t.Rows, row)
			values = append(values, make([]float64, len(t.Columns)))
		}
		j := column[across.Text(r)]
		v, ok := m.Of(r, base.For(r))
		switch {
		case ok:
			t.Rows[i][j] = Number(v.Value, m.Format(v.Value))
			if m.Name == "flops" {
				t.Rows[i][j].Brief = quantity.Short(v.Value)
			}
			values[i][j] = v.Value
		case r.Seconds() > 0:
			t.Rows[i][j].Text = "n/a"
		default:
			t.Rows[i][j].Text = quantity.Reason(r)
		}
	}
	// Only rivals at one point are graded; sizes are not.
	if columns == "impl" {
		for i, row := range values {
			grade(t.Rows[i], row, m.Less)
		}
	}
	if tuned {
		t.Notes = append(t.Notes, "If a technique was measured with several settings, the fastest is shown.")
	}
	t.Notes = append(t.Notes, quantity.Doubts(chosen)...)
	return t, nil
}

func axisCell(a quantity.Axis, r *results.Record) Cell {
	if n, err := strconv.Atoi(a.Text(r)); a.Numeric && err == nil {
		return Int(n)
	}
	return Text(a.Text(r))
}

// grade colours the values of a row that are not 0.
func grade(cells []Cell, values []float64, less bool) {
	best := math.Inf(1)
	worse := func(v float64) float64 {
		if less {
			return v
		}
		return 1 / v
	}
	for _, v := range values {
		if v > 0 {
			best = min(best, worse(v))
		}
	}
	for i, v := range values {
		if v > 0 {
			cells[i].Grade = gradeOf(worse(v) / best)
		}
	}
}
