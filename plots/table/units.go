package table

import (
	"strings"
)

// hoistUnits moves a unit that all cells of a column share into its heading. Cells in FLOP/s with
// different prefixes keep their prefix.
func (t *Table) hoistUnits() {
	for i := range t.Columns {
		c := &t.Columns[i]
		if !c.Right {
			continue
		}
		unit, ok := t.unitOf(i)
		if !ok {
			continue
		}
		for _, row := range t.Rows {
			if text := strings.TrimSuffix(row[i].Text, unit); text != row[i].Text {
				number, prefix, _ := strings.Cut(text, " ")
				row[i].Text = number + prefix
			}
		}
		switch {
		case strings.Contains(c.Name, unit):
		case strings.HasSuffix(unit, c.Name): // GFLOP/s in a column of FLOP/s
			c.Name = unit
		default:
			c.Name += " " + unit
		}
	}
}

// unitOf returns the unit after the number in every non-empty cell of column i: one unit with its
// prefix, or FLOP/s if only prefixes of FLOP/s differ. It returns false if there is no such unit.
func (t *Table) unitOf(i int) (string, bool) {
	const base = "FLOP/s"
	unit, rates := "", true
	for _, row := range t.Rows {
		text := row[i].Text
		if text == "" {
			continue
		}
		number, u, ok := strings.Cut(text, " ")
		if !ok || strings.Contains(u, " ") || strings.Trim(number, "0123456789.+-") != "" {
			return "", false
		}
		rates = rates && strings.HasSuffix(u, base) && len(u) <= len(base)+1
		switch {
		case unit == "" || unit == u:
			unit = u
		case rates:
			unit = base
		default:
			return "", false
		}
	}
	return unit, unit != ""
}
