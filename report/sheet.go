package report

import (
	"strconv"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
)

// A sheet is a table in the form of the page.
type sheet struct {
	Title   string
	Columns []table.Column
	Rows    [][]cell
	Notes   []string
}

// A cell has in Sort the number to sort by, unless its text is that number.
type cell struct {
	Text, Sort, Class string
	Right             bool
}

// Classes are c's classes in the style sheet. The style sheet itself aligns cells with Sort.
func (c cell) Classes() string {
	if c.Right && c.Sort == "" && c.Text != "" {
		return strings.TrimSpace("r " + c.Class)
	}
	return c.Class
}

// newSheet makes a sheet of the columns of t that are for readers: those with a name.
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
				if n := short(v); n != line[i].Text {
					line[i].Sort = n
				}
			}
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}

// short spells v for the script in few characters, since a page has many numbers.
func short(v float64) string {
	mantissa, exponent, ok := strings.Cut(strconv.FormatFloat(v, 'g', 4, 64), "e")
	if !ok {
		return mantissa
	}
	sign := strings.TrimPrefix(exponent[:1], "+")
	return mantissa + "e" + sign + strings.TrimLeft(exponent[1:], "0")
}
