package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/report/page"
)

// sections divides the records into groups that can be compared, by cell, pass, precision and the like.
func (b *builder) sections() ([]section, error) {
	var kinds []quantity.Axis
	for _, a := range quantity.Axes() {
		if !a.Numeric && a.Name != "impl" {
			kinds = append(kinds, a)
		}
	}
	varying := quantity.Varying(b.recs)
	groups := [][]*record.Record{b.recs}
	for _, a := range kinds {
		var finer [][]*record.Record
		for _, g := range groups {
			finer = append(finer, quantity.Split(g, a)...)
		}
		groups = finer
	}
	var list []section
	for _, g := range groups {
		passes, trainings := apart(g)
		for _, g := range [][]*record.Record{passes, trainings} {
			if len(g) == 0 {
				continue
			}
			s, err := b.section(g, kinds, varying)
			if err != nil {
				return nil, err
			}
			s.ID = fmt.Sprintf("s%d", len(list)+1)
			list = append(list, s)
		}
	}
	return list, nil
}

// section makes the section of records of passes alone, or of training alone.
func (b *builder) section(g []*record.Record, kinds, varying []quantity.Axis) (section, error) {
	var words []string
	for _, a := range kinds {
		if a.Name == "cell" || a.Name == "pass" || slices.ContainsFunc(varying, func(v quantity.Axis) bool { return v.Name == a.Name }) {
			words = append(words, a.Tag(g[0]))
		}
	}
	all, training := g, g[0].Training != nil
	if training {
		g, words = whole(g), append(words, "training")
	}
	s := section{Title: strings.Join(words, " · "), Fastest: page.NewSheet(b.fastest(g), nil)}
	drawn, left := b.few(g)
	if left > 0 {
		s.Missing = append(s.Missing, leftOutNote(left))
	}
	if training {
		if err := b.drawLoss(&s, all); err != nil {
			return s, err
		}
	}
	return s, b.draw(&s, drawn, left > 0)
}

// draw adds the figures of records that differ in numeric axes and techniques. If many says that
// settings are many, a map of winners shows techniques without settings, whose names are short.
func (b *builder) draw(s *section, recs []*record.Record, many bool) error {
	var axes []string
	rivals := false
	for _, a := range quantity.Varying(recs) {
		if a.Numeric {
			axes = append(axes, a.Name)
		}
		rivals = rivals || a.Name == "impl"
	}
	name, copyRate, roofs := b.device(recs[0].Device)
	spec := plots.Spec{Baseline: b.o.Baseline, Machine: name, Copy: copyRate, Roofs: roofs}
	if rivals && len(axes) > 0 {
		t := spec
		t.Kind, t.X, t.Rows = "winner", axes[0], "batch"
		if t.X == t.Rows {
			t.Rows = "hidden"
		}
		rest := axes[1:]
		if len(rest) > 0 {
			t.Rows, rest = rest[0], rest[1:]
		}
		if err := b.split(s, b.behindWinner(recs, many), t, rest); err != nil {
			return err
		}
	}
	if base := quantity.NewBaseline(values(recs), b.o.Baseline); rivals && !base.Empty() {
		t := spec
		t.Kind = "speedup"
		rest := axes
		if len(rest) > 0 {
			t.X, rest = rest[0], rest[1:]
		}
		if err := b.split(s, recs, t, rest); err != nil {
			return err
		}
	}
	for i, x := range axes {
		t := spec
		t.Kind, t.X = "lines", x
		if err := b.split(s, recs, t, slices.Delete(slices.Clone(axes), i, i+1)); err != nil {
			return err
		}
	}
	if len(axes) > 0 && slices.ContainsFunc(recs, func(r *record.Record) bool { return r.Latency != nil }) {
		t := spec
		t.Kind, t.X, t.Y = "lines", axes[0], "latency"
		if err := b.split(s, recs, t, axes[1:]); err != nil {
			return err
		}
	}
	if copyRate > 0 && slices.ContainsFunc(recs, func(r *record.Record) bool { return r.FLOPS() > 0 && r.Work.Bytes > 0 && r.PeakFLOPS() > 0 }) {
		spec.Kind = "roofline"
		return b.split(s, recs, spec, nil)
	}
	return nil
}

// split draws figures over the axes left: one figure for each combination of their values, except that
// the first of them becomes the panels of a figure.
func (b *builder) split(s *section, recs []*record.Record, spec plots.Spec, left []string) error {
	if len(left) > 0 && (spec.Kind != "speedup" || spec.X != "") {
		spec.Panel, left = left[0], left[1:]
	}
	groups := [][]*record.Record{recs}
	for _, name := range left {
		a, err := quantity.AxisOf(name, nil)
		if err != nil {
			return err
		}
		var finer [][]*record.Record
		for _, g := range groups {
			finer = append(finer, quantity.Split(g, a)...)
		}
		groups = finer
	}
	for _, g := range groups {
		f, err := plots.Draw(values(g), spec)
		if err != nil {
			s.Missing = append(s.Missing, fmt.Sprintf("A figure (%s) is missing: %s.", spec.Kind, strings.TrimPrefix(err.Error(), "plots: ")))
			continue
		}
		var figures []template.HTML
		if figures, err = b.figure(s.Figures, f); err != nil {
			return err
		}
		s.Figures = figures
	}
	return nil
}

func values(recs []*record.Record) []record.Record {
	list := make([]record.Record, len(recs))
	for i, r := range recs {
		list[i] = *r
	}
	return list
}

// device returns the name, the copy rate in B/s and the peaks by precision of the device with that key.
func (b *builder) device(key string) (name string, copyRate float64, roofs map[string]float64) {
	for _, s := range b.sets {
		for _, d := range s.Manifest.Devices {
			if d.Key != key {
				continue
			}
			name, roofs = d.Name, plots.RoofsOf(d)
			copyRate = max(copyRate, d.CopyRate())
		}
	}
	return name, copyRate, roofs
}

// A race is a point with the records of its techniques, the fastest first.
type race struct {
	entrants []*record.Record
	finished int

	winner    *record.Winner // what a tune chose; nil: no tune
	elsewhere bool           // another run measured the winner, so it is not among the entrants
}

// tie reports whether the winner does not lead all others. Where a tune chose it, the tune says.
func (x *race) tie() bool {
	if x.winner != nil {
		return len(x.winner.Ties) > 0
	}
	lead, ok := quantity.LeadOf(x.entrants)
	return ok && !lead.Clear()
}

// races groups records by point.
func races(recs []*record.Record) []race {
	var list []race
	for _, x := range quantity.Races(recs) {
		at := race{entrants: x}
		for _, r := range x {
			if r.Seconds() > 0 {
				at.finished++
			}
		}
		list = append(list, at)
	}
	return list
}

// fastest lists the winner and the runner-up at each point.
func (b *builder) fastest(recs []*record.Record) *table.Table {
	base := quantity.NewBaseline(values(recs), b.o.Baseline)
	t := &table.Table{}
	var axes []quantity.Axis
	for _, a := range quantity.Varying(recs) {
		if a.Name != "impl" && a.Name != "streams" {
			axes = append(axes, a)
			t.Columns = append(t.Columns, table.Column{Name: a.Title, Right: a.Numeric})
		}
	}
	for _, c := range []string{"Fastest", "Time", "±", "FLOP/s", "Speed-up over " + b.o.Baseline, "Runner-up", "Lead"} {
		t.Columns = append(t.Columns, table.Column{Name: c, Right: c != "Fastest" && c != "Runner-up"})
	}
	chosen, unpaired := false, false
	for _, x := range b.crown(races(recs)) {
		chosen = chosen || x.winner != nil
		first := x.entrants[0]
		var row []table.Cell
		for _, a := range axes {
			c := table.Text(a.Text(first))
			if n, ok := a.Number(first); ok {
				c.Value = n
			}
			row = append(row, c)
		}
		if x.elsewhere {
			w := x.winner
			row = append(row, table.Text(w.Label+" (run "+w.Run+")"), table.Number(w.Seconds, quantity.SI(w.Seconds, "s")))
			t.Rows = append(t.Rows, append(row, table.Cell{}, table.Cell{}, table.Cell{}, table.Text(strings.Join(w.Ties, ", ")), table.Cell{}))
			continue
		}
		if x.finished == 0 {
			row = append(row, table.Text("none: "+quantity.Reasons(x.entrants)), table.Cell{}, table.Cell{}, table.Cell{}, table.Cell{}, table.Cell{}, table.Cell{})
			t.Rows = append(t.Rows, row)
			continue
		}
		v, _ := quantity.Time(first)
		spread := table.Cell{Text: "n/a"}
		if v.Known() {
			spread = table.Number(v.Spread(), v.Half())
		}
		over, second, margin := table.Cell{}, table.Text("none"), table.Cell{}
		if r := base.For(first); r != nil {
			f, _ := record.Ratio(first, r)
			over = table.Number(f.Value, quantity.Times(f))
			if r != first && !f.Leads() {
				over.Text += " ≈"
			}
		}
		if lead, ok := quantity.LeadOf(x.entrants); ok {
			second = table.Text(quantity.Label(lead.Next))
			margin = table.Number(lead.Ratio.Value, quantity.Times(lead.Ratio))
			if x.winner != nil && slices.Contains(x.winner.Ties, lead.Next.Impl.Label) || !lead.Clear() {
				margin.Text += " ≈"
			}
			unpaired = unpaired || !lead.Paired
		}
		t.Rows = append(t.Rows, append(row, table.Text(quantity.Label(first)), table.Number(v.Value, quantity.SI(v.Value, "s")), spread,
			table.Throughput(first), over, second, margin))
	}
	if chosen {
		t.Notes = []string{"The fastest is the choice of tune: lowest mean of the faster half of the samples; among ties, least memory."}
	}
	t.Notes = append(t.Notes, "≈: a tie, since the interval of the ratio covers 1 or the lead is below 1 %; or too few samples. ±: half of the confidence interval of the median.")
	if unpaired {
		t.Notes = append(t.Notes, "Some techniques were not measured in turns; the intervals of their leads are wider and know nothing of the machine's changes in between.")
	}
	return t
}

// summary says in a few sentences what the page shows.
func (b *builder) summary() []string {
	if len(b.recs) == 0 {
		return nil
	}
	passes, trainings := b.timed()
	all := b.crown(append(races(passes), races(trainings)...))
	wins := map[string]int{}
	var labels []string
	logs, n, clear, ties := 0.0, 0, 0, 0
	bases := map[bool]quantity.Baseline{false: quantity.NewBaseline(values(passes), b.o.Baseline), true: quantity.NewBaseline(values(trainings), b.o.Baseline)}
	for _, x := range all {
		if x.finished == 0 && !x.elsewhere {
			continue
		}
		first := x.entrants[0]
		l := quantity.Label(first)
		if x.elsewhere {
			l = x.winner.Label
		}
		if x.tie() {
			ties++
		} else if wins[l]++; wins[l] == 1 {
			labels = append(labels, l)
		}
		if r := bases[first.Training != nil].For(first); r != nil && !x.elsewhere {
			logs += math.Log(r.Seconds() / first.Seconds())
			n++
			if quantity.Clear(first, r) {
				clear++
			}
		}
	}
	slices.SortStableFunc(labels, func(x, y string) int { return wins[y] - wins[x] })
	count := map[record.Status]int{}
	for _, r := range b.recs {
		count[r.Status]++
	}
	var states []string
	for _, s := range record.Statuses() {
		if count[s] > 0 {
			states = append(states, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	list := []string{fmt.Sprintf("%s, %s: %s.", quantity.Plural(len(all), "point"), quantity.Plural(len(b.recs), "measurement"), strings.Join(states, ", "))}
	var words []string
	for _, l := range labels {
		words = append(words, fmt.Sprintf("%s at %d", l, wins[l]))
	}
	if ties > 0 {
		words = append(words, fmt.Sprintf("a tie or unsure at %d", ties))
	}
	if words != nil {
		list = append(list, "Fastest: "+strings.Join(words, ", ")+".")
	}
	if s := chose(all); s != "" {
		list = append(list, s)
	}
	if s := b.knownBefore(); s != "" {
		list = append(list, s)
	}
	switch mean := quantity.Factor(math.Exp(logs / float64(n))); {
	case n == 0:
	case clear == 0:
		list = append(list, fmt.Sprintf("The fastest is not clearly faster than %s at any of %s.", b.o.Baseline, quantity.Plural(n, "point")))
	case clear < n:
		list = append(list, fmt.Sprintf("The fastest is %s as fast as %s (geometric mean over %s). The difference is clear at %d of them.", mean, b.o.Baseline, quantity.Plural(n, "point"), clear))
	default:
		list = append(list, fmt.Sprintf("The fastest is %s as fast as %s (geometric mean over %s).", mean, b.o.Baseline, quantity.Plural(n, "point")))
	}
	list = append(list, quantity.Doubts(b.recs)...)
	if noise := quantity.StandingOf(b.recs).Headline(); noise != "" {
		list = append(list, noise+".")
	}
	return list
}

// lost lists the records without a result, and why.
func (b *builder) lost() *page.Sheet {
	t := &table.Table{Columns: []table.Column{{Name: "Point"}, {Name: "Technique"}, {Name: "Settings"}, {Name: "Status"}, {Name: "Code"}, {Name: "Reason"}}}
	for _, r := range b.recs {
		if r.Status == record.OK {
			continue
		}
		word := func(p *string) table.Cell {
			if p == nil {
				return table.Cell{}
			}
			return table.Text(*p)
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(r.Point.String()), table.Text(quantity.Label(r)), table.Text(b.settings(r)),
			table.Text(string(r.Status)), word(r.ReasonCode), word(r.Reason)})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return page.NewSheet(t, nil)
}

// settings spells the settings of r, without defaults if Options.Settings is set.
func (b *builder) settings(r *record.Record) string {
	if b.o.Settings != nil {
		_, settings, _ := strings.Cut(b.o.Settings(r), ":")
		return strings.ReplaceAll(settings, ":", " ")
	}
	var words []string
	for k, v := range r.Impl.Knobs {
		words = append(words, fmt.Sprintf("%s=%d", k, v))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}
