package plots

import (
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// Winner draws which technique is the fastest at each place of two axes, and by how much.
func Winner(recs []record.Record, s Spec) (*Grid, error) {
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
	name := func(r *record.Record) string {
		if v.Series == "impl" {
			return v.series.Text(r)
		}
		return v.series.Tag(r)
	}
	for _, same := range quantity.Split(v.recs, v.series) {
		g.Categories = append(g.Categories, name(same[0]))
	}
	near := false
	var lost []*record.Record
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
		g.Notes = append(g.Notes, "Pale: a tie, since the interval of the ratio covers 1 or the lead is below 1 %; or too few samples.")
	}
	g.Notes = append(g.Notes, v.notes(tuned, false, lost, nil, []quantity.Axis{v.x, rows, v.panel, v.series})...)
	return g, nil
}

// winner returns the cell of the fastest of rivals, which are the records of one place.
func winner(rivals []*record.Record, name func(*record.Record) string) GridCell {
	race := quantity.ByTime(rivals)
	first := race[0]
	if first.Seconds() <= 0 {
		return GridCell{Missing: quantity.Reason(rivals[0]), From: rivals[0]}
	}
	c := GridCell{Filled: true, Category: name(first), Text: "no rival", From: first}
	if lead, ok := quantity.LeadOf(race); ok {
		c.Text = quantity.Factor(race[1].Seconds() / first.Seconds())
		c.Close = !lead.Clear()
	}
	return c
}
