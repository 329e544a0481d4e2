package plots

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"rnnbench/record"
)

// marks returns the shapes that distinguish series without colour, the plainest first. A cross is
// not among them, since it marks missing results.
func marks() []draw.GlyphDrawer {
	return []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, diamond{}, nabla{}, star{}, plus{}, rightward{}, leftward{}, plank{}}
}

// fewSamples reports whether r was timed, but has too few samples for an interval: one after a
// time-out, for instance.
func fewSamples(r *record.Record) bool {
	return r.Status == record.OK && r.Stats != nil && r.Stats.N > 0 && r.Stats.Lo == nil
}

// fewNotes explains hollow marks.
func fewNotes(recs []*record.Record) []string {
	few := slices.DeleteFunc(slices.Clone(recs), func(r *record.Record) bool { return !fewSamples(r) })
	if len(few) == 0 {
		return nil
	}
	one := slices.ContainsFunc(few, func(r *record.Record) bool { return r.Stats.N == 1 })
	note := "A mark that is hollow, or has a dot, has no interval: there are too few samples"
	if one {
		note += ", at some only one"
	}
	return []string{note + "."}
}

// A shape is a mark, filled or hollow.
type shape struct {
	glyph  string
	hollow bool
}

func (l look) shape() shape { return shape{fmt.Sprintf("%T", l.glyph), l.hollow} }

// freeMark gives l a mark that is not taken: its own mark if that is free, else the same shape
// hollow or filled, else the first free one. If all are taken, l keeps its own.
func freeMark(l look, taken func(shape) bool) look {
	if !taken(l.shape()) {
		return l
	}
	for _, hollow := range []bool{l.hollow, !l.hollow} {
		for _, g := range append([]draw.GlyphDrawer{l.glyph}, marks()...) {
			o := l
			o.glyph, o.hollow = g, hollow
			if !taken(o.shape()) {
				return o
			}
		}
	}
	return l
}

type diamond struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (diamond) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, pt vg.Point) {
	c.SetColor(sty.Color)
	c.Fill(polygon(pt, 1.15*sty.Radius, 4, math.Pi/2))
}

type nabla struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (nabla) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, pt vg.Point) {
	c.SetColor(sty.Color)
	c.Fill(polygon(pt, 1.15*sty.Radius, 3, -math.Pi/2))
}

type rightward struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (rightward) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, pt vg.Point) {
	c.SetColor(sty.Color)
	c.Fill(polygon(pt, 1.2*sty.Radius, 3, 0))
}

type leftward struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (leftward) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, pt vg.Point) {
	c.SetColor(sty.Color)
	c.Fill(polygon(pt, 1.2*sty.Radius, 3, math.Pi))
}

// A star has five points.
type star struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (star) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, pt vg.Point) {
	var p vg.Path
	for i := range 10 {
		r := 1.45 * sty.Radius
		if i%2 == 1 {
			r = 0.6 * sty.Radius
		}
		sin, cos := math.Sincos(math.Pi/2 + math.Pi*float64(i)/5)
		at := vg.Point{X: pt.X + r*vg.Length(cos), Y: pt.Y + r*vg.Length(sin)}
		if i == 0 {
			p.Move(at)
		} else {
			p.Line(at)
		}
	}
	p.Close()
	c.SetColor(sty.Color)
	c.Fill(p)
}

// A plus is two thick bars.
type plus struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (plus) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, pt vg.Point) {
	long, short := 1.2*sty.Radius, 0.45*sty.Radius
	var p vg.Path
	for i, d := range [][2]vg.Length{{short, long}, {short, short}, {long, short}, {long, -short}, {short, -short}, {short, -long},
		{-short, -long}, {-short, -short}, {-long, -short}, {-long, short}, {-short, short}, {-short, long}} {
		at := vg.Point{X: pt.X + d[0], Y: pt.Y + d[1]}
		if i == 0 {
			p.Move(at)
		} else {
			p.Line(at)
		}
	}
	p.Close()
	c.SetColor(sty.Color)
	c.Fill(p)
}

// A plank is a flat box.
type plank struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (plank) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, pt vg.Point) {
	x, y := 1.3*sty.Radius, 0.55*sty.Radius
	c.SetColor(sty.Color)
	c.Fill(vg.Rectangle{Min: vg.Point{X: pt.X - x, Y: pt.Y - y}, Max: vg.Point{X: pt.X + x, Y: pt.Y + y}}.Path())
}

func polygon(center vg.Point, radius vg.Length, corners int, start float64) vg.Path {
	var p vg.Path
	for i := range corners {
		sin, cos := math.Sincos(start + 2*math.Pi*float64(i)/float64(corners))
		pt := vg.Point{X: center.X + radius*vg.Length(cos), Y: center.Y + radius*vg.Length(sin)}
		if i == 0 {
			p.Move(pt)
		} else {
			p.Line(pt)
		}
	}
	p.Close()
	return p
}
