package table

import "strings"

// stack writes t as several tables below each other. Each begins with the columns that identify a
// row. stack returns false if these leave no room for others.
func (t page) stack() bool {
	keys := t.keys()
	if len(t.Rows) < 2 || keys == 0 || keys == len(t.Columns) {
		return false
	}
	var parts []page
	var layouts []layout
	for next := keys; next < len(t.Columns); {
		var part *page
		var fits layout
		to := next
		for n := next + 1; n <= len(t.Columns); n++ {
			p := t.with(t.columnsOf(keys, next, n))
			l, ok := p.layOut()
			if !ok {
				break
			}
			part, fits, to = &p, l, n
		}
		if part == nil { // a long text in the last column
			p := t.with(t.columnsOf(keys, next, next+1))
			l, ok := p.hang()
			if !ok || next+1 < len(t.Columns) {
				return false
			}
			part, fits, to = &p, l, next+1
		}
		parts, layouts, next = append(parts, *part), append(layouts, fits), to
	}
	t.heading()
	for i, p := range parts {
		if i > 0 {
			t.w.WriteString("\n")
		}
		p.grid(layouts[i])
	}
	t.footnotes()
	return true
}

// keys returns how many columns from the left identify each row; 0: not even all of them do.
func (t *Table) keys() int {
	for n := 1; n <= len(t.Columns); n++ {
		seen := map[string]bool{}
		for _, row := range t.Rows {
			var words []string
			for _, c := range row[:n] {
				words = append(words, c.Text)
			}
			seen[strings.Join(words, "\x00")] = true
		}
		if len(seen) == len(t.Rows) {
			return n
		}
	}
	return 0
}

// columnsOf returns t with its first keys columns, and columns from up to, but not including, to.
func (t *Table) columnsOf(keys, from, to int) *Table {
	out := map[int]bool{}
	for i := keys; i < len(t.Columns); i++ {
		out[i] = i < from || i >= to
	}
	return t.without(out)
}
