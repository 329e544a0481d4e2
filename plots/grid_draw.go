package plots

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"rnnbench/plots/quantity"
)

// colorAt returns the colour at a share of the colour bar. Colours brighten from worse to better
// or, with a centre, change away from white on both sides.
func (g *Grid) colorAt(share float64) color.NRGBA {
	if g.Less {
		share = 1 - share
	}
	if g.Center > 0 {
		return ramp(share, 0x7f3b08, 0xb35806, 0xe08214, 0xfdb863, 0xfee0b6, 0xf7f7f7, 0xd1e5f0, 0x92c5de, 0x4393c3, 0x2166ac, 0x053061)
	}
	return ramp(share, 0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725)
}

// colorBar draws the scale of colours with its values.
func (g *Grid) colorBar(s span) *sidebar {
	axis := Axis{Format: g.Tick}
	scale := scaling{min: s.lo, max: s.hi, log: s.log}
	if s.lo == s.hi {
		return nil // no value, or a single one, which its cells show
	}
	ticks := axis.ticks(scale, func(string) float64 { return 0.06 })
	if s.log {
		// A ratio needs no ticks between powers of two.
		ticks = slices.DeleteFunc(ticks, func(t plot.Tick) bool { return t.IsMinor() })
	}
	width := vg.Length(0)
	for _, t := range ticks {
		width = max(width, tickStyle().Width(t.Label))
	}
	lines := wrap(g.Values, legendStyle(), 130)
	for _, l := range lines {
		width = max(width, legendStyle().Width(l)-22)
	}
	return &sidebar{
		width: 24 + width,
		draw: func(c draw.Canvas) {
			top := fillLines(&c, lines, legendStyle(), c.Min.X, c.Max.Y-4) - 6
			bottom := max(c.Min.Y, top-260)
			const steps = 64
			at := func(share float64) vg.Length { return bottom + vg.Length(share)*(top-bottom) }
			for i := range steps {
				c.SetColor(g.colorAt((float64(i) + 0.5) / steps))
				// Steps overlap a little: renderers leave hairlines between them.
				end := min(top, at(float64(i+1)/steps)+0.5)
				c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: at(float64(i) / steps)}, Max: vg.Point{X: c.Min.X + 14, Y: end}}.Path())
			}
			for _, t := range ticks {
				y := at(scale.at(t.Value))
				if y < bottom-0.5 || y > top+0.5 {
					continue
				}
				c.StrokeLine2(draw.LineStyle{Color: faint(), Width: 0.7}, c.Min.X+14, y, c.Min.X+17, y)
				c.FillText(tickStyle(), vg.Point{X: c.Min.X + 20, Y: y - 3.6}, t.Label)
			}
		},
	}
}

func (g *Grid) frame() *frame {
	columns := columnsFor(len(g.Panels))
	rows := (len(g.Panels) + columns - 1) / columns
	cellW, cellH := vg.Length(62), vg.Length(36)
	switch n := len(g.Columns) * columns; {
	case n > 24:
		cellW = 38
	case n > 14:
		cellW = 48
	}
	widest := vg.Length(0)
	for _, s := range g.Rows {
		widest = max(widest, tickStyle().Width(s))
	}
	f := &frame{
		title:    quantity.OneLine(g.Title),
		subtitle: quantity.OneLine(g.Subtitle),
		notes:    g.Notes,
		// A panel is at least as large as the titles of its axes. Otherwise gonum would make
		// room for them and break the alignment.
		width:  vg.Length(columns)*(max(vg.Length(len(g.Columns))*cellW, labelStyle().Width(g.X)+12)+14+widest) + 30,
		height: vg.Length(rows)*(max(vg.Length(len(g.Rows))*cellH, labelStyle().Width(g.Y)+12)+66) + 10,
	}
	look := map[string]look{}
	if g.Values == "" {
		series := make([]Series, len(g.Categories))
		for i, p := range g.Categories {
			series[i].Label = p
		}
		look = looks(series)
		for _, p := range g.Categories {
			n := 0
			for _, panel := range g.Panels {
				for _, row := range panel.Cells {
					for _, c := range row {
						if c.Category == p {
							n++
						}
					}
				}
			}
			if n == 0 {
				continue
			}
			f.legend = append(f.legend, entry{fmt.Sprintf("%s (%d)", quantity.OneLine(p), n), func(c draw.Canvas) {
				swatch(c, look[p].color)
			}})
		}
	}
	s := g.span()
	if g.Values != "" {
		f.side = g.colorBar(s)
	}
	f.body = func(c draw.Canvas) { g.draw(c, columns, s, look) }
	return f
}

func swatch(c draw.Canvas, col color.NRGBA) {
	c.SetColor(col)
	y := c.Center().Y
	c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X + 8, Y: y - 6}, Max: vg.Point{X: c.Max.X, Y: y + 6}}.Path())
}

func (g *Grid) draw(c draw.Canvas, columns int, s span, look map[string]look) {
	// Names that do not fit side by side are rotated.
	cell := float64(c.Max.X-c.Min.X) / float64(columns) / float64(max(1, len(g.Columns)))
	crowded := false
	for _, n := range g.Columns {
		crowded = crowded || float64(tickStyle().Width(n)) > 0.8*cell
	}
	var plots []*plot.Plot
	for i, panel := range g.Panels {
		p := newPlot(panel.Title)
		p.X.Min, p.X.Max = -0.5, float64(len(g.Columns))-0.5
		p.Y.Min, p.Y.Max = -0.5, float64(len(g.Rows))-0.5
		p.X.Tick.Marker, p.Y.Tick.Marker = names(g.Columns), names(g.Rows)
		p.X.Tick.Length, p.Y.Tick.Length = 3, 3
		if crowded {
			p.X.Tick.Label.Rotation = math.Pi / 4
			p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
		}
		if i+columns >= len(g.Panels) {
			p.X.Label.Text = g.X
		}
		if i%columns == 0 {
			p.Y.Label.Text = g.Y
		}
		p.Add(&cellPlotter{panel, g, s, look})
		plots = append(plots, p)
	}
	tile(c, plots, columns, 0)
}

func names(of []string) plot.ConstantTicks {
	t := make(plot.ConstantTicks, len(of))
	for i, s := range of {
		t[i] = plot.Tick{Value: float64(i), Label: quantity.OneLine(s)}
		if t[i].Label == "" {
			t[i].Label = " "
		}
	}
	return t
}

type cellPlotter struct {
	GridPanel
	grid *Grid
	span span
	look map[string]look
}

// Plot implements plot.Plotter.
func (p *cellPlotter) Plot(c draw.Canvas, pl *plot.Plot) {
	tx, ty := pl.Transforms(&c)
	for y, row := range p.Cells {
		for x, cell := range row {
			r := vg.Rectangle{
				Min: vg.Point{X: tx(float64(x)-0.5) + 0.75, Y: ty(float64(y)-0.5) + 0.75},
				Max: vg.Point{X: tx(float64(x)+0.5) - 0.75, Y: ty(float64(y)+0.5) - 0.75},
			}
			p.cell(&c, cell, r)
			if text := p.says(cell); text != "" {
				say(&c, cell.From, r, "%s %s · %s %s · %s", p.grid.X, p.grid.Columns[x], p.grid.Y, p.grid.Rows[y], text)
			}
		}
	}
}

// says returns the text of a cell for readers who point at it; "": not measured.
func (p *cellPlotter) says(cell GridCell) string {
	switch {
	case !cell.Filled:
		return cell.Missing
	case cell.Category != "" && cell.Close:
		return cell.Category + " " + cell.Text + ", too close to tell"
	case cell.Category != "":
		return cell.Category + " " + cell.Text
	case p.grid.Format != nil:
		return p.grid.Format(cell.Value)
	}
	return quantity.Short(cell.Value)
}

func (p *cellPlotter) cell(c *draw.Canvas, cell GridCell, r vg.Rectangle) {
	fill := func(col color.NRGBA) {
		c.SetColor(col)
		c.Fill(r.Path())
	}
	switch {
	case !cell.Filled && cell.Missing == "":
		// Not measured: the cell stays white.
	case !cell.Filled || cell.Category == "" && !cell.valued():
		fill(rgb(0xececec))
		fitLines(c, r, faint(), or(cell.Missing, "n/a"))
	case cell.Category != "":
		col := p.look[cell.Category].color
		name := quantity.OneLine(cell.Category)
		if cell.Close {
			col = mix(col, rgb(0xffffff), 0.62)
		}
		fill(col)
		fitLines(c, r, textColorOn(col), name, cell.Text)
	default:
		col := p.grid.colorAt(p.span.share(cell.Value))
		fill(col)
		format := p.grid.Format
		if format == nil {
			format = quantity.Short
		}
		fitLines(c, r, textColorOn(col), format(cell.Value))
	}
}

// fitLines writes lines into the middle of r in the largest size that fits. A single line may be
// wrapped.
func fitLines(c *draw.Canvas, r vg.Rectangle, col color.NRGBA, lines ...string) {
	lines = slices.DeleteFunc(lines, func(s string) bool { return s == "" })
	room := r.Size()
	for size := vg.Length(10.5); size >= 5.5; size -= 0.5 {
		sty := write(size, col)
		all := lines
		if len(lines) == 1 && sty.Width(lines[0]) > room.X-5 && strings.Contains(lines[0], " ") {
			all = wrap(lines[0], sty, room.X-5)
		}
		if linesHeight(all, sty) > room.Y-2 || slices.ContainsFunc(all, func(s string) bool { return sty.Width(s) > room.X-5 }) {
			continue
		}
		sty.XAlign = draw.XCenter
		y := r.Min.Y + (room.Y+linesHeight(all, sty))/2
		fillLines(c, all, sty, (r.Min.X+r.Max.X)/2, y)
		return
	}
}
