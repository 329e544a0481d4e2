package plots

import (
	"fmt"
	"html"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// Inline draws the figure as an SVG element for an HTML page. Invisible shapes above the marks have
// titles, which browsers show as tooltips. They lead to where link says that their record is; nil: nowhere.
// The element sets colours and sizes; the page sets fonts.
func Inline(f Figure, link func(*record.Record) string) (svg string, err error) {
	defer func() {
		if p := recover(); p != nil { // as in Write
			err = fmt.Errorf("plots: cannot draw the figure: %v", p)
		}
	}()
	l := f.frame().layout()
	c := &hoverCanvas{svgCanvas: svgCanvas{Canvas: vgsvg.New(l.w, l.h)}}
	l.draw(draw.NewCanvas(c, l.w, l.h))
	text, err := c.text()
	if err != nil {
		return "", err
	}
	_, body, ok := strings.Cut(text, ">\n<g ")
	body, _, end := strings.Cut(body, "</svg>")
	if !ok || !end {
		return "", fmt.Errorf("plots: the figure is not an SVG as expected")
	}
	body = "<g " + strings.NewReplacer(
		"font-family:Liberation Sans;", "", "font-variant:normal;", "", "font-weight:normal;", "", "font-style:normal;", "", "\n\tstyle", " style",
	).Replace(body)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.5g %.5g" width="%.0f" height="%.0f" role="img" aria-label="%s">`+"\n", l.w, l.h, l.w, l.h,
		html.EscapeString(strings.TrimSpace(l.title+" "+l.subtitle)))
	b.WriteString(body)
	b.WriteString("<g class=\"spots\">\n")
	for _, s := range c.spots {
		size, to, end := s.at.Size(), "", ""
		if link != nil && s.from != nil {
			if at := link(s.from); at != "" {
				to, end = `<a href="`+html.EscapeString(at)+`">`, "</a>"
			}
		}
		fmt.Fprintf(&b, "%s<rect x=\"%.5g\" y=\"%.5g\" width=\"%.4g\" height=\"%.4g\"><title>%s</title></rect>%s\n",
			to, s.at.Min.X, l.h-s.at.Max.Y, size.X, size.Y, html.EscapeString(quantity.OneLine(s.text)), end)
	}
	b.WriteString("</g></svg>")
	return b.String(), nil
}

// A hoverCanvas records the places of values and their texts.
type hoverCanvas struct {
	svgCanvas
	spots []spot
}

type spot struct {
	at   vg.Rectangle
	from *record.Record // nil: none, or several
	text string
}

// say records the text of the value at r and its record, if c draws on a hoverCanvas.
func say(c *draw.Canvas, from *record.Record, r vg.Rectangle, format string, args ...any) {
	under := c.Canvas
	for inner, ok := under.(draw.Canvas); ok; inner, ok = under.(draw.Canvas) {
		under = inner.Canvas // a tile is a canvas on a canvas
	}
	if h, ok := under.(*hoverCanvas); ok {
		h.spots = append(h.spots, spot{r, from, fmt.Sprintf(format, args...)})
	}
}

// around returns a square around p that is large enough to point at.
func around(p vg.Point) vg.Rectangle {
	const reach = 6
	return vg.Rectangle{Min: vg.Point{X: p.X - reach, Y: p.Y - reach}, Max: vg.Point{X: p.X + reach, Y: p.Y + reach}}
}

// format formats a value with its interval, if lo < hi.
func (a Axis) format(v, lo, hi float64) string {
	format := a.FormatValue
	if format == nil {
		format = quantity.Short
	}
	s := format(v)
	if lo < hi {
		s += " (" + format(lo) + " to " + format(hi) + ")"
	}
	return s
}
