package table

import (
	"bytes"
	"strings"
)

// A page writes a table in text form, wrapped to the width of a terminal.
type page struct {
	*Table
	w *bytes.Buffer
	o Options
}

// with returns a page of another table.
func (t page) with(other *Table) page {
	t.Table = other
	return t
}

// A layout holds the widths of the columns of a table without boxes.
type layout struct {
	widths []int
	gap    int  // between two columns
	hang   bool // the last column is written below its row
}

// mostRowLines is the most lines of a row without boxes that stay readable.
const mostRowLines = 3

// layOut returns a layout that fits the terminal, with wrapped texts. It returns false if rows would
// be too tall.
func (t page) layOut() (layout, bool) {
	for _, gap := range []int{2, 1} {
		if l, ok := t.widthsOf(len(t.Columns), gap); ok && t.height(l.widths) <= mostRowLines {
			return l, true
		}
	}
	return layout{}, false
}

// hang is layOut, but writes the last column below its row, if it is a text.
func (t page) hang() (layout, bool) {
	n := len(t.Columns)
	if n < 2 || t.Columns[n-1].Right {
		return layout{}, false
	}
	l, ok := t.widthsOf(n-1, 2)
	l.hang = true
	return l, ok && t.height(l.widths) <= mostRowLines
}

// widthsOf returns widths for the first n columns that fit the terminal. It narrows the widest first.
func (t page) widthsOf(n, gap int) (layout, bool) {
	const broken = 24 // a word that is longer is broken
	natural, least := t.natural()[:n], make([]int, n)
	for i, c := range t.Columns[:n] {
		least[i] = longest(cellText(c.Name, t.o))
		if c.Right { // the heading of numbers may be wrapped
			natural[i] = least[i]
		}
		for _, row := range t.Rows {
			text := cellText(row[i].Text, t.o)
			word := min(longest(text), broken)
			if c.Right && strings.ContainsAny(text, "0123456789") { // a number
				word = columns(text)
			}
			least[i], natural[i] = max(least[i], word), max(natural[i], columns(text))
		}
		if i == 0 && !c.Right {
			least[i] = min(least[i]+continuationIndent, natural[i])
		}
	}
	for sum(natural)+gap*(n-1) > t.o.Width {
		widest := -1
		for i := range natural {
			if natural[i] > least[i] && (widest < 0 || natural[i] > natural[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return layout{}, false
		}
		natural[widest]--
	}
	return layout{widths: natural, gap: gap}, true
}

// height returns how many lines the tallest row takes.
func (t page) height(widths []int) int {
	most := 1
	for _, row := range t.Rows {
		for i, width := range widths {
			most = max(most, len(t.linesOf(row, i, width)))
		}
	}
	return most
}

// continuationIndent is the indent of continuation lines in a row's first cell. It shows where the
// next row begins.
const continuationIndent = 2

// linesOf wraps a cell.
func (t page) linesOf(row []Cell, i, width int) []string {
	text := cellText(row[i].Text, t.o)
	if i == 0 && !t.Columns[i].Right {
		return strings.Split(Paragraph(text, width, continuationIndent), "\n")
	}
	return wrap(text, width)
}

// lines writes t without boxes: title, headings, a rule, rows and notes.
func (t page) lines(l layout) {
	t.heading()
	t.grid(l)
	t.footnotes()
}

// grid writes t without boxes, title and notes.
func (t page) grid(l layout) {
	names := make([]Cell, len(t.Columns))
	rule := make([]Cell, len(l.widths))
	dash := "─"
	if t.o.ASCII {
		dash = "-"
	}
	for i, c := range t.Columns {
		names[i] = Cell{Text: c.Name}
		if i < len(l.widths) {
			rule[i] = Cell{Text: strings.Repeat(dash, l.widths[i])}
		}
	}
	t.line(names, l)
	t.line(rule, layout{widths: l.widths, gap: l.gap})
	for _, row := range t.Rows {
		t.line(row, l)
	}
}

// line writes a row, in as many lines as its tallest cell takes.
func (t page) line(row []Cell, l layout) {
	cells := make([][]string, len(l.widths))
	tall := 1
	for i, width := range l.widths {
		cells[i] = t.linesOf(row, i, width)
		tall = max(tall, len(cells[i]))
	}
	for n := range tall {
		var b strings.Builder
		for i, width := range l.widths {
			text := ""
			if n < len(cells[i]) {
				text = cells[i][n]
			}
			blank := strings.Repeat(" ", max(0, width-columns(text)))
			if t.Columns[i].Right {
				b.WriteString(blank + paint(row[i], text, t.o))
			} else {
				b.WriteString(paint(row[i], text, t.o) + blank)
			}
			b.WriteString(strings.Repeat(" ", l.gap))
		}
		t.w.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
	if last := row[len(row)-1]; l.hang && last.Text != "" {
		const indent = 4
		for _, text := range wrap(cellText(last.Text, t.o), t.o.Width-indent) {
			t.w.WriteString(strings.Repeat(" ", indent) + paint(last, text, t.o) + "\n")
		}
	}
}

// blocks writes each row as a paragraph: the first cell, and below it the others with their
// headings.
func (t page) blocks() {
	const indent = 2
	t.heading()
	names := 0
	for _, c := range t.Columns[1:] {
		names = max(names, columns(cellText(c.Name, t.o)))
	}
	for n, row := range t.Rows {
		if n > 0 {
			t.w.WriteString("\n")
		}
		first := cellText(row[0].Text, t.o)
		if c := t.Columns[0]; c.Right { // a number needs its heading
			first = cellText(c.Name, t.o) + " " + first
		}
		t.w.WriteString(Paragraph(first, t.o.Width, indent) + "\n")
		for i, c := range row[1:] {
			if c.Text == "" {
				continue
			}
			name := cellText(t.Columns[i+1].Name, t.o)
			for j, text := range wrap(cellText(c.Text, t.o), t.o.Width-names-2*indent) {
				if j > 0 {
					name = ""
				}
				t.w.WriteString(strings.Repeat(" ", indent) + name + strings.Repeat(" ", names-columns(name)+indent) + paint(c, text, t.o) + "\n")
			}
		}
	}
	t.footnotes()
}

// heading writes the title.
func (t page) heading() {
	if t.Title != "" {
		t.w.WriteString(parts(cellText(t.Title, t.o), t.o.Width, t.o) + "\n")
	}
}

// footnotes writes the notes.
func (t page) footnotes() {
	for _, n := range t.Notes {
		t.w.WriteString(Paragraph(cellText(n, t.o), t.o.Width, 4) + "\n")
	}
}

// paint colours text, which is c's or a line of it, by c's grade.
func paint(c Cell, text string, o Options) string {
	if !o.Color || c.Grade == Plain || text == "" {
		return text
	}
	return [...]string{"", "\x1b[32m", "\x1b[33m", "\x1b[31m"}[c.Grade] + text + "\x1b[0m"
}
