package yardstick

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// autoName stands for the technique that is chosen at each point; package tuner/auto chooses it.
const autoName = "auto"

// Bounds beyond which reports count layers.
const (
	farBehind  = 0.9  // how many times as fast as the fastest technique auto is
	nearlyLost = 0.95 // how many times as fast as a rival auto is
)

// byAuto returns parts that measure points by auto, by the techniques that it chooses among and by
// the target's rivals. On a GPU the techniques run as graphs, with the vendor's library beside them.
func byAuto(all []record.Point, on study.Target) []study.Part {
	auto, products, persistent := study.Spec(autoName, autoName, nil), study.Spec("cudnnstyle", "cudnnstyle", nil), study.Spec("persistent", "persistent", nil)
	specs := []grid.Spec{auto, products, persistent}
	if on.GPU {
		specs = append([]grid.Spec{auto, study.Graphed("cudnnstyle", products), study.Graphed("persistent", persistent)}, form.Vendors()...)
	}
	for _, r := range on.Rivals {
		specs = append(specs, r.Specs()...)
	}
	return form.OnChip(all, specs)
}

// An autoLayer is a layer with what auto chose, beside the fastest of rnnbench's techniques and of each rival.
type autoLayer struct {
	auto, best *record.Record
	twin       *record.Record   // auto's choice, measured under its own name; nil: not measured
	rivals     []*record.Record // nil: not measured
}

// reach says how many times as fast as the fastest technique auto is: 1 at most. Auto's choice is often measured
// under its own name as well. Then the faster of the two counts, since they differ by noise alone.
func (l autoLayer) reach() estimate.Estimate {
	own := l.auto
	if l.twin != nil && l.twin.Seconds() < own.Seconds() {
		own = l.twin
	}
	if own == l.best {
		return estimate.Exactly(1)
	}
	return estimate.TimesAsFast(l.best, own)
}

// ahead says how many times as fast as a rival auto is; unknown if the rival has no time.
func (l autoLayer) ahead(rival int) estimate.Estimate {
	return estimate.TimesAsFast(l.rivals[rival], l.auto)
}

// closest says how many times as fast as the fastest rival auto is; false if no rival has a time.
func (l autoLayer) closest() (least float64, known bool) {
	for i := range l.rivals {
		if up := l.ahead(i); up.Known() && (!known || up.At < least) {
			least, known = up.At, true
		}
	}
	return least, known
}

// autoRivals returns the rivals that have records: the vendor's library, and a target's rivals.
func autoRivals(recs []record.Record, on study.Target) (all []versus) {
	if forms := form.VendorsOf(recs); len(forms) > 0 {
		all = append(all, versus{long: "cuDNN's fastest algorithm", short: "cuDNN", labels: forms})
	}
	for _, r := range on.Rivals {
		if slices.ContainsFunc(pick.Labels(recs), func(l string) bool { return slices.Contains(r.Labels(), l) }) {
			all = append(all, versus{long: r.Name, short: r.Name, labels: r.Labels()})
		}
	}
	return all
}

// autoLayers returns the layers that auto has a time of, and the number of those without.
func autoLayers(recs []record.Record, rivals []versus) (all []autoLayer, without int) {
	own := slices.DeleteFunc(pick.Labels(recs), func(l string) bool {
		return slices.ContainsFunc(rivals, func(v versus) bool { return slices.Contains(v.labels, l) })
	})
	for _, p := range pick.Points(recs) {
		here := func(q record.Point) bool { return q == p }
		l := autoLayer{auto: pick.Find(recs, autoName, here), best: pick.Fastest(recs, own, here)}
		if l.auto == nil {
			without++
			continue
		}
		l.twin = twinOf(l.auto, recs, own)
		for _, v := range rivals {
			l.rivals = append(l.rivals, pick.Fastest(recs, v.labels, here))
		}
		all = append(all, l)
	}
	return all, without
}

// twinOf returns the record under another of labels with r's technique and settings, or nil.
func twinOf(r *record.Record, recs []record.Record, labels []string) *record.Record {
	alike := *r
	alike.Impl.Choice = nil
	for _, l := range labels {
		x := pick.Find(recs, l, func(p record.Point) bool { return p == r.Point })
		if l != r.Impl.Label && x != nil && x.Key() == alike.Key() {
			return x
		}
	}
	return nil
}

// reportAuto says how far auto is from the fastest technique and from rivals, and lists the worst layers.
func reportAuto(recs []record.Record, on study.Target, name, title string, worst int) (*study.Report, error) {
	rivals := autoRivals(recs, on)
	all, without := autoLayers(recs, rivals)
	if len(all) == 0 {
		return nil, errors.New("experiments: no layer has a time by auto")
	}
	rep := &study.Report{Tables: []*table.Table{sumOfAuto(all, rivals, title), nil}}
	var err error
	if rep.Tables[1], err = worstOfAuto(all, rivals, worst, on); err != nil {
		return nil, err
	}
	findAuto(rep, all, without, rivals)
	if err := addFloors(rep, all, on); err != nil {
		return nil, err
	}
	rep.Findings = append(rep.Findings, form.AlgorithmsAlike(recs)...)
	drawn := form.FastestForms(recs) // a figure has room for few series
	ch := &plots.Chart{Title: title + ": auto over other forms", Subtitle: on.Name,
		Notes: []string{"Ratios of medians, one mark per layer; above 1, auto is faster. Layers also differ in depth, minibatch, time steps, precision and pass."},
		X:     plots.Axis{Title: "Hidden size", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Auto, times as fast", Scale: plots.Log, Format: show.Times}}
	layerMarks(ch, drawn, slices.DeleteFunc(pick.Labels(drawn), func(l string) bool { return l == autoName }), func(p record.Point, r *record.Record) float64 {
		auto := pick.Find(recs, autoName, func(q record.Point) bool { return q == p })
		if auto == nil {
			return 0
		}
		return r.Seconds() / auto.Seconds()
	})
	ch.X.Places = nil // too many to be read
	rep.Add(name, ch, nil)
	return rep, nil
}

// A tally holds, for layers, how many times as fast as something auto is, and counts those that are clearly
// below a bound.
type tally struct {
	bound  float64
	ratios []estimate.Estimate
}

func (t tally) lowest() float64 {
	return slices.MinFunc(t.ratios, func(a, b estimate.Estimate) int { return cmp.Compare(a.At, b.At) }).At
}

// below tells at how many layers the ratio is below the bound.
func (t tally) below() (v estimate.Votes) {
	for _, r := range t.ratios {
		v.Add(estimate.Below(t.bound).Holds(r))
	}
	return v
}

// cells returns a tally's three cells in a table.
func (t tally) cells(format string) []table.Cell {
	if t.ratios == nil {
		return []table.Cell{show.Missing(), show.Missing(), show.Missing()}
	}
	return []table.Cell{show.Number(estimate.Mean(t.ratios).At, format), show.Ratio(t.lowest()), table.Int(t.below().Yes)}
}

// finding compares auto with of: the mean by format, with its interval, then also how low it gets.
func (t tally) finding(format, of string) (yardstick, finding string) {
	mean, low := estimate.Mean(t.ratios), t.below()
	yardstick = fmt.Sprintf("auto is %s as fast as %s", mean.Text(format, "×"), of)
	finding = fmt.Sprintf("%s (geometric mean of %s; lowest %.2f×; clearly below %.2f× at %d", yardstick, quantity.Plural(len(t.ratios), "layer"), t.lowest(), t.bound, low.Yes)
	if low.Open > 0 {
		finding += fmt.Sprintf(", perhaps at %d more", low.Open)
	}
	return yardstick, finding + ")."
}

// talliesOf returns the tallies of layers: auto over the fastest technique, then over each rival.
func talliesOf(all []autoLayer, rivals []versus) []tally {
	list := []tally{{bound: farBehind}}
	for range rivals {
		list = append(list, tally{bound: nearlyLost})
	}
	for _, l := range all {
		list[0].ratios = append(list[0].ratios, l.reach())
		for i := range rivals {
			if up := l.ahead(i); up.Known() {
				list[i+1].ratios = append(list[i+1].ratios, up)
			}
		}
	}
	return list
}

// sumOfAuto has a row for all layers and for each pass and width of precision.
func sumOfAuto(all []autoLayer, rivals []versus, title string) *table.Table {
	t := &table.Table{Title: title + ": auto over the fastest of rnnbench's techniques, and over rivals", Columns: []table.Column{
		{Name: "Layers", Key: "layers"}, show.Column("Number", "number"), show.Column("auto over the fastest", "over_fastest_mean"), show.Column("lowest", "over_fastest_lowest"), show.Column(fmt.Sprintf("below %.2f", farBehind), "over_fastest_far"),
	}}
	for _, v := range rivals {
		key := "over_" + strings.ReplaceAll(strings.ToLower(v.short), " ", "_")
		t.Columns = append(t.Columns, show.Column("over "+v.short, key+"_mean"), show.Column("lowest", key+"_lowest"), show.Column(fmt.Sprintf("below %.2f", nearlyLost), key+"_lost"))
	}
	for _, kind := range []struct {
		name string
		of   func(record.Point) bool
	}{
		{"all", func(record.Point) bool { return true }},
		{"forward", func(p record.Point) bool { return p.Pass == "forward" }},
		{"training", func(p record.Point) bool { return p.Pass == "train" }},
		{"fp32", func(p record.Point) bool { return p.Precision == "fp32" }},
		{"16 bits", func(p record.Point) bool { return p.Precision != "fp32" }},
	} {
		some := slices.DeleteFunc(slices.Clone(all), func(l autoLayer) bool { return !kind.of(l.auto.Point) })
		if len(some) == 0 {
			continue
		}
		row := []table.Cell{table.Text(kind.name), table.Int(len(some))}
		for i, x := range talliesOf(some, rivals) {
			format := "%.2f"
			if i == 0 {
				format = "%.3f"
			}
			row = append(row, x.cells(format)...)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{"how many times as fast auto is: geometric means, the lowest, and how many layers are below a bound, with their intervals",
		"if auto's choice was also measured under its own name, the faster of the two counts as auto"}
	return t
}

// worstOfAuto lists the layers where a rival comes closest to auto or, without rivals, where auto is the farthest behind the
// fastest technique.
func worstOfAuto(all []autoLayer, rivals []versus, most int, on study.Target) (*table.Table, error) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b autoLayer) int {
		x, known := a.closest()
		y, too := b.closest()
		switch {
		case known && too:
			return cmp.Compare(x, y)
		case known != too:
			return map[bool]int{true: -1, false: 1}[known]
		}
		return cmp.Compare(a.reach().At, b.reach().At)
	})
	all = all[:min(most, len(all))]
	t := &table.Table{Title: "Where auto is the worst", Columns: []table.Column{
		{Name: "Layer", Key: "layer"}, {Name: "auto chose", Key: "auto"}, show.Column("time", "auto_s"), {Name: "fastest", Key: "fastest"}, show.Column("auto over it", "over_fastest")}}
	for _, v := range rivals {
		t.Columns = append(t.Columns, show.Column("over "+v.short, "over_"+strings.ReplaceAll(strings.ToLower(v.short), " ", "_")))
	}
	t.Columns = append(t.Columns, table.Column{Name: "Bound", Key: "bound"}, show.Column("of the floor", "floor_percent"))
	for _, l := range all {
		r := l.auto
		row := []table.Cell{table.Text(r.Point.String()), table.Text(chosen(r)), seconds(r), table.Text(l.best.Impl.Label), show.Ratio(l.reach().At)}
		for i := range rivals {
			row = append(row, show.Ratio(l.ahead(i).At))
		}
		if f, err := floorOf(r, on); err != nil {
			return nil, err
		} else if f == nil {
			row = append(row, show.Missing(), show.Missing())
		} else {
			row = append(row, table.Text(f.Bound), show.Number(100*f.Share, "%.0f %%"))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{"the floor is the least time of what auto chose by the machine's model; its bound is what takes that time"}
	return t, nil
}

// chosen returns auto's choice, as --impl takes it.
func chosen(r *record.Record) string {
	if c := r.Impl.Choice; c != nil && c.Impl != "" {
		return c.Impl
	}
	return r.Impl.Name
}

// findAuto adds findings about all layers.
func findAuto(r *study.Report, all []autoLayer, without int, rivals []versus) {
	reasons := map[string]int{}
	for _, l := range all {
		if c := l.auto.Impl.Choice; c != nil {
			reasons[c.Match]++
		}
	}
	var parts []string
	for _, match := range []string{"exact", "nearest", "raced", "predicted", "default"} {
		if n := reasons[match]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s at %d", match, n))
		}
	}
	if parts != nil {
		r.Findings = append(r.Findings, fmt.Sprintf("Auto's choice rests on: %s.", strings.Join(parts, ", ")))
	}
	tallies := talliesOf(all, rivals)
	own, said := tallies[0].finding("%.3f", "the fastest of rnnbench's techniques")
	r.Findings = append(r.Findings, said)
	r.Yardstick(own)
	for i, v := range rivals {
		if t := tallies[i+1]; t.ratios != nil {
			up, said := t.finding("%.2f", v.long)
			r.Findings = append(r.Findings, said)
			r.Yardstick(up)
		}
	}
	if without > 0 {
		r.Findings = append(r.Findings, fmt.Sprintf("auto has no time at %s: not measured, failed, incorrect or declined.", quantity.Plural(without, "layer")))
	}
	if !slices.ContainsFunc(all, func(l autoLayer) bool { return l.auto.Floor != nil }) {
		r.Findings = append(r.Findings, "No record has a floor. On a processor, run rnnbench doctor first: it measures the machine.")
	}
}
