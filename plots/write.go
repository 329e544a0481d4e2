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

	"rnnbench/results/files"
)

// Formats lists what Write accepts; a file's ending is one of them.
func Formats() []string { return []string{"svg", "png", "pdf"} }

// Save writes the figure in the format of the path's ending. The file appears
// whole or not at all.
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

// Write draws the figure in one of Formats. SVG and PNG are the same bytes for
// the same figure; PDF carries the time of writing.
func Write(w io.Writer, f Figure, format string) (err error) {
	// gonum panics where it cannot draw; nobody should lose a run over a figure.
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

// pdfCanvas lets a PDF have bold text: vgpdf files a bold font under its name
// with no style, and then looks for it with one.
type pdfCanvas struct{ *vgpdf.Canvas }

// FillString implements vg.Canvas.
func (c pdfCanvas) FillString(f font.Face, at vg.Point, s string) {
	if f.Font.Weight == weight.WeightBold {
		f.Font.Weight = weight.WeightNormal
		f.Font.Variant += "Bold"
	}
	c.Canvas.FillString(f, at, s)
}

// An svgCanvas remembers how wide each text was laid out: a viewer that lacks the
// font has another one keep to that, and labels stay out of bars.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString implements vg.Canvas.
func (c *svgCanvas) FillString(f font.Face, at vg.Point, s string) {
	c.widths = append(c.widths, f.Width(s))
	c.Canvas.FillString(f, at, s)
}

// text is the SVG.
func (c *svgCanvas) text() (string, error) {
	var svg bytes.Buffer
	if _, err := c.WriteTo(&svg); err != nil {
		return "", fmt.Errorf("plots: %w", err)
	}
	const mark = "<text "
	parts := strings.Split(svg.String(), mark) // texts themselves are escaped
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

// accessible gives an SVG a title for those who cannot see it, and fonts for
// machines that lack the one it was laid out with.
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

// Note adds notes below a figure that it does not have.
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
		if !slices.Contains(*have, n) {
			*have = append(*have, n)
		}
	}
}
