package data

import "testing"

// TestDraw: a square with a square hole is filled but for the hole, and pixels count its dots.
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
