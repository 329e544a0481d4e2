package plots

import (
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"rnnbench/plots/quantity"
)

// A Figure can be saved. Chart, Bars and Grid are figures.
type Figure interface {
	frame() *frame
}

// A frame surrounds the body of a figure with a title, a subtitle and notes below. A legend is at
// the right, where it hides no data. The figure grows to hold all of them.
type frame struct {
	title    string
	subtitle string
	notes    []string
	legend   []entry
	side     *sidebar // in place of a legend
	width    vg.Length
	height   vg.Length // of the body
	body     func(c draw.Canvas)
}

// An entry of a legend.
type entry struct {
	label string
	thumb func(c draw.Canvas) // draws into a small canvas
}

// A sidebar is something else to the right of the body, such as a colour bar.
type sidebar struct {
	width vg.Length
	draw  func(c draw.Canvas)
}

const (
	margin     = 16 * vg.Length(1)
	thumbWidth = 34 * vg.Length(1)
	legendMax  = 210 * vg.Length(1) // widest line of a label
	leastWidth = 480 * vg.Length(1) // of a figure, so that titles take few lines
	lineSpace  = 1.25

	// fontSlack is by which share texts may become wider in a viewer that lacks our font. DejaVu Sans, which
	// many systems have in its place, is 15 % wider than Liberation Sans.
	fontSlack = 0.15
)

func titleStyle() text.Style    { return bold(write(16, ink())) }
func subtitleStyle() text.Style { return write(11, faint()) }
func noteStyle() text.Style     { return write(10, faint()) }
func legendStyle() text.Style   { return write(11, ink()) }
func labelStyle() text.Style    { return write(12, ink()) }
func tickStyle() text.Style     { return write(10.5, ink()) }

// A layout is a frame whose texts are broken into lines.
type layout struct {
	*frame
	titleLines, subtitleLines, noteLines []string
	entries                              [][]string
	legendWidth                          vg.Length
	w, h                                 vg.Length
	top, bottom                          vg.Length // above and below the body
}

func (f *frame) layout() layout {
	l := layout{frame: f}
	for _, e := range f.legend {
		lines := wrap(e.label, legendStyle(), legendMax)
		l.entries = append(l.entries, lines)
		for _, s := range lines {
			l.legendWidth = max(l.legendWidth, margin+thumbWidth+6+(1+fontSlack)*legendStyle().Width(s))
		}
	}
	if f.side != nil {
		l.legendWidth = max(l.legendWidth, margin+f.side.width)
	}
	l.w = max(2*margin+f.width+l.legendWidth, leastWidth)
	inner := (l.w - 2*margin) / (1 + fontSlack)
	l.titleLines = wrap(f.title, titleStyle(), inner)
	l.subtitleLines = wrap(f.subtitle, subtitleStyle(), inner)
	for _, n := range f.notes {
		l.noteLines = append(l.noteLines, wrap(n, noteStyle(), inner)...)
	}
	l.top = margin + linesHeight(l.titleLines, titleStyle()) + linesHeight(l.subtitleLines, subtitleStyle()) + 10
	l.bottom = margin
	if len(l.noteLines) > 0 {
		l.bottom += 8 + linesHeight(l.noteLines, noteStyle())
	}
	body := f.height
	var legend vg.Length
	for _, lines := range l.entries {
		legend += linesHeight(lines, legendStyle()) + 3
	}
	l.h = l.top + max(body, legend+10) + l.bottom
	return l
}

func (l layout) draw(c draw.Canvas) {
	c.SetColor(rgb(0xffffff))
	c.Fill(c.Rectangle.Path())
	y := c.Max.Y - margin
	y = fillLines(&c, l.titleLines, titleStyle(), c.Min.X+margin, y)
	fillLines(&c, l.subtitleLines, subtitleStyle(), c.Min.X+margin, y)
	fillLines(&c, l.noteLines, noteStyle(), c.Min.X+margin, c.Min.Y+margin+linesHeight(l.noteLines, noteStyle()))

	body := draw.Crop(c, margin, 0, l.bottom, -l.top)
	body.Max.X = body.Min.X + l.width
	l.body(body)
	right := draw.Crop(c, 2*margin+l.width, -margin, l.bottom, -l.top)
	if l.side != nil {
		l.side.draw(right)
	}
	y = right.Max.Y - 6
	for i, e := range l.legend {
		h := linesHeight(l.entries[i][:1], legendStyle())
		thumb := right
		thumb.Max.X = thumb.Min.X + thumbWidth
		thumb.Max.Y, thumb.Min.Y = y, y-h
		e.thumb(thumb)
		y = fillLines(&right, l.entries[i], legendStyle(), thumb.Max.X+6, y) - 3
	}
}

func linesHeight(lines []string, sty text.Style) vg.Length {
	return vg.Length(len(lines)) * sty.Font.Size * lineSpace
}

// fillLines writes lines downwards from y, and returns the y below the last.
func fillLines(c *draw.Canvas, lines []string, sty text.Style, x, y vg.Length) vg.Length {
	for _, s := range lines {
		c.FillText(sty, vg.Point{X: x, Y: y - 0.98*sty.Font.Size}, s)
		y -= sty.Font.Size * lineSpace
	}
	return y
}

// wrap breaks s into lines no wider than width. It breaks within a word only if the word alone is
// wider, and there after a colon or comma if it can.
func wrap(s string, sty text.Style, width vg.Length) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		for r := []rune(word); len(r) > 1 && sty.Width(string(r)) > width; r = []rune(word) {
			n := longest(r, sty, width)
			if at := strings.LastIndexAny(string(r[:n]), ":,"); at >= 0 { // between two knobs
				n = utf8.RuneCountInString(string(r[:n])[:at+1])
			}
			if line != "" {
				lines = append(lines, line)
				line = ""
			}
			lines = append(lines, string(r[:n]))
			word = string(r[n:])
		}
		switch {
		case line == "":
			line = word
		case sty.Width(line+" "+word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// longest returns how many runes of a too wide word fit width, at least one. It searches by
// bisection, since measuring a text takes time in proportion to its length.
func longest(r []rune, sty text.Style, width vg.Length) int {
	few := 1 // this many fit
	for many := 2; many < len(r) && sty.Width(string(r[:many])) <= width; many *= 2 {
		few = many
	}
	more := min(2*few, len(r)) // this many do not fit
	for few+1 < more {
		if n := (few + more) / 2; sty.Width(string(r[:n])) <= width {
			few = n
		} else {
			more = n
		}
	}
	return few
}

// newPlot returns an empty gonum plot in the style of this package.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text = quantity.OneLine(title)
	sty := bold(write(11.5, ink()))
	sty.XAlign, sty.YAlign = draw.XCenter, draw.YTop
	p.Title.TextStyle = sty
	p.Title.Padding = 5
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		xa, ya := a.Tick.Label.XAlign, a.Tick.Label.YAlign
		a.Tick.Label = tickStyle()
		a.Tick.Label.XAlign, a.Tick.Label.YAlign = xa, ya
		a.Label.TextStyle = labelStyle()
		a.Label.TextStyle.XAlign = draw.XCenter
		a.Label.Padding = 5
		a.Padding = 0
		a.Tick.Length = 5
		a.LineStyle.Color, a.LineStyle.Width = faint(), 0.7
		a.Tick.LineStyle.Color, a.Tick.LineStyle.Width = faint(), 0.7
	}
	return p
}

// tile draws plots in rows, with data areas of one size and aligned, and with room below each for
// a legend. It returns their canvases.
func tile(c draw.Canvas, plots []*plot.Plot, columns int, below vg.Length) (at []draw.Canvas) {
	rows := (len(plots) + columns - 1) / columns
	grid := make([][]*plot.Plot, rows)
	for i := range grid {
		grid[i] = make([]*plot.Plot, columns)
		copy(grid[i], plots[i*columns:min((i+1)*columns, len(plots))])
	}
	canvases := plot.Align(grid, draw.Tiles{Rows: rows, Cols: columns, PadX: 14, PadY: 12 + below, PadBottom: below}, c)
	for i, p := range plots {
		at = append(at, canvases[i/columns][i%columns])
		p.Draw(at[i])
	}
	return at
}

// columnsFor returns the number of columns for n panels.
func columnsFor(n int) int {
	switch {
	case n <= 3:
		return max(n, 1)
	case n == 4:
		return 2
	case n <= 9:
		return 3
	}
	return 4
}
