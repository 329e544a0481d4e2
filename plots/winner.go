package plots

import (
	"rnnbench/plots/quantity"
	"rnnbench/results"
)

// Winner draws which technique is the fastest at each place of two axes, and by how much.
func Winner(recs []results.Record, s Spec) (*Grid, error) {
	s.Y = "time"
	v, err := s.resolve(recs, "time")
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
	g.Title = v.title("Fastest " + v.series.Title + " by " + v.x.Title + " and " + rows.Title)
	name := func(r *results.Record) string {
		if v.Series == "impl" {
			return v.series.Text(r)
		}
		return v.series.Tag(r)
	}
	for _, same := range quantity.Split(v.recs, v.series) {
		g.Categories = append(g.Categories, name(same[0]))
	}
	near := false
	var lost []*results.Record
	for i, panel := range at {
		for y, row := range panel {
			for x, cell := range row {
				if len(cell) == 0 {
					continue
				}
				c := winner(cell, name)
				near = near || c.Close
				g.Panels[i].Cells[y][x] = c
				for _, r := range cell {
					if r.Seconds() <= 0 {
						lost = append(lost, r)
					}
				}
			}
		}
	}
	g.Notes = []string{"Numbers: time of the second fastest over time of the fastest."}
	if near {
		g.Notes = append(g.Notes, "Pale: the lead is below 1 % or within the confidence intervals.")
	}
	g.Notes = append(g.Notes, v.notes(tuned, false, lost, nil, []quantity.Axis{v.x, rows, v.panel, v.series})...)
	return g, nil
}

// winner returns the cell of the fastest of rivals, which are the records of one place.
func winner(rivals []*results.Record, name func(*results.Record) string) GridCell {
	var first, second *results.Record
	for _, r := range rivals {
		switch t := r.Seconds(); {
		case t <= 0:
		case first == nil || t < first.Seconds():
			first, second = r, first
		case second == nil || t < second.Seconds():
			second = r
		}
	}
	if first == nil {
		return GridCell{Missing: quantity.Reason(rivals[0])}
	}
	c := GridCell{Filled: true, Category: name(first), Text: "no rival"}
	if second != nil {
		c.Text = quantity.Factor(second.Seconds() / first.Seconds())
		c.Close = !quantity.Clear(first, second)
	}
	return c
}
