package plots

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"rnnbench/plots/quantity"
)

// A stretch is a straight piece of a series' line. A single point is a stretch of no length.
type stretch [2]vg.Point

// lines returns the pieces of all lines of the panel, where they are drawn.
func (p *panelPlotter) lines(c *draw.Canvas, tx, ty func(float64) vg.Length, shift []vg.Length) (all []stretch) {
	for k, s := range p.Series {
		var last *vg.Point
		for _, pt := range s.Points {
			at := vg.Point{X: tx(pt.X) + shift[k], Y: ty(pt.Y)}
			if !pt.drawable() || !c.Contains(at) {
				last = nil
				continue
			}
			if last == nil || s.Scatter {
				last = &at
			}
			all = append(all, stretch{*last, at})
			last = &at
		}
	}
	return all
}

// drawGuide draws a dashed line and its label, turned to lie along it.
func drawGuide(c *draw.Canvas, g Guide, tx, ty func(float64) vg.Length, lines []stretch) {
	from, to := vg.Point{X: c.Min.X, Y: ty(g.Y0)}, vg.Point{X: c.Max.X, Y: ty(g.Y1)}
	if g.X0 != g.X1 {
		from.X, to.X = tx(g.X0), tx(g.X1)
	}
	if !c.ContainsY(from.Y) || !c.ContainsY(to.Y) {
		return
	}
	c.StrokeLine2(draw.LineStyle{Color: faint(), Width: 1, Dashes: []vg.Length{5, 3}}, from.X, from.Y, to.X, to.Y)
	sty := write(10, faint())
	sty.Rotation = math.Atan2(float64(to.Y-from.Y), float64(to.X-from.X))
	sin, cos := math.Sincos(sty.Rotation)
	label := quantity.OneLine(g.Label)
	if label == "" {
		return
	}
	if sty.Rotation == 0 {
		box := labelBox(c, from, to, sty.Width(label), lines)
		// Grid lines are interrupted behind the label.
		c.SetColor(rgb(0xffffff))
		c.Fill(box.Path())
		c.FillText(sty, vg.Point{X: box.Min.X + 2, Y: box.Min.Y + 1.5}, label)
		return
	}
	const along = vg.Length(6)
	c.FillText(sty, vg.Point{
		X: from.X + along*vg.Length(cos) - 3*vg.Length(sin),
		Y: from.Y + along*vg.Length(sin) + 3*vg.Length(cos),
	}, label)
}

// labelBox returns where the label of a level guide crosses the fewest lines: at the left, in the
// middle or at the right, above the guide or below it. The first of equally good places is at the
// left, where throughput that grows to the right leaves room.
func labelBox(c *draw.Canvas, from, to vg.Point, width vg.Length, lines []stretch) (best vg.Rectangle) {
	const margin, height = 4, 11.5
	fewest := math.MaxInt
	for _, y := range []vg.Length{from.Y + 1.5, from.Y - 1.5 - height} {
		if y < c.Min.Y {
			continue
		}
		room := to.X - from.X - width - 2*margin - 4
		for _, x := range []vg.Length{from.X + margin, from.X + margin + room/2, from.X + margin + room} {
			box := vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + width + 4, Y: y + height}}
			n := 0
			for _, l := range lines {
				if l.meets(grown(box, markRadius+1)) {
					n++
				}
			}
			if n < fewest {
				fewest, best = n, box
			}
		}
	}
	return best
}

func grown(r vg.Rectangle, by vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: r.Min.X - by, Y: r.Min.Y - by}, Max: vg.Point{X: r.Max.X + by, Y: r.Max.Y + by}}
}

// meets reports whether a part of the stretch lies in the rectangle (Liang and Barsky 1984).
func (l stretch) meets(r vg.Rectangle) bool {
	d := l[1].Sub(l[0])
	enter, leave := vg.Length(0), vg.Length(1)
	for _, side := range [][2]vg.Length{ // direction and distance towards each side
		{-d.X, l[0].X - r.Min.X}, {d.X, r.Max.X - l[0].X},
		{-d.Y, l[0].Y - r.Min.Y}, {d.Y, r.Max.Y - l[0].Y},
	} {
		switch t := side[1] / side[0]; {
		case side[0] == 0 && side[1] < 0:
			return false
		case side[0] < 0:
			enter = max(enter, t)
		case side[0] > 0:
			leave = min(leave, t)
		}
	}
	return enter <= leave
}
