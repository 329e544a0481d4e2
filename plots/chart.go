package plots

import (
	"image/color"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// A Chart is a figure of values against a numeric axis, in one panel or several with the same axes.
type Chart struct {
	Title    string
	Subtitle string
	Notes    []string
	X, Y     Axis
	Panels   []Panel
}

// A Panel is one of the plots of a chart.
type Panel struct {
	Title  string
	Series []Series
	Guides []Guide
}

// A Series is a line with marks, or with Scatter only marks. Series with the same label look the
// same in every panel.
type Series struct {
	Label     string
	Like      string // label whose colour to share; empty: its own
	Scatter   bool
	Reference bool // measured by somebody else, such as a paper: dotted and hollow
	Unlisted  bool // has no entry in a legend, since a note explains it
	Points    []Point
}

func (s Series) head() string { return or(s.Like, s.Label) }

// A Point is one value of a series. If it is Missing, the line has a gap there, and the strip
// below has a cross.
type Point struct {
	X, Y    float64
	Lo, Hi  float64   // interval; both 0: none
	Ticks   []float64 // more values within the interval
	Missing bool
	Few     bool // too few samples for an interval: the mark is hollow, or has a dot in a hollow series

	From *record.Record // that the value was measured in; nil: none, or several
}

// A Guide is a line that is not data, such as the peak of the machine.
type Guide struct {
	Label  string
	X0, Y0 float64
	X1, Y1 float64 // equal X: from edge to edge
}

const (
	markRadius = 3.2 * vg.Length(1)
	stripRow   = 9 * vg.Length(1) // height of a row of crosses for missing values
	edge       = 0.05             // share of the horizontal axis beyond the data, at each end
)

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (p Point) drawable() bool { return !p.Missing && finite(p.X) && finite(p.Y) }

func (p Point) interval() bool {
	return finite(p.Lo) && finite(p.Hi) && p.Lo < p.Hi && p.Lo <= p.Y && p.Y <= p.Hi
}

func (ch *Chart) series() []Series {
	var all []Series
	for _, p := range ch.Panels {
		all = append(all, p.Series...)
	}
	return all
}

// missing returns, for each X, the labels of series without a value there. most is the largest
// number of such series at one X.
func (p Panel) missing() (at map[float64][]string, most int) {
	at = map[float64][]string{}
	for _, s := range p.Series {
		for _, pt := range s.Points {
			if pt.Missing && finite(pt.X) {
				at[pt.X] = append(at[pt.X], s.Label)
				most = max(most, len(at[pt.X]))
			}
		}
	}
	return at, most
}

func (ch *Chart) frame() *frame {
	ch = ch.split()
	columns := columnsFor(len(ch.Panels))
	rows := (len(ch.Panels) + columns - 1) / columns
	pw, ph := vg.Length(600), vg.Length(390)
	switch {
	case columns == 2:
		pw, ph = 400, 290
	case columns == 3:
		pw, ph = 320, 270
	case columns == 4:
		pw, ph = 270, 230
	}
	look := looks(ch.series())
	f := &frame{
		title:    quantity.OneLine(ch.Title),
		subtitle: quantity.OneLine(ch.Subtitle),
		notes:    ch.Notes,
		width:    pw * vg.Length(columns),
		height:   ph * vg.Length(max(rows, 1)),
		body:     func(c draw.Canvas) { ch.draw(c, columns, pw, look) },
	}
	own := ch.ownLegends()
	if own {
		f.height += vg.Length(max(rows, 1)) * ch.legendHeight(pw)
	} else {
		f.legend = ch.entries(ch.series(), look)
	}
	if gaps := slices.ContainsFunc(ch.series(), Series.gaps); gaps {
		f.legend = append(f.legend, entry{"no result", func(c draw.Canvas) { cross(&c, c.Center(), faint()) }})
	}
	return f
}

// draw lays the panels out on shared axes.
func (ch *Chart) draw(c draw.Canvas, columns int, panelWidth vg.Length, look map[string]look) {
	var xs, ys, guides []float64
	most := 0
	for _, p := range ch.Panels {
		_, n := p.missing()
		most = max(most, n)
		px, py, pg := p.values()
		xs, ys, guides = append(xs, px...), append(ys, py...), append(guides, pg...)
	}
	rows := (len(ch.Panels) + columns - 1) / columns
	below := vg.Length(0)
	if ch.ownLegends() {
		below = ch.legendHeight(panelWidth)
	}
	height := (c.Max.Y-c.Min.Y)/vg.Length(max(rows, 1)) - 55 - below
	width := (c.Max.X-c.Min.X)/vg.Length(columns) - 65
	all := ch.X.fit(xs, edge, edge)
	y := ch.Y.fit(append(ys, guides...), 0.05, 0.09)
	if most > 0 {
		y.strip = math.Min(0.4, float64(vg.Length(most)*stripRow+5)/float64(height))
	}
	if len(ys)+len(guides) == 0 {
		ch.Y.Places, ch.Y.Format = []float64{0}, func(float64) string { return " " } // nothing was measured
	}
	yticks := ch.Y.ticks(y, func(string) float64 { return float64(tickStyle().Font.Size * 1.3 / height) })

	var plots []*plot.Plot
	for i, panel := range ch.Panels {
		p := newPlot(panel.Title)
		x, places := ch.X.of(panel, all)
		xticks := places.ticks(x, func(s string) float64 { return float64((tickStyle().Width(s) + 8) / width) })
		p.X.Min, p.X.Max, p.X.Tick.Marker = 0, 1, x.on(xticks)
		p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, 1, y.on(yticks)
		if i+columns >= len(ch.Panels) {
			p.X.Label.Text = ch.X.Title
		}
		if i%columns == 0 {
			p.Y.Label.Text = ch.Y.Title
		}
		p.Add(&panelPlotter{panel, ch, look, x, y, xticks, yticks})
		plots = append(plots, p)
	}
	for i, at := range tile(c, plots, columns, below) {
		if below > 0 {
			ch.legend(at, ch.Panels[i], panelWidth, look)
		}
	}
}

// A panelPlotter draws a panel: grid, guides, intervals, lines and marks.
type panelPlotter struct {
	Panel
	chart  *Chart
	look   map[string]look
	x, y   scaling
	xt, yt plot.ConstantTicks
}

// Plot implements plot.Plotter.
func (p *panelPlotter) Plot(c draw.Canvas, _ *plot.Plot) {
	tx := func(v float64) vg.Length { return c.X(p.x.at(v)) }
	ty := func(v float64) vg.Length { return c.Y(p.y.at(v)) }
	grid := draw.LineStyle{Color: rule(), Width: 0.6}
	for _, t := range p.xt {
		if x := tx(t.Value); !t.IsMinor() && c.ContainsX(x) {
			c.StrokeLine2(grid, x, c.Min.Y, x, c.Max.Y)
		}
	}
	for _, t := range p.yt {
		if y := ty(t.Value); !t.IsMinor() && c.ContainsY(y) {
			c.StrokeLine2(grid, c.Min.X, y, c.Max.X, y)
		}
	}
	if p.y.strip > 0 {
		top := c.Y(p.y.strip)
		c.SetColor(rgb(0xf3f3f3))
		c.Fill(vg.Rectangle{Min: c.Min, Max: vg.Point{X: c.Max.X, Y: top}}.Path())
	}
	shift := p.dodge(tx, ty)
	lines := p.lines(&c, tx, ty, shift)
	for _, g := range p.Guides {
		drawGuide(&c, g, tx, ty, lines)
	}
	for k, s := range p.Series {
		l := p.look[s.Label]
		bar := draw.LineStyle{Color: l.color, Width: 0.9}
		for _, pt := range s.Points {
			if !pt.drawable() || !pt.interval() {
				continue
			}
			x, lo, hi := tx(pt.X)+shift[k], ty(pt.Lo), ty(pt.Hi)
			if !c.ContainsX(x) || !c.ContainsY(lo) || !c.ContainsY(hi) {
				continue
			}
			c.StrokeLine2(bar, x, lo, x, hi)
			c.StrokeLine2(bar, x-2.5, lo, x+2.5, lo)
			c.StrokeLine2(bar, x-2.5, hi, x+2.5, hi)
			for _, t := range pt.Ticks {
				c.StrokeLine2(bar, x-1.5, ty(t), x+1.5, ty(t))
			}
		}
	}
	for k, s := range p.Series {
		l := p.look[s.Label]
		var run []vg.Point
		var few []bool
		flush := func() {
			if len(run) > 1 && !s.Scatter {
				l.stroke(&c, run...)
			}
			for i, pt := range run {
				l.mark(&c, pt, few[i])
			}
			run, few = nil, nil
		}
		for _, pt := range s.Points {
			if at := (vg.Point{X: tx(pt.X) + shift[k], Y: ty(pt.Y)}); pt.drawable() && c.Contains(at) {
				run, few = append(run, at), append(few, pt.Few)
				say(&c, pt.From, around(at), "%s · %s %s · %s%s", s.Label, p.chart.X.Title, p.chart.X.format(pt.X, 0, 0), p.chart.Y.format(pt.Y, pt.Lo, pt.Hi), pt.doubt())
			} else {
				flush()
			}
		}
		flush()
	}
	missing, _ := p.missing()
	for _, x := range slices.Sorted(maps.Keys(missing)) {
		for i, l := range missing[x] {
			at := vg.Point{X: tx(x), Y: c.Min.Y + 2 + stripRow*(vg.Length(i)+0.5)}
			if c.ContainsX(at.X) {
				cross(&c, at, p.look[l].color)
				say(&c, nil, around(at), "%s · %s %s · no result", l, p.chart.X.Title, p.chart.X.format(x, 0, 0))
			}
		}
	}
}

func (l look) stroke(c *draw.Canvas, pts ...vg.Point) {
	c.StrokeLines(draw.LineStyle{Color: l.color, Width: 1.7, Dashes: l.dashes}, pts)
}

// doubt says why a mark has no interval.
func (p Point) doubt() string {
	if p.Few {
		return " · too few samples for an interval"
	}
	return ""
}

// mark draws the mark on a white rim, so that crossing lines do not hide it. few: see Point.
func (l look) mark(c *draw.Canvas, at vg.Point, few bool) {
	c.DrawGlyphNoClip(draw.GlyphStyle{Color: rgb(0xffffff), Radius: markRadius + 1, Shape: solid(l.glyph)}, at)
	c.DrawGlyphNoClip(draw.GlyphStyle{Color: l.color, Radius: markRadius, Shape: solid(l.glyph)}, at)
	if l.hollow || few {
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: rgb(0xffffff), Radius: markRadius - 1.4, Shape: solid(l.glyph)}, at)
	}
	if l.hollow && few {
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: l.color, Radius: 0.8, Shape: draw.CircleGlyph{}}, at)
	}
}

func solid(g draw.GlyphDrawer) draw.GlyphDrawer {
	if _, ring := g.(draw.RingGlyph); ring || g == nil {
		return draw.CircleGlyph{}
	}
	return g
}

func cross(c *draw.Canvas, at vg.Point, col color.Color) {
	sty := draw.LineStyle{Color: col, Width: 1.3}
	c.StrokeLine2(sty, at.X-2.8, at.Y-2.8, at.X+2.8, at.Y+2.8)
	c.StrokeLine2(sty, at.X-2.8, at.Y+2.8, at.X+2.8, at.Y-2.8)
}
