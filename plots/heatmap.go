package plots

import (
	"fmt"
	"slices"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// grid returns an empty grid over v's horizontal axis and rows. It also returns the records by
// panel, row and column, and whether slower settings were left out.
func (v *view) grid(rows quantity.Axis) (*Grid, [][][][]*record.Record, bool, error) {
	axes := []quantity.Axis{v.x, rows}
	if v.panel.Name != "" {
		axes = append(axes, v.panel)
	}
	if left := slices.DeleteFunc(quantity.Left(v.recs, append(slices.Clone(axes), v.series)...), func(a quantity.Axis) bool {
		return slices.ContainsFunc(axes, func(u quantity.Axis) bool { return u.Name == a.Name })
	}); len(left) > 0 {
		hint := "select fewer records with --where"
		if v.panel.Name == "" {
			hint = "add --panel " + left[0].Name + ", or " + hint
		} else if v.panel.Name == "impl" { // the default of a heatmap
			hint = "add --panel " + left[0].Name + " and --where impl=NAME, or " + hint
		}
		return nil, nil, false, fmt.Errorf("plots: a map shows one value per place, but the records also differ in %s: %s", titles(left), hint)
	}
	chosen, tuned := quantity.Choose(v.recs, append(slices.Clone(axes), v.series)...)
	g := &Grid{X: capital(v.x.Title), Y: capital(rows.Title), Subtitle: v.subtitle(v.X, rows.Name)}
	spell := func(a quantity.Axis, r *record.Record) string {
		if n, ok := a.Number(r); ok && a.Text(r) != "auto" && a.Text(r) != "H" {
			return quantity.Size(n)
		}
		return a.Text(r)
	}
	column, row := map[string]int{}, map[string]int{}
	for i, same := range quantity.Split(chosen, v.x) {
		column[v.x.Text(same[0])] = i
		g.Columns = append(g.Columns, spell(v.x, same[0]))
	}
	for i, same := range quantity.Split(chosen, rows) {
		row[rows.Text(same[0])] = i
		g.Rows = append(g.Rows, spell(rows, same[0]))
	}
	if len(g.Columns) > 40 || len(g.Rows) > 40 {
		return nil, nil, false, fmt.Errorf("plots: a map of %d by %d places is too large (at most 40 by 40): select fewer records with --where", len(g.Columns), len(g.Rows))
	}
	var at [][][][]*record.Record
	for _, same := range quantity.Split(chosen, v.panel) {
		panel := GridPanel{}
		if v.panel.Name != "" {
			panel.Title = v.panel.Text(same[0])
			if v.panel.Numeric {
				panel.Title = capital(v.panel.Title) + " " + panel.Title
			}
		}
		cells := make([][][]*record.Record, len(g.Rows))
		panel.Cells = make([][]GridCell, len(g.Rows))
		for i := range cells {
			cells[i] = make([][]*record.Record, len(g.Columns))
			panel.Cells[i] = make([]GridCell, len(g.Columns))
		}
		for _, r := range same {
			i, j := row[rows.Text(r)], column[v.x.Text(r)]
			cells[i][j] = append(cells[i][j], r)
		}
		g.Panels = append(g.Panels, panel)
		at = append(at, cells)
	}
	if len(g.Panels) > mostPanels {
		return nil, nil, false, fmt.Errorf("plots: %d panels are too many for a figure (at most %d): choose an axis other than %s, or select fewer records with --where", len(g.Panels), mostPanels, v.Panel)
	}
	return g, at, tuned, nil
}

// rows returns the vertical axis of a grid.
func (v *view) rows(recs []record.Record) (quantity.Axis, error) {
	name := v.Rows
	if name == "" {
		name = usualAxis(v.recs, v.X, v.Panel, v.Series)
	}
	if name == v.X || name == v.Panel {
		return quantity.Axis{}, fmt.Errorf("plots: %s is used for two axes: choose a different axis for one of them", name)
	}
	a, err := quantity.AxisOf(name, recs)
	if err != nil {
		return a, fmt.Errorf("plots: %w", err)
	}
	return a, nil
}

// Heatmap colours a measure over two axes, with a panel for each technique unless s.Panel names
// another axis.
func Heatmap(recs []record.Record, s Spec) (*Grid, error) {
	if s.Panel == "" {
		s.Panel = or(s.Series, "impl")
	}
	// A cell shows one value: records that axes and panels do not distinguish are an error.
	s.Series = "device"
	if s.Panel == "device" {
		s.Series = "impl"
	}
	v, err := s.resolve(recs, "flops")
	if err != nil {
		return nil, err
	}
	rows, err := v.rows(recs)
	if err != nil {
		return nil, err
	}
	g, at, tuned, err := v.grid(rows)
	if err != nil {
		return nil, err
	}
	g.Title = v.title(capital(v.what()) + " by " + v.x.Title + " and " + rows.Title)
	g.Values, g.Format, g.Tick, g.Less = capital(v.withUnit()), v.measure.Short, v.measure.Tick, v.measure.Less
	if v.measure.Ratio {
		g.Center = 1
	}
	var lost []*record.Record
	for i, panel := range at {
		for y, row := range panel {
			for x, cell := range row {
				switch len(cell) {
				case 0:
					continue
				case 1:
				default:
					return nil, fmt.Errorf("plots: a map shows one value per place, but the records also differ in %s: add --panel %s, or select fewer records with --where", v.series.Title, v.series.Name)
				}
				to := &g.Panels[i].Cells[y][x]
				if value, ok := v.value(cell[0]); ok {
					*to = GridCell{Filled: true, Value: value.Value, From: cell[0]}
					continue
				}
				to.Missing, to.From = quantity.Reason(cell[0]), cell[0]
				if cell[0].Seconds() > 0 {
					to.Missing = v.lacks()
				}
				lost = append(lost, cell[0])
			}
		}
	}
	g.Notes = v.notes(tuned, false, lost, nil, []quantity.Axis{v.x, rows, v.panel, v.series})
	return g, nil
}
