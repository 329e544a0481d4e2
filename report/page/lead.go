package page

import (
	"strings"

	"rnnbench/plots/table"
)

// Lead lets measured numbers of s that lead nowhere yet, such as ratios and means, lead to where to says of their
// row in t, from which s was made.
func (s *Sheet) Lead(t *table.Table, to func(row []table.Cell) string) {
	known := sizes(t)
	for i, row := range t.Rows {
		at := ""
		for j, k := range shown(t) {
			c := &s.Rows[i][j]
			if k < known || c.Link != "" || !t.Columns[k].Right || ofPaper(t.Columns[k]) || !strings.ContainsAny(c.Text, "0123456789") {
				continue
			}
			if at == "" {
				at = to(row)
			}
			c.Link = at
		}
	}
}

// sizes is how many columns at the left say what a row is about: they hold words and whole numbers alone.
func sizes(t *table.Table) int {
	for k, column := range t.Columns {
		for _, row := range t.Rows {
			_, whole := row[k].Value.(int)
			if column.Right && row[k].Text != "" && !whole && !ofPaper(column) {
				return k
			}
		}
	}
	return len(t.Columns)
}

// ofPaper reports whether a column has what a paper printed.
func ofPaper(c table.Column) bool { return strings.Contains(strings.ToLower(c.Name), "paper") }

// shown lists the columns of t that are for readers: those with a name.
func shown(t *table.Table) (list []int) {
	for i, c := range t.Columns {
		if c.Name != "" {
			list = append(list, i)
		}
	}
	return list
}
