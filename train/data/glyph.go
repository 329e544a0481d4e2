package data

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gobolditalic"
	"golang.org/x/image/font/gofont/goitalic"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// fine is the number of dots along each side of a pixel.
const fine = 8

// fonts are the fonts that digits are drawn in.
var fonts = sync.OnceValues(func() ([]*sfnt.Font, error) {
	var all []*sfnt.Font
	for _, ttf := range [][]byte{goregular.TTF, gobold.TTF, goitalic.TTF, gobolditalic.TTF, gomono.TTF, gomonobold.TTF} {
		f, err := sfnt.Parse(ttf)
		if err != nil {
			return nil, fmt.Errorf("a font of Go cannot be read: %w", err)
		}
		all = append(all, f)
	}
	return all, nil
})

// A line is an edge of an outline. Coordinates are 1/64 of a dot.
type line struct{ x0, y0, x1, y1 int }

// outline is a digit as straight edges, with its center at 0, at so many dots per em. Integers make
// it the same on every machine.
func outline(f *sfnt.Font, digit, size int) ([]line, error) {
	var buffer sfnt.Buffer
	glyph, err := f.GlyphIndex(&buffer, rune('0'+digit))
	if err != nil {
		return nil, err
	}
	segments, err := f.LoadGlyph(&buffer, glyph, fixed.I(size), nil)
	if err != nil {
		return nil, err
	}
	box := segments.Bounds()
	center := box.Min.Add(box.Max).Div(fixed.I(2))
	var lines []line
	var at fixed.Point26_6
	to := func(p fixed.Point26_6) {
		lines = append(lines, line{int(at.X), int(at.Y), int(p.X), int(p.Y)})
		at = p
	}
	for _, s := range segments {
		for i := range s.Args {
			s.Args[i] = s.Args[i].Sub(center)
		}
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			at = s.Args[0]
		case sfnt.SegmentOpLineTo:
			to(s.Args[0])
		case sfnt.SegmentOpQuadTo: // TrueType has no cubic curves
			from := at
			const pieces = 8
			for i := fixed.Int26_6(1); i <= pieces; i++ {
				j := pieces - i
				mix := func(a, b, c fixed.Int26_6) fixed.Int26_6 { return (j*j*a + 2*i*j*b + i*i*c) / (pieces * pieces) }
				to(fixed.Point26_6{X: mix(from.X, s.Args[0].X, s.Args[1].X), Y: mix(from.Y, s.Args[0].Y, s.Args[1].Y)})
			}
		}
	}
	return lines, nil
}

// A picture gives the number of inked dots in any rectangle: sums[y·(side+1)+x] counts those above
// and left of dot (x, y).
type picture struct {
	side        int // dots
	sums        []int32
	top, bottom int // the first row with ink, and the row after the last
}

// draw fills an outline by the rule of non-zero winding, with its center at dot (x, y).
func draw(lines []line, side, x, y int) *picture {
	p := &picture{side: side, sums: make([]int32, (side+1)*(side+1))}
	type crossing struct{ x, winding int }
	var row []crossing
	first, last := 0, 0 // heights that lines reach
	for _, l := range lines {
		first, last = min(first, l.y0, l.y1), max(last, l.y0, l.y1)
	}
	for dot := range side {
		level := 64*(dot-y) + 32 // through the centers of dots
		if level < first || level > last {
			copy(p.sums[(dot+1)*(side+1):][:side+1], p.sums[dot*(side+1):])
			continue
		}
		row = row[:0]
		for _, l := range lines {
			if (l.y0 <= level) != (l.y1 <= level) {
				winding := 1
				if l.y0 > l.y1 {
					winding = -1
				}
				row = append(row, crossing{64*x + l.x0 + (l.x1-l.x0)*(level-l.y0)/(l.y1-l.y0), winding})
			}
		}
		slices.SortFunc(row, func(a, b crossing) int { return a.x - b.x })
		above, here := p.sums[dot*(side+1):], p.sums[(dot+1)*(side+1):]
		winding, next, inked := 0, 0, int32(0)
		for i := range side {
			for next < len(row) && row[next].x <= 64*i+32 {
				winding += row[next].winding
				next++
			}
			if winding != 0 {
				inked++
			}
			here[i+1] = above[i+1] + inked
		}
		if inked > 0 {
			if p.bottom == 0 {
				p.top = dot
			}
			p.bottom = dot + 1
		}
	}
	return p
}
