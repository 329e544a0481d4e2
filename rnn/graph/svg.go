package graph

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Measures of a drawing in pixels.
const (
	fontSize   = 13
	letter     = 7.6 // width of one
	lineHeight = 18
	pad        = 9  // between a box and its text
	gapX       = 56 // between columns
	gapY       = 22 // between boxes of a column
	frame      = 20 // between a recurrent node's frame and its boxes
	margin     = 30
)

type rect struct{ x, y, w, h float64 }

func (r rect) right() float64  { return r.x + r.w }
func (r rect) middle() float64 { return r.y + r.h/2 }
func (r rect) center() float64 { return r.x + r.w/2 }

// SVG draws g, as given or grouped: components from left to right by their level, the layers of one
// in columns by the order of activation.
func (g *Graph) SVG(w io.Writer, grouped bool) error {
	d, err := g.draw(grouped)
	if err != nil {
		return err
	}
	boxes, frames, size := d.place()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="Helvetica, Arial, sans-serif" font-size="%d">`+"\n",
		size.w, size.h, size.w, size.h, fontSize)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(d.title))
	b.WriteString(`<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#333"/></marker>` +
		`<marker id="dot" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><circle cx="4" cy="4" r="3.5" fill="#333"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="white"/>`+"\n", size.w, size.h)
	for _, f := range frames {
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="12" fill="#f4ecf7" stroke="#9b4f96" stroke-dasharray="5 4"/>`+"\n", f.x, f.y, f.w, f.h)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" fill="#9b4f96" font-size="11">recurrent node</text>`+"\n", f.x+10, f.y+f.h-6)
	}
	for _, e := range d.edges {
		drawEdge(&b, e, boxes[e.from], boxes[e.to])
	}
	for i, n := range d.nodes {
		r, radius, fill := boxes[i], 3.0, "white"
		if n.round {
			radius, fill = r.h/2, "#eef5fb"
		}
		if n.double {
			fill = "#f4ecf7"
			fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="6" fill="none" stroke="#9b4f96"/>`+"\n", r.x-3, r.y-3, r.w+6, r.h+6)
		}
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f" fill="%s" stroke="#333"/>`+"\n", r.x, r.y, r.w, r.h, radius, fill)
		for j, line := range n.lines {
			fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#111">%s</text>`+"\n", r.center(), r.y+pad+float64(j)*lineHeight+fontSize, html.EscapeString(line))
		}
	}
	b.WriteString("</svg>\n")
	_, err = io.WriteString(w, b.String())
	return err
}

// place gives every node its box and every framed block its frame.
func (d *drawing) place() (boxes, frames []rect, size rect) {
	boxes = make([]rect, len(d.nodes))
	for i, n := range d.nodes {
		for _, line := range n.lines {
			boxes[i].w = math.Max(boxes[i].w, 2*pad+letter*float64(utf8.RuneCountInString(line)))
		}
		boxes[i].h = 2*pad + lineHeight*float64(len(n.lines)) - (lineHeight - fontSize)
	}
	levels := 0
	for _, b := range d.blocks {
		levels = max(levels, b.level+1)
	}
	var heights []float64
	x := float64(margin)
	for level := range levels {
		wide, y := 0.0, 2.0*margin
		for _, b := range d.blocks {
			if b.level != level {
				continue
			}
			r := b.place(boxes, x, y)
			if b.framed {
				frames = append(frames, r)
			}
			wide, y = math.Max(wide, r.w), y+r.h+gapY
		}
		heights = append(heights, y)
		x += wide + gapX
	}
	size = rect{w: x - gapX + margin, h: 2 * margin}
	for _, h := range heights {
		size.h = math.Max(size.h, h-gapY+2*margin)
	}
	return boxes, frames, size
}

// place puts the boxes of a block at (x, y) and returns what they take.
func (b drawnBlock) place(boxes []rect, x, y float64) rect {
	inset := 0.0
	if b.framed {
		inset = frame
	}
	r := rect{x: x, y: y}
	at := x + inset
	for _, column := range b.columns {
		wide, down := 0.0, y+inset
		for _, n := range column {
			boxes[n].x, boxes[n].y = at, down
			wide, down = math.Max(wide, boxes[n].w), down+boxes[n].h+gapY
		}
		for _, n := range column {
			boxes[n].x += (wide - boxes[n].w) / 2
		}
		at += wide + gapX
		r.h = math.Max(r.h, down-gapY+inset-y)
	}
	r.w = at - gapX + inset - x
	return r
}

// drawEdge draws an arrow to the right as a curve between the sides of its
// boxes, any other as an arc above them.
func drawEdge(b *strings.Builder, e arrow, from, to rect) {
	width, dash, end, aside := 1.0, "", "head", 0.0
	if e.weight == Full {
		width = 2.6
	}
	if e.weight == Diagonal { // a peephole
		width, end, aside = 1.6, "dot", 1 // beside the arrows that end in the same box
	}
	if e.delay > 0 {
		dash = ` stroke-dasharray="6 4"`
	}
	var path string
	var lx, ly float64 // of the label
	if to.x > from.right() {
		x0, y0, x1, y1 := from.right(), from.middle(), to.x, to.middle()+7*aside
		bend := (x1 - x0) / 2
		path = fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x0, y0, x0+bend, y0, x1-bend, y1, x1, y1)
		lx, ly = (x0+x1)/2, (y0+y1)/2-4
	} else {
		x0, x1 := from.center()+6, to.center()-6+18*aside
		top := math.Min(from.y, to.y) - 16 - math.Min(30, math.Abs(x0-x1)/8)
		path = fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x0, from.y, x0, top, x1, top, x1, to.y)
		lx, ly = (x0+x1)/2, 0.125*(from.y+to.y)+0.75*top-3
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="#333" stroke-width="%.1f"%s marker-end="url(#%s)"/>`+"\n", path, width, dash, end)
	if e.delay > 1 { // dashes alone mean a delay of one frame
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="#555" font-size="11" text-anchor="middle">%d</text>`+"\n", lx, ly, e.delay)
	}
}
