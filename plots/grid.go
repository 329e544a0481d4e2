package plots

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"rnnbench/plots/quantity"
	"rnnbench/results"
)

// A Grid is a map over two axes: of values, coloured by size, or of categories,
// coloured as their series are in charts.
type Grid struct {
	Title    string
	Subtitle string
	Notes    []string
	X, Y     string // titles of the axes
	Columns  []string
	Rows     []string // from the bottom up
	Panels   []GridPanel

	Values     string               // title of the colour bar; empty: no values
	Format     func(float64) string // spells a value in its cell
	Tick       func(float64) string // spells a round value at the colour bar
	Less       bool                 // less is better: then small values are bright
	Center     float64              // the value that is neither; 0: none
	Categories []string             // in the order of the legend
}

// A GridPanel is one of the maps of a grid.
type GridPanel struct {
	Title string
	Cells [][]GridCell // rows from the bottom up
}

// A GridCell is one place of a map. The zero cell was not measured.
type GridCell struct {
	Value    float64
	Category string
	Text     string // below the category
	Close    bool   // the category is ahead by less than can be told
	Missing  string // why there is nothing
	Filled   bool
}

// span is how the values of a grid become shares of the colour bar.
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
		// As far on either side, so that the middle of the colours is the centre.
		far := math.Max(s.hi/g.Center, g.Center/s.lo)
		far = math.Max(far, 1.1)
		s = span{g.Center / far, g.Center * far, true}
	}
	return s
}

// colorAt is the colour of a value at that share of the bar: from dark to bright
// as it gets better, or away from white where there is a centre.
func (g *Grid) colorAt(share float64) color.NRGBA {
	if g.Less {
		share = 1 - share
	}
	if g.Center > 0 {
		return ramp(share, 0x7f3b08, 0xb35806, 0xe08214, 0xfdb863, 0xfee0b6, 0xf7f7f7, 0xd1e5f0, 0x92c5de, 0x4393c3, 0x2166ac, 0x053061)
	}
	return ramp(share, 0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725)
}

// colorBar draws the scale of colours with its values.
func (g *Grid) colorBar(s span) *sidebar {
	axis := Axis{Format: g.Tick}
	scale := scaling{min: s.lo, max: s.hi, log: s.log}
	if s.lo == s.hi {
		return nil // no value, or one that its cells spell
	}
	ticks := axis.ticks(scale, func(string) float64 { return 0.06 })
	if s.log {
		// Between the powers of two of a ratio there is nothing to see.
		ticks = slices.DeleteFunc(ticks, func(t plot.Tick) bool { return t.IsMinor() })
	}
	width := vg.Length(0)
	for _, t := range ticks {
		width = max(width, tickStyle().Width(t.Label))
	}
	lines := wrap(g.Values, legendStyle(), 130)
	for _, l := range lines {
		width = max(width, legendStyle().Width(l)-22)
	}
	return &sidebar{
		width: 24 + width,
		draw: func(c draw.Canvas) {
			top := fillLines(&c, lines, legendStyle(), c.Min.X, c.Max.Y-4) - 6
			bottom := max(c.Min.Y, top-260)
			const steps = 64
			at := func(share float64) vg.Length { return bottom + vg.Length(share)*(top-bottom) }
			for i := range steps {
				c.SetColor(g.colorAt((float64(i) + 0.5) / steps))
				// Steps overlap a little: renderers leave hairlines between them.
				end := min(top, at(float64(i+1)/steps)+0.5)
				c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: at(float64(i) / steps)}, Max: vg.Point{X: c.Min.X + 14, Y: end}}.Path())
			}
			for _, t := range ticks {
				y := at(scale.at(t.Value))
				if y < bottom-0.5 || y > top+0.5 {
					continue
				}
				c.StrokeLine2(draw.LineStyle{Color: faint(), Width: 0.7}, c.Min.X+14, y, c.Min.X+17, y)
				c.FillText(tickStyle(), vg.Point{X: c.Min.X + 20, Y: y - 3.6}, t.Label)
			}
		},
	}
}

func (g *Grid) frame() *frame {
	columns := columnsFor(len(g.Panels))
	rows := (len(g.Panels) + columns - 1) / columns
	cellW, cellH := vg.Length(62), vg.Length(36)
	switch n := len(g.Columns) * columns; {
	case n > 24:
		cellW = 38
	case n > 14:
		cellW = 48
	}
	widest := vg.Length(0)
	for _, s := range g.Rows {
		widest = max(widest, tickStyle().Width(s))
	}
	f := &frame{
		title:    quantity.OneLine(g.Title),
		subtitle: quantity.OneLine(g.Subtitle),
		notes:    g.Notes,
		// The maps are no smaller than the titles of their axes, which gonum would
		// make room for at the cost of the alignment.
		width:  vg.Length(columns)*(max(vg.Length(len(g.Columns))*cellW, labelStyle().Width(g.X)+12)+14+widest) + 30,
		height: vg.Length(rows)*(max(vg.Length(len(g.Rows))*cellH, labelStyle().Width(g.Y)+12)+66) + 10,
	}
	look := map[string]look{}
	if g.Values == "" {
		series := make([]Series, len(g.Categories))
		for i, p := range g.Categories {
			series[i].Label = p
		}
		look = looks(series)
		for _, p := range g.Categories {
			n := 0
			for _, panel := range g.Panels {
				for _, row := range panel.Cells {
					for _, c := range row {
						if c.Category == p {
							n++
						}
					}
				}
			}
			if n == 0 {
				continue
			}
			f.legend = append(f.legend, entry{fmt.Sprintf("%s (%d)", quantity.OneLine(p), n), func(c draw.Canvas) {
				swatch(c, look[p].color)
			}})
		}
	}
	s := g.span()
	if g.Values != "" {
		f.side = g.colorBar(s)
	}
	f.body = func(c draw.Canvas) { g.draw(c, columns, s, look) }
	return f
}

func swatch(c draw.Canvas, col color.NRGBA) {
	c.SetColor(col)
	y := c.Center().Y
	c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X + 8, Y: y - 6}, Max: vg.Point{X: c.Max.X, Y: y + 6}}.Path())
}

func (g *Grid) draw(c draw.Canvas, columns int, s span, look map[string]look) {
	// Names that do not fit side by side are turned.
	cell := float64(c.Max.X-c.Min.X) / float64(columns) / float64(max(1, len(g.Columns)))
	crowded := false
	for _, n := range g.Columns {
		crowded = crowded || float64(tickStyle().Width(n)) > 0.8*cell
	}
	var plots []*plot.Plot
	for i, panel := range g.Panels {
		p := newPlot(panel.Title)
		p.X.Min, p.X.Max = -0.5, float64(len(g.Columns))-0.5
		p.Y.Min, p.Y.Max = -0.5, float64(len(g.Rows))-0.5
		p.X.Tick.Marker, p.Y.Tick.Marker = names(g.Columns), names(g.Rows)
		p.X.Tick.Length, p.Y.Tick.Length = 3, 3
		if crowded {
			p.X.Tick.Label.Rotation = math.Pi / 4
			p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
		}
		if i+columns >= len(g.Panels) {
			p.X.Label.Text = g.X
		}
		if i%columns == 0 {
			p.Y.Label.Text = g.Y
		}
		p.Add(&cellPlotter{panel, g, s, look})
		plots = append(plots, p)
	}
	tile(c, plots, columns, 0)
}

func names(of []string) plot.ConstantTicks {
	t := make(plot.ConstantTicks, len(of))
	for i, s := range of {
		t[i] = plot.Tick{Value: float64(i), Label: quantity.OneLine(s)}
		if t[i].Label == "" {
			t[i].Label = " "
		}
	}
	return t
}

type cellPlotter struct {
	GridPanel
	grid *Grid
	span span
	look map[string]look
}

// Plot implements plot.Plotter.
func (p *cellPlotter) Plot(c draw.Canvas, pl *plot.Plot) {
	tx, ty := pl.Transforms(&c)
	for y, row := range p.Cells {
		for x, cell := range row {
			r := vg.Rectangle{
				Min: vg.Point{X: tx(float64(x)-0.5) + 0.75, Y: ty(float64(y)-0.5) + 0.75},
				Max: vg.Point{X: tx(float64(x)+0.5) - 0.75, Y: ty(float64(y)+0.5) - 0.75},
			}
			p.cell(&c, cell, r)
			if text := p.says(cell); text != "" {
				say(&c, r, "%s %s · %s %s · %s", p.grid.X, p.grid.Columns[x], p.grid.Y, p.grid.Rows[y], text)
			}
		}
	}
}

// says spells a cell, or is empty where there is none.
func (p *cellPlotter) says(cell GridCell) string {
	switch {
	case !cell.Filled:
		return cell.Missing
	case cell.Category != "" && cell.Close:
		return cell.Category + " " + cell.Text + ", too close to tell"
	case cell.Category != "":
		return cell.Category + " " + cell.Text
	case p.grid.Format != nil:
		return p.grid.Format(cell.Value)
	}
	return quantity.Short(cell.Value)
}

func (p *cellPlotter) cell(c *draw.Canvas, cell GridCell, r vg.Rectangle) {
	fill := func(col color.NRGBA) {
		c.SetColor(col)
		c.Fill(r.Path())
	}
	switch {
	case !cell.Filled && cell.Missing == "":
		// Not measured: the paper shows.
	case !cell.Filled || cell.Category == "" && !cell.valued():
		fill(rgb(0xececec))
		fitLines(c, r, faint(), or(cell.Missing, "n/a"))
	case cell.Category != "":
		col := p.look[cell.Category].color
		name := quantity.OneLine(cell.Category)
		if cell.Close {
			col = mix(col, rgb(0xffffff), 0.62)
		}
		fill(col)
		fitLines(c, r, onto(col), name, cell.Text)
	default:
		col := p.grid.colorAt(p.span.share(cell.Value))
		fill(col)
		format := p.grid.Format
		if format == nil {
			format = quantity.Short
		}
		fitLines(c, r, onto(col), format(cell.Value))
	}
}

// fitLines writes lines into the middle of r, as large as they fit. A single
// text may take two lines.
func fitLines(c *draw.Canvas, r vg.Rectangle, col color.NRGBA, lines ...string) {
	lines = slices.DeleteFunc(lines, func(s string) bool { return s == "" })
	room := r.Size()
	for size := vg.Length(10.5); size >= 5.5; size -= 0.5 {
		sty := write(size, col)
		all := lines
		if len(lines) == 1 && sty.Width(lines[0]) > room.X-5 && strings.Contains(lines[0], " ") {
			all = wrap(lines[0], sty, room.X-5)
		}
		if linesHeight(all, sty) > room.Y-2 || slices.ContainsFunc(all, func(s string) bool { return sty.Width(s) > room.X-5 }) {
			continue
		}
		sty.XAlign = draw.XCenter
		y := r.Min.Y + (room.Y+linesHeight(all, sty))/2
		fillLines(c, all, sty, (r.Min.X+r.Max.X)/2, y)
		return
	}
}

// places are the records of a grid by panel, row and column.
func (v *view) grid(rows quantity.Axis) (*Grid, [][][][]*results.Record, bool, error) {
	axes := []quantity.Axis{v.x, rows}
	if v.panel.Name != "" {
		axes = append(axes, v.panel)
	}
	if left := slices.DeleteFunc(quantity.Left(v.recs, append(slices.Clone(axes), v.series)...), func(a quantity.Axis) bool {
		return slices.ContainsFunc(axes, func(u quantity.Axis) bool { return u.Name == a.Name })
	}); len(left) > 0 {
		hint := "draw panels by it, or fewer records"
		if v.panel.Name != "" {
			hint = "draw fewer records"
		}
		return nil, nil, false, fmt.Errorf("plots: a map shows one value per place, but the records also differ in %s: %s", titles(left), hint)
	}
	chosen, tuned := quantity.Choose(v.recs, append(slices.Clone(axes), v.series)...)
	g := &Grid{X: capital(v.x.Title), Y: capital(rows.Title), Subtitle: v.subtitle(v.X, rows.Name)}
	spell := func(a quantity.Axis, r *results.Record) string {
		if n, ok := a.Number(r); ok && a.Text(r) != "auto" && a.Text(r) != "H" {
			return quantity.Size(n)
		}
		return a.Text(r)
	}
	column, row := map[string]int{}, map[string]int{}
	for i, same := range quantity.Split(chosen, v.x) {
		column[v.x.Text(same[0])] = i
		g.Columns = append(g.Columns, spell(v.x, same[0]))
	}
	for i, same := range quantity.Split(chosen, rows) {
		row[rows.Text(same[0])] = i
		g.Rows = append(g.Rows, spell(rows, same[0]))
	}
	if len(g.Columns) > 40 || len(g.Rows) > 40 {
		return nil, nil, false, fmt.Errorf("plots: a map of %d by %d places is too large (at most 40 by 40): draw fewer records", len(g.Columns), len(g.Rows))
	}
	var at [][][][]*results.Record
	for _, same := range quantity.Split(chosen, v.panel) {
		panel := GridPanel{}
		if v.panel.Name != "" {
			panel.Title = v.panel.Text(same[0])
			if v.panel.Numeric {
				panel.Title = capital(v.panel.Title) + " " + panel.Title
			}
		}
		cells := make([][][]*results.Record, len(g.Rows))
		panel.Cells = make([][]GridCell, len(g.Rows))
		for i := range cells {
			cells[i] = make([][]*results.Record, len(g.Columns))
			panel.Cells[i] = make([]GridCell, len(g.Columns))
		}
		for _, r := range same {
			i, j := row[rows.Text(r)], column[v.x.Text(r)]
			cells[i][j] = append(cells[i][j], r)
		}
		g.Panels = append(g.Panels, panel)
		at = append(at, cells)
	}
	if len(g.Panels) > mostPanels {
		return nil, nil, false, fmt.Errorf("plots: %d panels are too many for a figure (at most %d): choose an axis other than %s, or draw fewer records", len(g.Panels), mostPanels, v.Panel)
	}
	return g, at, tuned, nil
}

// rows is the second axis of a map.
func (v *view) rows(recs []results.Record) (quantity.Axis, error) {
	name := v.Rows
	if name == "" {
		name = usualAxis(v.recs, v.X, v.Panel, v.Series)
	}
	if name == v.X || name == v.Panel {
		return quantity.Axis{}, fmt.Errorf("plots: %s is used for two axes: choose a different axis for one of them", name)
	}
	a, err := quantity.AxisOf(name, recs)
	if err != nil {
		return a, fmt.Errorf("plots: %w", err)
	}
	return a, nil
}

// Heatmap colours a measure over two axes, with a panel for each technique
// unless panels are asked for by another axis.
func Heatmap(recs []results.Record, s Spec) (*Grid, error) {
	if s.Panel == "" {
		s.Panel = or(s.Series, "impl")
	}
	// One value a place: what the panels and axes do not tell apart is an error.
	s.Series = "device"
	if s.Panel == "device" {
		s.Series = "impl"
	}
	v, err := s.resolve(recs, "flops")
	if err != nil {
		return nil, err
	}
	rows, err := v.rows(recs)
	if err != nil {
		return nil, err
	}
	g, at, tuned, err := v.grid(rows)
	if err != nil {
		return nil, err
	}
	g.Title = v.title(capital(v.what()) + " by " + v.x.Title + " and " + rows.Title)
	g.Values, g.Format, g.Tick, g.Less = capital(v.withUnit()), v.measure.Short, v.measure.Tick, v.measure.Less
	if v.measure.Ratio {
		g.Center = 1
	}
	var lost []*results.Record
	for i, panel := range at {
		for y, row := range panel {
			for x, cell := range row {
				switch len(cell) {
				case 0:
					continue
				case 1:
				default:
					return nil, fmt.Errorf("plots: a map shows one value per place, but the records also differ in %s: draw panels by it, or fewer records", v.series.Title)
				}
				to := &g.Panels[i].Cells[y][x]
				if value, ok := v.value(cell[0]); ok {
					*to = GridCell{Filled: true, Value: value.Value}
					continue
				}
				to.Missing = quantity.Reason(cell[0])
				if cell[0].Seconds() > 0 {
					to.Missing = v.lacks()
				}
				lost = append(lost, cell[0])
			}
		}
	}
	g.Notes = v.notes(tuned, false, lost, nil, []quantity.Axis{v.x, rows, v.panel, v.series})
	return g, nil
}

// Winner shows which technique is the fastest at each place of two axes, and by
// how much over the next.
func Winner(recs []results.Record, s Spec) (*Grid, error) {
	s.Y = "time"
	v, err := s.resolve(recs, "time")
	if err != nil {
		return nil, err
	}
	rows, err := v.rows(recs)
	if err != nil {
		return nil, err
	}
	g, at, tuned, err := v.grid(rows)
	if err != nil {
		return nil, err
	}
	g.Title = v.title("Fastest " + v.series.Title + " by " + v.x.Title + " and " + rows.Title)
	name := func(r *results.Record) string {
		if v.Series == "impl" {
			return v.series.Text(r)
		}
		return v.series.Tag(r)
	}
	for _, same := range quantity.Split(v.recs, v.series) {
		g.Categories = append(g.Categories, name(same[0]))
	}
	near := false
	var lost []*results.Record
	for i, panel := range at {
		for y, row := range panel {
			for x, cell := range row {
				if len(cell) == 0 {
					continue
				}
				c := winner(cell, name)
				near = near || c.Close
				g.Panels[i].Cells[y][x] = c
				for _, r := range cell {
					if r.Seconds() <= 0 {
						lost = append(lost, r)
					}
				}
			}
		}
	}
	g.Notes = []string{"Numbers: time of the second fastest over time of the fastest."}
	if near {
		g.Notes = append(g.Notes, "Pale: the lead is below 1 % or within the confidence intervals.")
	}
	g.Notes = append(g.Notes, v.notes(tuned, false, lost, nil, []quantity.Axis{v.x, rows, v.panel, v.series})...)
	return g, nil
}

// winner compares the records of one place.
func winner(rivals []*results.Record, name func(*results.Record) string) GridCell {
	var first, second *results.Record
	for _, r := range rivals {
		switch t := r.Seconds(); {
		case t <= 0:
		case first == nil || t < first.Seconds():
			first, second = r, first
		case second == nil || t < second.Seconds():
			second = r
		}
	}
	if first == nil {
		return GridCell{Missing: quantity.Reason(rivals[0])}
	}
	c := GridCell{Filled: true, Category: name(first), Text: "no rival"}
	if second != nil {
		margin := second.Seconds() / first.Seconds()
		c.Text = quantity.Factor(margin)
		a, _ := quantity.Time(first)
		b, _ := quantity.Time(second)
		c.Close = margin < 1.01 || a.Known() && b.Known() && a.Hi >= b.Lo
	}
	return c
}
