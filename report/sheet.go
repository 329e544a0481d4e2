package report

import (
	"strconv"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
)

// A sheet is a table as the page shows it.
type sheet struct {
	Title   string
	Columns []table.Column
	Rows    [][]cell
	Notes   []string
}

// A cell has the number to sort by where its text is not it.
type cell struct {
	Text, Sort, Class string
	Right             bool
}

// newSheet takes the columns of t that are for people.
func newSheet(t *table.Table) *sheet {
	s := &sheet{Title: t.Title, Notes: t.Notes}
	var shown []int
	for i, c := range t.Columns {
		if c.Name != "" {
			shown = append(shown, i)
			s.Columns = append(s.Columns, c)
		}
	}
	for _, row := range t.Rows {
		line := make([]cell, len(shown))
		for i, j := range shown {
			c := row[j]
			line[i] = cell{Text: quantity.OneLine(c.Text), Right: t.Columns[j].Right, Class: [...]string{"", "near", "far", "worst"}[c.Grade]}
			if v, ok := c.Value.(float64); ok {
				line[i].Sort = strconv.FormatFloat(v, 'g', 6, 64)
			}
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}
