package data

import "testing"

// TestDraw: a square with a square hole is filled except for the hole, and pixels count its dots.
func TestDraw(t *testing.T) {
	square := func(half int) []line { // clockwise where half is positive
		h := 64 * half
		corners := [][2]int{{-h, -h}, {h, -h}, {h, h}, {-h, h}}
		if half < 0 {
			corners = [][2]int{{h, h}, {h, -h}, {-h, -h}, {-h, h}}
		}
		var lines []line
		for i, from := range corners {
			to := corners[(i+1)%4]
			lines = append(lines, line{from[0], from[1], to[0], to[1]})
		}
		return lines
	}
	p := draw(append(square(12), square(-4)...), 40, 16, 20)
	for _, test := range []struct{ x, y, want int }{
		{4, 8, 64}, {0, 8, 32}, {0, 4, 16}, {12, 16, 0}, {8, 16, 32}, {24, 28, 16}, {32, 20, 0}, {-100, 20, 0}, {20, 100, 0}, {24, 16, 32},
	} {
		if got := p.ink(test.x, test.y); got != test.want {
			t.Errorf("the pixel at (%d, %d) has %d dots, not %d", test.x, test.y, got, test.want)
		}
	}
}

// TestOutline: every digit of every font has closed outlines of the height asked for.
func TestOutline(t *testing.T) {
	all, err := fonts()
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range all {
		for digit := range 10 {
			lines, err := outline(f, digit, 200)
			if err != nil || len(lines) < 4 {
				t.Fatalf("digit %d of font %d: %d lines, %v", digit, i, len(lines), err)
			}
			var x, y, bottom int
			for _, l := range lines {
				x, y, bottom = x+l.x1-l.x0, y+l.y1-l.y0, max(bottom, l.y1)
			}
			if x != 0 || y != 0 || bottom < 64*60 || bottom > 64*100 {
				t.Errorf("digit %d of font %d: is open by (%d, %d), or reaches down to %d", digit, i, x, y, bottom)
			}
		}
	}
}

// ink is the number of inked dots of a pixel whose first dot is (x, y). Nothing is inked outside
// the picture.
func (p *picture) ink(x, y int) int {
	clip := func(v int) int { return min(max(v, 0), p.side) }
	x0, y0, x1, y1 := clip(x), clip(y)*(p.side+1), clip(x+fine), clip(y+fine)*(p.side+1)
	return int(p.sums[y1+x1] - p.sums[y0+x1] - p.sums[y1+x0] + p.sums[y0+x0])
}

// TestExpose: each pixel counts its own dots, and rows that are left out have no ink.
func TestExpose(t *testing.T) {
	all, err := fonts()
	if err != nil {
		t.Fatal(err)
	}
	for digit := range 10 {
		lines, err := outline(all[digit%len(all)], digit, fine*22)
		if err != nil {
			t.Fatal(err)
		}
		p := draw(lines, pixels*fine+moves, 140+digit, 170-digit)
		for m := range moves + 1 {
			above, below := p.inked(m)
			var now [pixels * pixels]int32
			p.expose(moves-m, m, 0, pixels, &now)
			for i, got := range now {
				if want := p.ink(i%pixels*fine+moves-m, i/pixels*fine+m); int(got) != want {
					t.Fatalf("digit %d, move %d: pixel %d has %d inked dots, not %d", digit, m, i, got, want)
				}
				if row := i / pixels; got > 0 && (row < above || row >= below) {
					t.Fatalf("digit %d, move %d: row %d has ink, but rows %d to %d alone are exposed", digit, m, row, above, below)
				}
			}
		}
	}
}
