package plots

import (
	"fmt"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

// TestLegendIsWhole: the legend below a panel shows each label whole, within the figure and beside no other,
// however long the labels are.
func TestLegendIsWhole(t *testing.T) {
	for panels := 2; panels <= 12; panels += 5 {
		for long := 0; long < 60; long++ {
			ch := &Chart{X: Axis{Title: "x"}, Y: Axis{Title: "y"}, Panels: make([]Panel, panels)}
			for i := range 2 * mostEntries {
				label := fmt.Sprintf("t%02d %s", i, strings.Repeat("w", long))
				p := &ch.Panels[i%panels]
				p.Series = append(p.Series, Series{Label: label, Points: []Point{{X: 1, Y: float64(i + 1)}, {X: 2, Y: 1}}})
			}
			l := ch.frame().layout()
			var rec recorder.Canvas
			l.draw(draw.NewCanvas(&rec, l.w, l.h))
			lines := map[vg.Length]vg.Length{} // by height: where the text before ends
			shown := ""
			for _, a := range rec.Actions {
				text, ok := a.(*recorder.FillString)
				if !ok || !strings.HasPrefix(text.String, "t") && !strings.HasPrefix(text.String, "w") {
					continue
				}
				end := text.Point.X + legendStyle().Width(text.String)
				if text.Point.X < lines[text.Point.Y] || end > l.w || text.Point.Y < 0 {
					t.Errorf("%d panels: %q begins at %v, where another ends at %v, and ends at %v of %v", panels, text.String, text.Point, lines[text.Point.Y], end, l.w)
				}
				lines[text.Point.Y] = end
				shown += text.String
			}
			for i := range 2 * mostEntries {
				if label := fmt.Sprintf("t%02d%s", i, strings.Repeat("w", long)); !strings.Contains(strings.ReplaceAll(shown, " ", ""), label) {
					t.Errorf("%d panels: %q is cut", panels, label)
				}
			}
		}
	}
}
