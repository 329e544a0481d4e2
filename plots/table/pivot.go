package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// A pivot builds a table of one measure over two axes.
type pivot struct {
	*Table
	across, down quantity.Axis
	key          []quantity.Axis // of rows: other axes that vary, then down
	measure      quantity.Measure
	base         quantity.Baseline
	column       map[string]int // index by place on the axis across
	at           map[string]int // index of rows by their places on the axes of key
	values       [][]float64    // values of Rows; 0: none
}

// Pivot returns a table of one measure over the axes rows and columns. A cell without a result says
// why. Speed-ups are over the technique named baseline.
func Pivot(recs []record.Record, rows, columns, measure, baseline string) (*Table, error) {
	if len(recs) == 0 {
		return nil, fmt.Errorf("table: no records to show")
	}
	p, err := newPivot(recs, rows, columns, measure, baseline)
	if err != nil {
		return nil, err
	}
	all := quantity.Latest(recs)
	// Other axes that vary become columns in front, so that no value hides another.
	left := slices.DeleteFunc(quantity.Left(all, p.down, p.across), func(a quantity.Axis) bool { return a.Name == rows || a.Name == columns })
	p.key = append(slices.Clone(left), p.down)
	chosen, tuned := quantity.Choose(all, append(slices.Clone(p.key), p.across)...)

	name := p.measure.Title
	switch {
	case p.measure.Ratio:
		name += " over " + baseline
	case p.measure.Name == "flops": // cells may leave out the unit
		name += " in " + p.measure.Unit
	}
	p.Title = strings.Join(slices.DeleteFunc([]string{name, title(all)}, func(s string) bool { return s == "" }), " · ")
	p.head(chosen)
	for _, r := range chosen {
		p.fill(r)
	}
	// Only techniques at one point are graded, not sizes.
	if columns == "impl" {
		for i, row := range p.values {
			grade(p.Rows[i], row, p.measure.Less)
		}
	}
	if tuned {
		p.Notes = append(p.Notes, "If a technique was measured with several settings, the fastest is shown.")
	}
	p.Notes = append(p.Notes, quantity.Doubts(chosen)...)
	return p.Table, nil
}

// newPivot looks up the axes, the measure and the baseline.
func newPivot(recs []record.Record, rows, columns, measure, baseline string) (*pivot, error) {
	p := &pivot{Table: &Table{}, column: map[string]int{}, at: map[string]int{}}
	var err error
	if p.across, err = quantity.AxisOf(columns, recs); err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	if p.down, err = quantity.AxisOf(rows, recs); err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	if rows == columns {
		return nil, fmt.Errorf("table: rows and columns are both %s: choose two different axes", rows)
	}
	if p.measure, err = quantity.MeasureOf(measure); err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	p.base = quantity.NewBaseline(recs, baseline)
	if p.measure.Ratio && p.base.Empty() {
		return nil, fmt.Errorf("table: the baseline %q has no result to compare with: choose another baseline", baseline)
	}
	return p, nil
}

// head adds the columns.
func (p *pivot) head(chosen []*record.Record) {
	for _, a := range p.key {
		p.Columns = append(p.Columns, Column{Name: a.Name, Key: a.Name, Right: a.Numeric})
	}
	for _, group := range quantity.Split(chosen, p.across) {
		p.column[p.across.Text(group[0])] = len(p.Columns)
		tag := p.across.Tag(group[0])
		p.Columns = append(p.Columns, Column{Name: tag, Key: tag, Right: true})
	}
}

// fill writes the cell of r.
func (p *pivot) fill(r *record.Record) {
	i, j := p.rowOf(r), p.column[p.across.Text(r)]
	v, ok := p.measure.Of(r, p.base.For(r))
	switch {
	case ok:
		p.Rows[i][j] = Number(v.Value, p.measure.Format(v.Value))
		if p.measure.Name == "flops" {
			p.Rows[i][j].Brief = quantity.Short(v.Value)
		}
		p.values[i][j] = v.Value
	case r.Seconds() > 0:
		p.Rows[i][j].Text = "n/a"
	default:
		p.Rows[i][j].Text = quantity.Reason(r)
	}
	p.Rows[i][j].From = r
}

// rowOf returns the index of r's row, and adds the row if it is new.
func (p *pivot) rowOf(r *record.Record) int {
	k := ""
	for _, a := range p.key {
		k += a.Text(r) + "\x00"
	}
	i, seen := p.at[k]
	if !seen {
		i = len(p.Rows)
		p.at[k] = i
		row := make([]Cell, len(p.Columns))
		for j, a := range p.key {
			row[j] = axisCell(a, r)
		}
		p.Rows = append(p.Rows, row)
		p.values = append(p.values, make([]float64, len(p.Columns)))
	}
	return i
}

func axisCell(a quantity.Axis, r *record.Record) Cell {
	if n, err := strconv.Atoi(a.Text(r)); a.Numeric && err == nil {
		return Int(n)
	}
	return Text(a.Text(r))
}

// grade sets the grades of a row's positive values.
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
