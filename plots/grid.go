package plots

import (
	"math"

	"rnnbench/record"
)

// A Grid is a figure that colours cells over two axes. Cells hold values, coloured by size, or
// categories, coloured like their series in charts.
type Grid struct {
	Title    string
	Subtitle string
	Notes    []string
	X, Y     string // titles of the axes
	Columns  []string
	Rows     []string // from the bottom up
	Panels   []GridPanel

	Values     string               // title of the colour bar; empty: no values
	Format     func(float64) string // formats a value in its cell
	Tick       func(float64) string // formats a round value at the colour bar
	Less       bool                 // less is better, so small values are bright
	Center     float64              // neutral value, drawn white; 0: none
	Categories []string             // in the order of the legend
}

// A GridPanel is one panel of a grid.
type GridPanel struct {
	Title string
	Cells [][]GridCell // rows from the bottom up
}

// A GridCell is one cell of a panel. The zero cell was not measured.
type GridCell struct {
	Value    float64
	Category string
	Text     string // below the category
	Close    bool   // the category's lead is not clear
	Missing  string // why there is no value
	Filled   bool

	From *record.Record // that the value was measured in; nil: none
}

// A span maps the values of a grid to shares of the colour bar.
type span struct {
	lo, hi float64
	log    bool
}

func (s span) share(v float64) float64 {
	if s.lo == s.hi {
		return 0.5
	}
	if s.log {
		return math.Log(v/s.lo) / math.Log(s.hi/s.lo)
	}
	return (v - s.lo) / (s.hi - s.lo)
}

func (c GridCell) valued() bool { return c.Filled && c.Category == "" && finite(c.Value) }

// span covers all panels, so that a colour means the same in each.
func (g *Grid) span() span {
	s := span{lo: math.Inf(1), hi: math.Inf(-1)}
	for _, p := range g.Panels {
		for _, row := range p.Cells {
			for _, c := range row {
				if c.valued() {
					s.lo, s.hi = min(s.lo, c.Value), max(s.hi, c.Value)
				}
			}
		}
	}
	if math.IsInf(s.lo, 1) {
		return span{0, 0, false}
	}
	s.log = s.lo > 0 && s.hi/s.lo > 12
	if g.Center > 0 && s.lo > 0 {
		// Both sides are equally long, so that the middle of the colours is the centre.
		far := math.Max(s.hi/g.Center, g.Center/s.lo)
		far = math.Max(far, 1.1)
		s = span{g.Center / far, g.Center * far, true}
	}
	return s
}
