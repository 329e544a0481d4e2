package table

import (
	"slices"
	"strings"
)

// shown returns what text formats show of t: columns with a name, and rows that are not folded.
func (t *Table) shown() *Table {
	s := &Table{Title: t.Title, Notes: t.Notes}
	var kept []int
	for i, c := range t.Columns {
		if c.Name != "" {
			kept = append(kept, i)
			s.Columns = append(s.Columns, c)
		}
	}
	for i, row := range t.Rows {
		if t.Folded[i] {
			continue
		}
		cells := make([]Cell, len(kept))
		for j, k := range kept {
			cells[j] = row[k]
		}
		s.Rows = append(s.Rows, cells)
	}
	return s
}

// without returns t without the columns whose index is in out.
func (t *Table) without(out map[int]bool) *Table {
	s := &Table{Title: t.Title, Notes: t.Notes}
	keep := func(i int) bool { return !out[i] }
	for i, c := range t.Columns {
		if keep(i) {
			s.Columns = append(s.Columns, c)
		}
	}
	for _, row := range t.Rows {
		var cells []Cell
		for i, c := range row {
			if keep(i) {
				cells = append(cells, c)
			}
		}
		s.Rows = append(s.Rows, cells)
	}
	return s
}

// withoutEmpty returns t without columns in which no row has a text.
func (t *Table) withoutEmpty() *Table {
	empty := map[int]bool{}
	for i := range t.Columns {
		empty[i] = len(t.Rows) > 0 && !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return row[i].Text != "" })
	}
	return t.without(empty)
}

// emptyText is the text of a cell without a value.
const emptyText = "–"

// withoutConstants moves columns with the same text in every row into the title. It keeps at least
// one column, and returns a table of one row as it is.
func (t *Table) withoutConstants() *Table {
	if len(t.Rows) < 2 {
		return t
	}
	out := map[int]bool{}
	words := []string{t.Title}
	for i, c := range t.Columns {
		first := t.Rows[0][i].Text
		same := first != "" && !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return row[i].Text != first })
		if same && len(out) < len(t.Columns)-1 {
			if out[i] = true; first != emptyText {
				words = append(words, c.Name+" "+first)
			}
		}
	}
	s := t.without(out)
	words = append(words, s.shareWords())
	s.Title = strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " · ")
	return s
}

// pointKey is the key of columns of points.
const pointKey = "point"

// shareWords removes the words that all points share from their cells, and returns them. If a point
// would become empty, it removes none and returns "".
func (t *Table) shareWords() string {
	at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Key == pointKey })
	if at < 0 {
		return ""
	}
	shared := strings.Fields(t.Rows[0][at].Text)
	for _, row := range t.Rows {
		words := strings.Fields(row[at].Text)
		shared = slices.DeleteFunc(shared, func(w string) bool { return !slices.Contains(words, w) })
	}
	own := make([]string, len(t.Rows))
	for i, row := range t.Rows {
		words := strings.Fields(row[at].Text)
		own[i] = strings.Join(slices.DeleteFunc(words, func(w string) bool { return slices.Contains(shared, w) }), " ")
		if own[i] == "" {
			return ""
		}
	}
	for i, row := range t.Rows {
		row[at].Text = own[i]
	}
	return strings.Join(shared, " ")
}

// brief returns t with the short forms of headings and cells. It appends the cells of a column with
// Into to that other column.
func (t *Table) brief() *Table {
	s := &Table{Title: t.Title, Notes: t.Notes, Columns: slices.Clone(t.Columns)}
	for _, row := range t.Rows {
		s.Rows = append(s.Rows, slices.Clone(row))
	}
	for i := range s.Columns {
		short := s.Columns[i].Brief
		if short != "" {
			s.Columns[i].Name = short
		}
		for _, row := range s.Rows {
			if c := &row[i]; c.Brief != "" {
				c.Text = c.Brief
			}
		}
	}
	s.hoistUnits()
	into := map[int]bool{}
	for i, c := range s.Columns {
		to := slices.IndexFunc(s.Columns, func(o Column) bool { return c.Into != "" && o.Key == c.Into })
		if to < 0 {
			continue
		}
		into[i] = true
		for _, row := range s.Rows {
			row[to].Text = strings.TrimSpace(row[to].Text + " " + row[i].Text)
		}
	}
	return s.without(into)
}

// withoutOptional returns t without the column of lowest Spare, and adds a note that it is left
// out. It returns false if no column can be spared.
func (t *Table) withoutOptional() (*Table, bool) {
	at := -1
	for i, c := range t.Columns {
		if c.Spare > 0 && (at < 0 || c.Spare < t.Columns[at].Spare) {
			at = i
		}
	}
	if at < 0 {
		return t, false
	}
	s := t.without(map[int]bool{at: true})
	const says = "Columns left out here: "
	notes := slices.Clone(t.Notes)
	if n := len(notes); n > 0 && strings.HasPrefix(notes[n-1], says) {
		notes[n-1] += ", " + t.Columns[at].Name
	} else {
		notes = append(notes, says+t.Columns[at].Name)
	}
	s.Notes = notes
	return s, true
}

// spare marks the named columns as optional. A narrow terminal lacks the first one first.
func (t *Table) spare(names ...string) {
	for i := range t.Columns {
		t.Columns[i].Spare = 1 + slices.Index(names, t.Columns[i].Name)
	}
}

// fitted writes t so that no line is wider than the terminal. It uses the first form that fits:
// boxes, rows without boxes, the last column below each row, several tables, blocks.
func (t page) fitted() error {
	s := t
	for _, simpler := range []func(*Table) *Table{nil, (*Table).withoutConstants} {
		if simpler != nil {
			s = s.with(simpler(s.Table))
		}
		if natural := s.natural(); sum(natural)+3*len(natural)+1 <= t.o.Width {
			return s.boxed()
		}
	}
	s = s.with(s.brief().withoutEmpty().withoutConstants())
	for spared, ok := s.Table, true; ok; spared, ok = spared.withoutOptional() {
		p := s.with(spared)
		if l, fits := p.layOut(); fits {
			p.lines(l)
			return nil
		}
	}
	if l, fits := s.hang(); fits {
		s.lines(l)
		return nil
	}
	if s.stack() {
		return nil
	}
	t.blocks()
	return nil
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

// natural returns how wide each column is if nothing is wrapped.
func (t page) natural() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = columns(cellText(c.Name, t.o))
		for _, row := range t.Rows {
			widths[i] = max(widths[i], columns(cellText(row[i].Text, t.o)))
		}
	}
	return widths
}
