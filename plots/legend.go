package plots

import (
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"rnnbench/plots/quantity"
)

// mostEntries is the most series of one legend. With more, each panel has its own legend.
const mostEntries = 8

// gaps reports whether s lacks a value somewhere.
func (s Series) gaps() bool {
	return slices.ContainsFunc(s.Points, func(p Point) bool { return p.Missing })
}

// labels returns the distinct labels of series.
func labels(all []Series) (list []string) {
	for _, s := range all {
		if !slices.Contains(list, s.Label) {
			list = append(list, s.Label)
		}
	}
	return list
}

// listed returns the distinct labels that a legend of series has.
func listed(all []Series) []string {
	return labels(slices.DeleteFunc(slices.Clone(all), func(s Series) bool { return s.Unlisted }))
}

// split divides panels with more series than mostEntries into several, and keeps the series of one
// technique together.
func (ch *Chart) split() *Chart {
	if len(listed(ch.series())) <= mostEntries || !slices.ContainsFunc(ch.Panels, func(p Panel) bool { return len(listed(p.Series)) > mostEntries }) {
		return ch
	}
	out := *ch
	out.Panels = nil
	for _, p := range ch.Panels {
		out.Panels = append(out.Panels, p.split()...)
	}
	return &out
}

// split divides a panel's series among as many panels as needed.
func (p Panel) split() []Panel {
	if len(listed(p.Series)) <= mostEntries {
		return []Panel{p}
	}
	var parts []Panel
	for _, family := range families(p.Series) {
		for chunk := range slices.Chunk(family, mostEntries) {
			if n := len(parts); n > 0 && len(parts[n-1].Series)+len(chunk) <= mostEntries {
				parts[n-1].Series = append(parts[n-1].Series, chunk...)
				continue
			}
			parts = append(parts, Panel{Title: p.Title, Guides: p.Guides, Series: slices.Clone(chunk)})
		}
	}
	if slices.ContainsFunc(parts, func(q Panel) bool { return titleOf(q.Series) == "" }) {
		return parts // the legends tell the panels apart
	}
	for i := range parts {
		parts[i].Title = strings.TrimPrefix(p.Title+": "+titleOf(parts[i].Series), ": ")
	}
	return parts
}

// families groups series by the technique with which their labels begin.
func families(all []Series) (list [][]Series) {
	var heads []string
	for _, s := range all {
		head := family(s)
		i := slices.Index(heads, head)
		if i < 0 {
			i = len(heads)
			heads, list = append(heads, head), append(list, nil)
		}
		list[i] = append(list[i], s)
	}
	return list
}

func family(s Series) string {
	head, _, _ := strings.Cut(s.head(), ":")
	return head
}

// titleOf names the families of a panel; "": more than three.
func titleOf(all []Series) string {
	var names []string
	for _, f := range families(all) {
		names = append(names, family(f[0]))
	}
	if len(names) > 3 {
		return ""
	}
	return strings.Join(names, ", ")
}

// ownLegends reports whether each panel has a legend of its own.
func (ch *Chart) ownLegends() bool {
	return len(ch.Panels) > 1 && len(listed(ch.series())) > mostEntries
}

// entries returns the legend's entries for series.
func (ch *Chart) entries(all []Series, look map[string]look) (list []entry) {
	for _, label := range listed(all) {
		s := all[slices.IndexFunc(all, func(s Series) bool { return s.Label == label })]
		list = append(list, entry{quantity.OneLine(label), func(c draw.Canvas) {
			y := c.Center().Y
			if !s.Scatter {
				look[label].stroke(&c, vg.Point{X: c.Min.X, Y: y}, vg.Point{X: c.Max.X, Y: y})
			}
			look[label].mark(&c, vg.Point{X: c.Center().X, Y: y}, false)
		}})
	}
	return list
}

// narrower is how much narrower than a panel its drawn canvas may be: gaps between panels and the title of
// the vertical axis, which only the first column has, take room.
const narrower = 24 * vg.Length(1)

// arrange breaks labels into the lines of a legend below a panel, in 1 to 3 columns that are step wide. In
// several columns, each label fits one line.
func arrange(list []entry, panel vg.Length) (columns int, step vg.Length, lines [][]string) {
	const beside = thumbWidth + 14
	width, widest := panel-narrower, vg.Length(1)
	for _, e := range list {
		widest = max(widest, beside+1+legendStyle().Width(e.label))
	}
	columns = max(1, min(3, int(width/widest)))
	step = width / vg.Length(columns)
	for _, e := range list {
		lines = append(lines, wrap(e.label, legendStyle(), step-beside))
	}
	return columns, step, lines
}

// legendRow is the height of entries side by side in a legend below a panel.
func legendRow(entries [][]string) vg.Length {
	most := 1
	for _, lines := range entries {
		most = max(most, len(lines))
	}
	return vg.Length(most)*legendStyle().Font.Size*lineSpace + 1.25
}

// legendHeight returns the height of the highest of the panels' legends.
func (ch *Chart) legendHeight(width vg.Length) (most vg.Length) {
	for _, p := range ch.Panels {
		columns, _, lines := arrange(ch.entries(p.Series, nil), width)
		h := 8 * vg.Length(1)
		for row := range slices.Chunk(lines, columns) {
			h += legendRow(row)
		}
		most = max(most, h)
	}
	return most
}

// legend draws a panel's legend below it.
func (ch *Chart) legend(at draw.Canvas, p Panel, width vg.Length, look map[string]look) {
	list := ch.entries(p.Series, look)
	columns, step, lines := arrange(list, width)
	y := at.Min.Y - 6
	for first := 0; first < len(list); first += columns {
		end := min(first+columns, len(list))
		for i := first; i < end; i++ {
			thumb := at
			thumb.Min.X = at.Min.X + step*vg.Length(i-first) + 6
			thumb.Max.X = thumb.Min.X + thumbWidth
			thumb.Min.Y, thumb.Max.Y = y-legendRow(nil), y
			list[i].thumb(thumb)
			fillLines(&at, lines[i], legendStyle(), thumb.Max.X+6, y)
		}
		y -= legendRow(lines[first:end])
	}
}

// values returns what a panel's axes must cover: places, values with their intervals, and the ends
// of guides.
func (p Panel) values() (xs, ys, guides []float64) {
	for _, s := range p.Series {
		for _, pt := range s.Points {
			if finite(pt.X) && (pt.Missing || finite(pt.Y)) {
				xs = append(xs, pt.X)
			}
			if pt.drawable() {
				ys = append(ys, pt.Y)
				if pt.interval() {
					ys = append(ys, pt.Lo, pt.Hi)
				}
			}
		}
	}
	for _, g := range p.Guides {
		guides = append(guides, g.Y0, g.Y1)
		if g.X0 != g.X1 {
			xs = append(xs, g.X0, g.X1)
		}
	}
	return xs, ys, guides
}

// mostDodge is the largest distance between the first and the last series at one place. It is less
// than an axis extends beyond its data.
const mostDodge = 24 * vg.Length(1)

// dodge returns how far to shift each series to the right, so that intervals at one place do not
// overlap. Series whose intervals overlap no others are not shifted.
func (p *panelPlotter) dodge(tx, ty func(float64) vg.Length) []vg.Length {
	shift := make([]vg.Length, len(p.Series))
	type bar struct {
		series int
		lo, hi vg.Length
	}
	bars := map[float64][]bar{}
	gap := vg.Length(1e9) // between neighbouring places
	var places []float64
	for k, s := range p.Series {
		for _, pt := range s.Points {
			if !pt.drawable() {
				continue
			}
			places = append(places, pt.X)
			if lo, hi := ty(pt.Lo), ty(pt.Hi); pt.interval() && hi-lo > 2*markRadius { // a mark hides a shorter interval
				bars[pt.X] = append(bars[pt.X], bar{k, lo, hi})
			}
		}
	}
	meet := map[int]bool{}
	for _, list := range bars {
		for i, a := range list {
			for _, b := range list[:i] {
				if a.series != b.series && a.lo < b.hi && b.lo < a.hi {
					meet[a.series], meet[b.series] = true, true
				}
			}
		}
	}
	if len(meet) == 0 {
		return shift
	}
	slices.Sort(places)
	places = slices.Compact(places)
	for i := 1; i < len(places); i++ {
		gap = min(gap, tx(places[i])-tx(places[i-1]))
	}
	step := min(5, 0.7*gap/vg.Length(len(meet)), mostDodge/vg.Length(max(1, len(meet)-1)))
	n := 0
	for k := range p.Series {
		if meet[k] {
			shift[k] = step * (vg.Length(n) - vg.Length(len(meet)-1)/2)
			n++
		}
	}
	return shift
}
