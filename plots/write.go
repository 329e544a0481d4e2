package plots

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"path/filepath"
	"slices"
	"strings"

	weight "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"rnnbench/record/files"
)

// Formats lists the formats that Write accepts, which are also the endings of files.
func Formats() []string { return []string{"svg", "png", "pdf"} }

// Save writes the figure in the format of the path's ending. An error leaves no partial file.
func Save(path string, f Figure) error {
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	var buf bytes.Buffer
	if err := Write(&buf, f, format); err != nil {
		return err
	}
	if err := files.Write(path, func(w io.Writer) error { _, err := buf.WriteTo(w); return err }); err != nil {
		return fmt.Errorf("plots: %w", err)
	}
	return nil
}

// Write draws the figure in one of Formats. The same figure gives the same bytes in SVG and PNG; a
// PDF also holds the time of writing.
func Write(w io.Writer, f Figure, format string) (err error) {
	// gonum panics if it cannot draw; a figure must not cost anybody a run.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("plots: cannot draw the figure: %v", p)
		}
	}()
	l := f.frame().layout()
	var buf bytes.Buffer
	switch format {
	case "svg":
		c := &svgCanvas{Canvas: vgsvg.New(l.w, l.h)}
		l.draw(draw.NewCanvas(c, l.w, l.h))
		text, err := c.text()
		if err != nil {
			return err
		}
		buf.WriteString(accessible(text, l.title, l.subtitle))
	case "png":
		c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(l.w, l.h), vgimg.UseDPI(144))}
		l.draw(draw.NewCanvas(c, l.w, l.h))
		if _, err := c.WriteTo(&buf); err != nil {
			return fmt.Errorf("plots: %w", err)
		}
	case "pdf":
		err := withTemp(func() error {
			c := vgpdf.New(l.w, l.h)
			l.draw(draw.NewCanvas(pdfCanvas{c}, l.w, l.h))
			_, err := c.WriteTo(&buf)
			return err
		})
		if err != nil {
			return fmt.Errorf("plots: %w", err)
		}
	default:
		return fmt.Errorf("plots: unknown format %q: choose among %s", format, strings.Join(Formats(), ", "))
	}
	_, err = w.Write(buf.Bytes())
	return err
}

// pdfCanvas makes bold text work in PDF. vgpdf stores a bold font by its name without a style, but
// looks it up with one.
type pdfCanvas struct{ *vgpdf.Canvas }

// FillString implements vg.Canvas.
func (c pdfCanvas) FillString(f font.Face, at vg.Point, s string) {
	if f.Font.Weight == weight.WeightBold {
		f.Font.Weight = weight.WeightNormal
		f.Font.Variant += "Bold"
	}
	c.Canvas.FillString(f, at, s)
}

// An svgCanvas records the width of each text. The SVG declares it, so that a viewer with another
// font keeps to the width, and labels do not overlap bars.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString implements vg.Canvas.
func (c *svgCanvas) FillString(f font.Face, at vg.Point, s string) {
	c.widths = append(c.widths, f.Width(s))
	c.Canvas.FillString(f, at, s)
}

// text returns the SVG with the width of each text.
func (c *svgCanvas) text() (string, error) {
	var svg bytes.Buffer
	if _, err := c.WriteTo(&svg); err != nil {
		return "", fmt.Errorf("plots: %w", err)
	}
	const mark = "<text "
	parts := strings.Split(svg.String(), mark) // texts are escaped and cannot contain mark
	if len(parts) != len(c.widths)+1 {
		return "", fmt.Errorf("plots: the figure is not an SVG as expected")
	}
	var b strings.Builder
	b.WriteString(parts[0])
	for i, p := range parts[1:] {
		fmt.Fprintf(&b, `%stextLength="%.4g" lengthAdjust="spacingAndGlyphs" %s`, mark, c.widths[i].Points(), p)
	}
	return b.String(), nil
}

// accessible adds a title to an SVG for screen readers, and fallback fonts for machines that lack
// ours.
func accessible(svg, title, subtitle string) string {
	words := title
	if subtitle != "" {
		words += " (" + subtitle + ")"
	}
	svg = strings.Replace(svg, `xmlns:xlink="http://www.w3.org/1999/xlink">`,
		`xmlns:xlink="http://www.w3.org/1999/xlink" role="img">`+"\n<title>"+html.EscapeString(words)+"</title>", 1)
	return strings.ReplaceAll(svg, "font-family:Liberation Sans;",
		"font-family:'Liberation Sans',Arimo,Arial,Helvetica,sans-serif;")
}

// Note adds notes below a figure. It leaves out those whose words before the first colon stand there
// already: the figure's own note names what it draws.
func Note(f Figure, notes ...string) {
	var have *[]string
	switch f := f.(type) {
	case *Chart:
		have = &f.Notes
	case *Bars:
		have = &f.Notes
	case *Grid:
		have = &f.Notes
	default:
		return
	}
	for _, n := range notes {
		kind, _, _ := strings.Cut(n, ": ")
		if !slices.ContainsFunc(*have, func(h string) bool { own, _, _ := strings.Cut(h, ": "); return own == kind }) {
			*have = append(*have, n)
		}
	}
}
