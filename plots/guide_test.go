package plots

import (
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func TestGuideLabelAvoidsLines(t *testing.T) {
	c := &draw.Canvas{Rectangle: vg.Rectangle{Max: vg.Point{X: 400, Y: 200}}}
	from, to := vg.Point{Y: 100}, vg.Point{X: 400, Y: 100}
	at := func(x0, y0, x1, y1 vg.Length) stretch { return stretch{{X: x0, Y: y0}, {X: x1, Y: y1}} }
	left, right := at(40, 0, 40, 200), at(360, 0, 360, 200)
	for _, test := range []struct {
		name  string
		lines []stretch
		x, y  vg.Length // lower left corner of the label
	}{
		{"no line", nil, 4, 101.5},
		{"a line at the left", []stretch{left}, 158, 101.5},
		{"lines at the left and in the middle", []stretch{left, at(200, 0, 200, 200)}, 312, 101.5},
		{"a line above the guide", []stretch{at(0, 108, 400, 108)}, 4, 87},
		{"a point above the guide", []stretch{at(50, 110, 50, 110)}, 158, 101.5},
		{"lines everywhere", []stretch{left, right, at(0, 108, 400, 108), at(0, 92, 400, 92), at(200, 0, 200, 200)}, 4, 101.5},
	} {
		box := labelBox(c, from, to, 80, test.lines)
		if box.Min.X != test.x || box.Min.Y != test.y {
			t.Errorf("%s: the label is at (%g, %g), not at (%g, %g)", test.name, box.Min.X, box.Min.Y, test.x, test.y)
		}
	}
	low := vg.Point{Y: 5}
	if box := labelBox(c, low, vg.Point{X: 400, Y: 5}, 80, []stretch{at(0, 12, 400, 12)}); box.Min.Y < 0 {
		t.Errorf("the label of a guide near the bottom is outside the panel, at %g", box.Min.Y)
	}
}

func TestStretchMeetsRectangle(t *testing.T) {
	r := vg.Rectangle{Min: vg.Point{X: 10, Y: 10}, Max: vg.Point{X: 20, Y: 20}}
	for _, test := range []struct {
		x0, y0, x1, y1 vg.Length
		want           bool
	}{
		{0, 0, 30, 30, true}, {0, 15, 30, 15, true}, {15, 15, 15, 15, true}, {12, 12, 13, 14, true}, {20, 20, 30, 30, true},
		{0, 0, 9, 9, false}, {0, 21, 30, 21, false}, {5, 15, 5, 15, false}, {0, 15, 15, 31, false}, {21, 0, 21, 30, false},
	} {
		if got := (stretch{{X: test.x0, Y: test.y0}, {X: test.x1, Y: test.y1}}).meets(r); got != test.want {
			t.Errorf("(%g, %g) to (%g, %g): %t", test.x0, test.y0, test.x1, test.y1, got)
		}
	}
}
