// Package table prints tables of records and of results derived from them, for terminals, for
// documents and for other programs.
package table

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"rnnbench/internal/safe"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// A Table is a list of columns and rows. Text formats show its title, the text of its cells and its
// notes. Data formats hold the values of its cells, in SI base units.
type Table struct {
	Title   string
	Columns []Column
	Rows    [][]Cell // each as long as Columns
	Notes   []string // with a number from 1, such as [1], if cells refer to them

	// Folded holds the indices of rows that text formats replace by a note.
	Folded map[int]bool
}

// A Column describes the cells of one column.
type Column struct {
	Name  string // heading of text formats; empty: the column is for data only
	Key   string // name in data formats; empty: the column is for text only
	Right bool   // numbers are aligned right

	// For narrow terminals:
	Brief string // short heading; empty: Name
	Into  string // key of the column to which cells of this one are appended; empty: none
	Spare int    // above 0: the column may be left out, the lowest first
}

// A Cell is one entry: a text, and a value for data formats. The value is nil, a string, a bool, an
// int, an int64 or a finite float64.
type Cell struct {
	Text  string
	Brief string // short Text for a narrow terminal; empty: Text
	Value any
	Grade Grade

	// For pages, where a cell may lead to another page:
	From *record.Record // that the value was measured in; nil: none, or several
	Link string         // address of what the text names; "": none
}

// A Grade says how far a number is from the best of its point.
type Grade int

const (
	Plain Grade = iota
	Near        // within 5 % of the best
	Far         // within a factor of two
	Worst       // beyond
)

// gradeOf grades a value that is ratio times worse than the best.
func gradeOf(ratio float64) Grade {
	switch {
	case !(ratio > 0):
		return Plain
	case ratio <= 1.05:
		return Near
	case ratio <= 2:
		return Far
	}
	return Worst
}

// Options describe where text is shown.
type Options struct {
	TTY   bool // draw boxes
	Color bool // colour numbers by their distance to the best
	ASCII bool // use only ASCII characters
	Width int  // columns of the terminal, which tables must fit; 0: no limit
}

// Formats lists the formats that Write accepts.
func Formats() []string { return []string{"table", "markdown", "csv", "json"} }

// Write prints t in one of Formats. Nothing is truncated.
func (t *Table) Write(w io.Writer, format string, o Options) error {
	for i, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("table: row %d has %d cells for %d columns", i+1, len(row), len(t.Columns))
		}
	}
	var buf bytes.Buffer
	var err error
	switch format {
	case "table":
		err = t.text(&buf, o)
	case "markdown":
		err = t.markdown(&buf, o)
	case "csv":
		err = t.csv(&buf)
	case "json":
		err = t.json(&buf)
	default:
		return fmt.Errorf("table: unknown format %q: choose among %s", format, strings.Join(Formats(), ", "))
	}
	if err != nil {
		return fmt.Errorf("table: %w", err)
	}
	_, err = w.Write(buf.Bytes())
	return err
}

func (t *Table) text(w *bytes.Buffer, o Options) error {
	s := page{t.shown().withoutEmpty(), w, o}
	switch {
	case len(s.Columns) == 0:
		return errors.New("no columns to show")
	case len(s.Rows) == 0 && len(t.Notes) > 0:
		s.heading()
		s.footnotes()
		return nil
	case o.Width > 0:
		return s.fitted()
	}
	return s.boxed()
}

// boxed draws t with lines around its cells.
func (t page) boxed() error {
	t.heading()
	style := tw.StyleASCII
	if t.o.TTY && !t.o.ASCII {
		style = tw.StyleRounded
	}
	err := t.render(t.w, renderer.NewBlueprint(tw.Rendition{Symbols: tw.NewSymbols(style)}), func(c Cell) string {
		return paint(c, cellText(c.Text, t.o), t.o)
	})
	t.footnotes()
	return err
}

func (t *Table) markdown(w *bytes.Buffer, o Options) error {
	o.Color = false
	escape := func(s string) string { return safe.Markdown(cellText(s, o)) }
	if t.Title != "" {
		fmt.Fprintf(w, "**%s**\n\n", escape(t.Title))
	}
	m := t.shown()
	m.Columns = slices.Clone(m.Columns)
	for i := range m.Columns {
		m.Columns[i].Name = escape(m.Columns[i].Name)
	}
	if len(m.Rows) > 0 || len(t.Folded) == 0 {
		if err := m.render(w, renderer.NewMarkdown(), func(c Cell) string { return escape(c.Text) }); err != nil {
			return err
		}
	}
	for i, n := range t.Notes {
		if i == 0 {
			w.WriteString("\n")
		}
		fmt.Fprintf(w, "- %s\n", escape(n))
	}
	return nil
}

// render writes t by tablewriter. Automatic formatting of headings is off, since it would turn
// FLOP/s into FLOP / S.
func (t *Table) render(w io.Writer, r tw.Renderer, text func(Cell) string) error {
	var header []string
	var align []tw.Align
	for _, c := range t.Columns {
		header = append(header, text(Cell{Text: c.Name}))
		if c.Right {
			align = append(align, tw.AlignRight)
		} else {
			align = append(align, tw.AlignLeft)
		}
	}
	if len(header) == 0 {
		return errors.New("no columns to show")
	}
	tab := tablewriter.NewTable(w,
		tablewriter.WithRenderer(r),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAlignmentConfig(tw.CellAlignment{Global: tw.AlignLeft, PerColumn: align}),
		tablewriter.WithRowAlignmentConfig(tw.CellAlignment{Global: tw.AlignLeft, PerColumn: align}),
	)
	tab.Header(header)
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = text(c)
		}
		if err := tab.Append(cells); err != nil {
			return err
		}
	}
	return tab.Render()
}

// cellText returns s on one line, in ASCII if o asks for it.
func cellText(s string, o Options) string {
	s = quantity.OneLine(s)
	if o.ASCII {
		s = ASCII(s)
	}
	return s
}

// data returns the indices and keys of the columns of data formats.
func (t *Table) data() (columns []int, keys []string) {
	for i, c := range t.Columns {
		if c.Key != "" {
			columns = append(columns, i)
			keys = append(keys, c.Key)
		}
	}
	return columns, keys
}

func (t *Table) csv(w io.Writer) error {
	columns, keys := t.data()
	c := csv.NewWriter(w)
	if err := c.Write(keys); err != nil {
		return err
	}
	for _, row := range t.Rows {
		line := make([]string, len(columns))
		for i, j := range columns {
			switch v := row[j].Value.(type) {
			case nil:
			case float64:
				line[i] = strconv.FormatFloat(v, 'g', -1, 64)
			case string:
				line[i] = safe.Cell(v)
			default:
				line[i] = fmt.Sprint(v)
			}
		}
		if err := c.Write(line); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// json writes an array of objects whose keys are in the order of the columns.
func (t *Table) json(w *bytes.Buffer) error {
	columns, keys := t.data()
	w.WriteString("[")
	for n, row := range t.Rows {
		if n > 0 {
			w.WriteString(",")
		}
		w.WriteString("\n  {")
		for i, j := range columns {
			if i > 0 {
				w.WriteString(", ")
			}
			if err := encode(w, keys[i]); err != nil {
				return err
			}
			w.WriteString(": ")
			if err := encode(w, row[j].Value); err != nil {
				return fmt.Errorf("row %d, %s: %w", n+1, keys[i], err)
			}
		}
		w.WriteString("}")
	}
	if len(t.Rows) > 0 {
		w.WriteString("\n")
	}
	w.WriteString("]\n")
	return nil
}

// encode writes v as JSON on one line, without escaping < and >.
func encode(w *bytes.Buffer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	w.Truncate(w.Len() - 1) // the line end
	return nil
}

// Text returns a cell whose text is also its value.
func Text(s string) Cell { return Cell{Text: s, Value: s} }

// Int returns a cell of a whole number.
func Int(n int) Cell { return Cell{Text: strconv.Itoa(n), Value: n} }

// Number returns a cell of a number and its text; an empty cell if the number is not finite.
func Number(v float64, text string) Cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Cell{}
	}
	return Cell{Text: text, Value: v}
}

// Of returns c as a cell of a value of r.
func (c Cell) Of(r *record.Record) Cell {
	c.From = r
	return c
}

// Time returns a cell of the median time of r; an empty cell if r has none.
func Time(r *record.Record) Cell {
	if r.Seconds() == 0 {
		return Cell{}
	}
	return Number(r.Seconds(), quantity.SI(r.Seconds(), "s")).Of(r)
}

// Throughput returns a cell of the FLOP/s of r; an empty cell if r has no time.
func Throughput(r *record.Record) Cell {
	if r.Seconds() == 0 {
		return Cell{}
	}
	return Number(r.FLOPS(), quantity.SI(r.FLOPS(), "FLOP/s")).Of(r)
}
