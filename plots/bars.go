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
	"rnnbench/record"
)

// Bars is a figure of groups of horizontal bars with their values beside them.
type Bars struct {
	Title    string
	Subtitle string
	Notes    []string
	X        Axis // of the values; always linear, from 0
	Groups   []Group
	Guides   []Guide // vertical lines, at X0
	Value    func(float64) string
}

// A Group of bars belongs to one label.
type Group struct {
	Label string
	Bars  []Bar
}

// A Bar is one value. Bars of a series have the same look in every group.
type Bar struct {
	Series  string
	Like    string // label whose colour to share; empty: its own
	Value   float64
	Lo, Hi  float64 // interval; both 0: none
	Missing string  // why there is no value
	Pale    bool    // measured by somebody else, such as a paper

	From *record.Record // that the value was measured in; nil: none, or several
}

func (b Bar) drawable() bool { return b.Missing == "" && finite(b.Value) && b.Value >= 0 }

const (
	barHeight = 15 * vg.Length(1)
	groupGap  = 12 * vg.Length(1)
)

func (b *Bars) frame() *frame {
	var all []Series
	var order []string
	pale := map[string]bool{}
	count := 0
	for _, g := range b.Groups {
		for _, bar := range g.Bars {
			if !slices.Contains(order, bar.Series) {
				order = append(order, bar.Series)
				if !bar.Pale {
					all = append(all, Series{Label: bar.Series, Like: bar.Like})
				}
			}
			pale[bar.Series] = bar.Pale
			count++
		}
	}
	look := looks(all)
	// Bars have no dashes: bars that share a colour differ by its strength.
	strength := map[color.NRGBA]float64{}
	for _, s := range order {
		l := look[s]
		if pale[s] {
			l.color = rgb(0xb8b8b8)
		} else {
			n := strength[l.color]
			strength[l.color]++
			l.color = mix(l.color, rgb(0xffffff), min(0.75, 0.25*n))
		}
		if l.glyph == nil { // a pale series
			l.glyph = plank{}
		}
		look[s] = l
	}
	f := &frame{
		title:    quantity.OneLine(b.Title),
		subtitle: quantity.OneLine(b.Subtitle),
		notes:    b.Notes,
		width:    640,
		height:   max(140, vg.Length(count)*barHeight+vg.Length(len(b.Groups))*groupGap+60),
		body:     func(c draw.Canvas) { b.draw(c, look) },
	}
	if len(order) > 1 {
		for _, s := range order {
			f.legend = append(f.legend, entry{quantity.OneLine(s), func(c draw.Canvas) {
				c.SetColor(look[s].color)
				y := c.Center().Y
				c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X + 8, Y: y - 5}, Max: vg.Point{X: c.Max.X, Y: y + 5}}.Path())
				look[s].stamp(&c, vg.Point{X: c.Min.X + 8 + stampInset, Y: y})
			}})
		}
	}
	return f
}

// stampInset is the distance of a bar's mark from the bar's base.
const stampInset = 7 * vg.Length(1)

// stamp draws the mark of a series on its bar, so that series differ not by colour alone.
func (l look) stamp(c *draw.Canvas, at vg.Point) {
	c.DrawGlyphNoClip(draw.GlyphStyle{Color: textColorOn(l.color), Radius: 2.6, Shape: solid(l.glyph)}, at)
	if l.hollow {
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: l.color, Radius: 1.3, Shape: solid(l.glyph)}, at)
	}
}

func (b *Bars) draw(c draw.Canvas, look map[string]look) {
	values := []float64{0}
	for _, g := range b.Guides {
		values = append(values, g.X0)
	}
	rows := 0.0
	for _, g := range b.Groups {
		rows += float64(len(g.Bars)) + float64(groupGap/barHeight)
		for _, bar := range g.Bars {
			if bar.drawable() {
				values = append(values, bar.Value)
				if finite(bar.Hi) {
					values = append(values, bar.Hi)
				}
			}
		}
	}
	axis := b.X
	axis.Scale, axis.Zero = Linear, true
	x := axis.fit(values, 0, 0.16) // leaves room for the texts of values
	width := (c.Max.X - c.Min.X) * 0.7
	ticks := axis.ticks(x, func(s string) float64 { return float64((tickStyle().Width(s) + 8) / width) })

	p := newPlot("")
	p.X.Min, p.X.Max, p.X.Tick.Marker = 0, 1, x.on(ticks)
	p.X.Label.Text = b.X.Title
	p.Y.Min, p.Y.Max = 0, math.Max(rows, 1)
	var names plot.ConstantTicks
	var widest vg.Length
	y := math.Max(rows, 1)
	tops := make([]float64, len(b.Groups))
	for i, g := range b.Groups {
		y -= float64(groupGap/barHeight) / 2
		tops[i] = y
		// A name that is too long for one line takes more lines, and is never cut.
		lines := wrap(quantity.OneLine(g.Label), tickStyle(), 190)
		for _, line := range lines {
			widest = max(widest, tickStyle().Width(line))
		}
		names = append(names, plot.Tick{Value: y - float64(len(g.Bars))/2, Label: strings.Join(lines, "\n")})
		y -= float64(len(g.Bars)) + float64(groupGap/barHeight)/2
	}
	p.Y.Tick.Marker = names
	p.Y.Tick.Length, p.Y.Tick.LineStyle.Color = fontSlack*widest, color.Transparent // it keeps names away from the bars
	p.Add(&barPlotter{b, look, x, ticks, tops})
	p.Draw(c)
}

type barPlotter struct {
	*Bars
	look  map[string]look
	x     scaling
	ticks plot.ConstantTicks
	tops  []float64
}

// Plot implements plot.Plotter.
func (p *barPlotter) Plot(c draw.Canvas, pl *plot.Plot) {
	_, ty := pl.Transforms(&c)
	tx := func(v float64) vg.Length { return c.X(p.x.at(v)) }
	for _, t := range p.ticks {
		if x := tx(t.Value); !t.IsMinor() && c.ContainsX(x) {
			c.StrokeLine2(draw.LineStyle{Color: rule(), Width: 0.6}, x, c.Min.Y, x, c.Max.Y)
		}
	}
	for _, g := range p.Guides {
		if x := tx(g.X0); c.ContainsX(x) {
			c.StrokeLine2(draw.LineStyle{Color: faint(), Width: 1, Dashes: []vg.Length{5, 3}}, x, c.Min.Y, x, c.Max.Y)
		}
	}
	format := p.Value
	if format == nil {
		format = quantity.Short
	}
	small := write(9.5, ink())
	marked := slices.ContainsFunc(p.Groups, func(g Group) bool { return len(g.Bars) > 1 })
	for i, g := range p.Groups {
		for j, bar := range g.Bars {
			top, bottom := ty(p.tops[i]-float64(j)), ty(p.tops[i]-float64(j)-1)
			middle := (top + bottom) / 2
			inset := (top - bottom) * 0.09
			end := c.Min.X
			text := bar.Missing
			if bar.drawable() {
				end = tx(bar.Value)
				c.SetColor(p.look[bar.Series].color)
				c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: bottom + inset}, Max: vg.Point{X: end, Y: top - inset}}.Path())
				if marked && end-c.Min.X > 2*stampInset {
					p.look[bar.Series].stamp(&c, vg.Point{X: c.Min.X + stampInset, Y: middle})
				}
				if finite(bar.Lo) && finite(bar.Hi) && bar.Lo < bar.Hi && bar.Lo >= 0 {
					lo, hi := tx(bar.Lo), tx(bar.Hi)
					sty := draw.LineStyle{Color: ink(), Width: 0.9}
					c.StrokeLine2(sty, lo, middle, hi, middle)
					c.StrokeLine2(sty, lo, middle-3, lo, middle+3)
					c.StrokeLine2(sty, hi, middle-3, hi, middle+3)
					end = max(end, hi)
				}
				text = format(bar.Value)
			} else if text == "" {
				text = "no result"
			}
			sty := small
			if !bar.drawable() {
				sty.Color = faint()
			}
			text = quantity.OneLine(text)
			say(&c, bar.From, vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: bottom}, Max: vg.Point{X: max(end, c.Min.X+20), Y: top}}, "%s · %s · %s", g.Label, bar.Series, text)
			// Grid lines are interrupted behind the text.
			c.SetColor(rgb(0xffffff))
			c.Fill(vg.Rectangle{Min: vg.Point{X: end + 3, Y: middle - 5.5}, Max: vg.Point{X: end + 7 + sty.Width(text), Y: middle + 5.5}}.Path())
			c.FillText(sty, vg.Point{X: end + 5, Y: middle - 3.4}, text)
		}
	}
}

// Speedup draws how many times faster techniques are than a baseline. It draws lines if the
// horizontal axis is numeric with several values, else bars.
func Speedup(recs []record.Record, s Spec) (Figure, error) {
	s.Y = "speedup"
	v, err := s.resolve(recs, "speedup")
	if err != nil {
		return nil, err
	}
	if v.x.Numeric && len(v.xAxis().Places) > 1 {
		s.X = v.X
		return figure(Lines(recs, s))
	}
	return figure(v.bars())
}

func (v *view) bars() (*Bars, error) {
	if v.Panel != "" {
		return nil, fmt.Errorf("plots: bars cannot have panels by %s: leave the panels out, or choose a numeric x axis with several values", v.Panel)
	}
	panels, notes, err := v.barPanels()
	if err != nil {
		return nil, err
	}
	b := &Bars{
		Title:    v.title(capital(v.what()) + " by " + v.x.Title),
		Subtitle: v.subtitle(v.X),
		Notes:    notes,
		X:        Axis{Title: capital(v.withUnit()), Format: v.measure.Tick},
		Groups:   panels,
		Value:    v.measure.Format,
	}
	if v.measure.Ratio {
		b.Guides = []Guide{{X0: 1, X1: 1}}
	}
	return b, nil
}

func (v *view) barPanels() ([]Group, []string, error) {
	axes := []quantity.Axis{v.x, v.series}
	extra := slices.DeleteFunc(quantity.Left(v.recs, axes...), func(a quantity.Axis) bool { return a.Name == v.X || a.Name == v.Series })
	chosen, tuned := quantity.Choose(v.recs, append(slices.Clone(axes), extra...)...)
	if len(chosen) > 120 {
		return nil, nil, fmt.Errorf("plots: %d bars are too many for a figure (at most 120), because the records also differ in %s: select fewer records with --where", len(chosen), or(titles(extra), v.Series))
	}
	var groups []Group
	var lost []*record.Record
	intervals := false
	for _, same := range quantity.Split(chosen, v.x) {
		g := Group{Label: v.x.Tag(same[0])}
		for _, r := range same {
			b := Bar{Series: v.series.Tag(r), From: r}
			if len(extra) > 0 {
				b.Like = b.Series
			}
			for _, a := range extra {
				b.Series += ", " + a.Tag(r)
			}
			y, ok := v.value(r)
			switch {
			case ok:
				b.Value = y.Value
				if y.Known() {
					b.Lo, b.Hi = y.Lo, y.Hi
					intervals = true
				}
			case r.Seconds() > 0:
				b.Missing = v.lacks()
			default:
				b.Missing = quantity.Reason(r)
				lost = append(lost, r)
			}
			g.Bars = append(g.Bars, b)
		}
		groups = append(groups, g)
	}
	notes := v.notes(tuned, false, lost, nil, append(axes, extra...))
	if intervals {
		notes = append([]string{"Bars are medians; whiskers are their confidence intervals."}, notes...)
	}
	return groups, notes, nil
}

// A Stage is one step of a ladder of optimisations. Paper is its speed-up over the first stage, as
// the paper reports it.
type Stage struct {
	Label string  // of the records that measure it
	Paper float64 // 0: the paper gives no number
}

// Ladder draws, for each stage, a paper's speed-up over the first stage beside the measured one.
// All records must be of one point.
func Ladder(recs []record.Record, stages []Stage, s Spec) (*Bars, error) {
	if len(stages) == 0 {
		return nil, fmt.Errorf("plots: a ladder needs at least one stage")
	}
	s.Y, s.Baseline, s.Panel, s.Series = "speedup", stages[0].Label, "", ""
	v, err := s.resolve(recs, "speedup")
	if err != nil {
		return nil, err
	}
	impl, err := quantity.AxisOf("impl", nil)
	if err != nil {
		return nil, fmt.Errorf("plots: %w", err)
	}
	v.recs = slices.DeleteFunc(v.recs, func(r *record.Record) bool {
		return !slices.ContainsFunc(stages, func(st Stage) bool { return quantity.OneLine(st.Label) == quantity.Label(r) })
	})
	if left := quantity.Left(v.recs, impl); len(left) > 0 {
		return nil, fmt.Errorf("plots: a ladder shows one point, but the records differ in %s", titles(left))
	}
	chosen, tuned := quantity.Choose(v.recs, impl)
	b := &Bars{
		Title:    v.title("Speed-up of each stage over " + quantity.OneLine(stages[0].Label)),
		Subtitle: v.subtitle(),
		X:        Axis{Title: "Speed-up over " + quantity.OneLine(stages[0].Label), Format: v.measure.Tick},
		Guides:   []Guide{{X0: 1, X1: 1}},
		Value:    v.measure.Format,
	}
	paper := slices.ContainsFunc(stages, func(st Stage) bool { return st.Paper > 0 })
	if slices.ContainsFunc(chosen, func(r *record.Record) bool { y, ok := v.value(r); return ok && y.Known() }) {
		b.Notes = append(b.Notes, "Measured bars are ratios of medians; whiskers span the extreme ratios of their confidence intervals.")
	}
	if tuned {
		b.Notes = append(b.Notes, tunedNote)
	}
	for _, st := range stages {
		g := Group{Label: st.Label}
		if paper {
			bar := Bar{Series: "paper", Value: st.Paper, Pale: true}
			if st.Paper <= 0 {
				bar.Missing = "not given"
			}
			g.Bars = append(g.Bars, bar)
		}
		bar := Bar{Series: "measured", Missing: "not measured"}
		for _, r := range chosen {
			if quantity.Label(r) != quantity.OneLine(st.Label) {
				continue
			}
			bar.Missing, bar.From = quantity.Reason(r), r
			if y, ok := v.value(r); ok {
				bar.Missing, bar.Value = "", y.Value
				if y.Known() {
					bar.Lo, bar.Hi = y.Lo, y.Hi
				}
			}
		}
		g.Bars = append(g.Bars, bar)
		b.Groups = append(b.Groups, g)
	}
	return b, nil
}
