package page

import (
	"strconv"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// A Sheet is a table in the form of the page.
type Sheet struct {
	Title   string
	Columns []table.Column
	Rows    [][]Cell
	Notes   []string
}

// A Cell has in Sort the number to sort by, unless its text is that number.
type Cell struct {
	Text, Sort, Class string
	Link              string // address; "": the text leads nowhere
	Right             bool
}

// long is the number of characters from which on a text is not squeezed into a narrow column.
const long = 24

// Classes are c's classes in the style sheet. The style sheet itself aligns cells with Sort.
func (c Cell) Classes() string {
	switch {
	case c.Right && c.Sort == "" && c.Text != "":
		return strings.TrimSpace("r " + c.Class)
	case !c.Right && len(c.Text) > long:
		return strings.TrimSpace("w " + c.Class)
	}
	return c.Class
}

// NewSheet makes a sheet of the columns of t that are for readers: those with a name. Cells lead to where
// link says that a record is; nil: the page has no records.
func NewSheet(t *table.Table, link func(*record.Record) string) *Sheet {
	s := &Sheet{Title: t.Title, Notes: t.Notes}
	columns := shown(t)
	for _, i := range columns {
		s.Columns = append(s.Columns, t.Columns[i])
	}
	for _, row := range t.Rows {
		line := make([]Cell, len(columns))
		for i, j := range columns {
			c := row[j]
			line[i] = Cell{Text: quantity.OneLine(c.Text), Right: t.Columns[j].Right, Class: [...]string{"", "near", "far", "worst"}[c.Grade]}
			if line[i].Link = c.Link; c.Link == "" && c.From != nil && c.Text != "" && link != nil {
				line[i].Link = link(c.From)
			}
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
