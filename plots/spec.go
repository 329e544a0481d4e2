// Package plots draws records: throughput against sizes, maps of values and of
// winners, speed-ups, ladders of optimisations and rooflines. A figure is a
// function of its records and its Spec. The same records give the same bytes, in
// any order.
//
// Records become a Chart, Bars or a Grid. Callers may add to them, for example
// the numbers of a paper; Save writes any of them.
package plots

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// A Spec says what to draw. The zero value of a field means its default.
type Spec struct {
	Kind     string             // one of Kinds; default "lines"
	X        string             // horizontal axis; default the first numeric one that varies
	Rows     string             // vertical axis of a heatmap or winner map; default the next one
	Y        string             // measure; default "flops", or "speedup" for a speed-up
	Panel    string             // axis with a panel for each of its places; default none
	Series   string             // axis with a line for each of its places; default "impl"
	Baseline string             // technique that speed-ups are over; default "naive"
	Scale    string             // "linear" or "log" for values; default Auto
	Peak     float64            // peak of the machine in FLOP/s; 0: of the records; negative: not drawn
	Copy     float64            // copy rate of the machine in B/s, for rooflines
	Roofs    map[string]float64 // FLOP/s of products by precision, for rooflines; absent: unknown
	Machine  string             // name for the subtitle; default the device of the records
	Title    string             // default: names the measure and the axes
}

// Kinds lists the kinds of figures.
func Kinds() []string { return []string{"lines", "speedup", "heatmap", "winner", "roofline"} }

// Draw returns the figure that s describes.
func Draw(recs []record.Record, s Spec) (Figure, error) {
	switch s.Kind {
	case "lines", "":
		return figure(Lines(recs, s))
	case "speedup":
		return Speedup(recs, s)
	case "heatmap":
		return figure(Heatmap(recs, s))
	case "winner":
		return figure(Winner(recs, s))
	case "roofline":
		return figure(Roofline(recs, s))
	}
	return nil, fmt.Errorf("plots: unknown kind %q: choose among %s", s.Kind, strings.Join(Kinds(), ", "))
}

// figure returns a nil Figure with an error, instead of an interface that holds a nil pointer.
func figure[T interface {
	comparable
	Figure
}](f T, err error) (Figure, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

var (
	errNoRecords = errors.New("plots: no records to draw")
	errNoResults = errors.New("plots: no record has a result to draw")
)

// A view is a Spec with its defaults set and its names looked up.
type view struct {
	Spec
	recs    []*record.Record
	x       quantity.Axis
	panel   quantity.Axis // without a name: one panel
	series  quantity.Axis
	measure quantity.Measure
	base    quantity.Baseline
}

func (s Spec) resolve(recs []record.Record, measure string) (*view, error) {
	if len(recs) == 0 {
		return nil, errNoRecords
	}
	v := &view{Spec: s, recs: quantity.Latest(recs)}
	if v.Y == "" {
		v.Y = measure
	}
	if v.Series == "" {
		v.Series = "impl"
	}
	if v.Baseline == "" {
		v.Baseline = "naive"
	}
	if v.X == "" {
		v.X = usualAxis(v.recs, v.Panel, v.Series, v.Rows)
	}
	if !slices.Contains([]string{"", "linear", "log"}, s.Scale) {
		return nil, fmt.Errorf("plots: unknown scale %q: choose linear or log", s.Scale)
	}
	var err error
	if v.measure, err = quantity.MeasureOf(v.Y); err != nil {
		return nil, fmt.Errorf("plots: %w", err)
	}
	for _, a := range []struct {
		name string
		axis *quantity.Axis
	}{{v.X, &v.x}, {v.Series, &v.series}, {v.Panel, &v.panel}} {
		if a.name == "" {
			continue
		}
		if *a.axis, err = quantity.AxisOf(a.name, recs); err != nil {
			return nil, fmt.Errorf("plots: %w", err)
		}
	}
	if v.X == v.Panel || v.X == v.Series || v.Series == v.Panel {
		return nil, fmt.Errorf("plots: each axis can be used once, but the x axis is %s, the lines are by %s and the panels by %s", v.X, v.Series, or(v.Panel, "none"))
	}
	if v.measure.Ratio {
		v.base = quantity.NewBaseline(recs, v.Baseline)
		if v.base.Empty() {
			return nil, fmt.Errorf("plots: the baseline %q has no result to compare with: choose another baseline", v.Baseline)
		}
	}
	return v, nil
}

// value returns the measure of r.
func (v *view) value(r *record.Record) (quantity.Interval, bool) {
	return v.measure.Of(r, v.base.For(r))
}

// lacks returns why a record that ran has no value.
func (v *view) lacks() string {
	if v.measure.Ratio {
		return "no baseline"
	}
	return "n/a"
}

// usualAxis returns the first numeric axis that varies and is not taken, else hidden, batch or steps.
func usualAxis(recs []*record.Record, taken ...string) string {
	for _, a := range quantity.Varying(recs) {
		if a.Numeric && !slices.Contains(taken, a.Name) {
			return a.Name
		}
	}
	for _, name := range []string{"hidden", "batch"} {
		if !slices.Contains(taken, name) {
			return name
		}
	}
	return "steps"
}

// what names the measure for titles and axes.
func (v *view) what() string {
	if v.measure.Ratio {
		return "speed-up over " + quantity.OneLine(v.base.Label)
	}
	return v.measure.Title
}

func (v *view) withUnit() string {
	if v.measure.Ratio {
		return v.what()
	}
	return fmt.Sprintf("%s (%s)", v.what(), v.measure.Unit)
}

// subtitle names the machine and what all records share.
func (v *view) subtitle(except ...string) string {
	machine := v.Machine
	if machine == "" && !slices.ContainsFunc(v.recs, func(r *record.Record) bool { return r.Device != v.recs[0].Device }) {
		machine = v.recs[0].Device
	}
	words := []string{quantity.OneLine(machine), quantity.Common(v.recs, append(except, "device", "impl")...)}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " · ")
}

// title returns the title of the Spec, or else usual.
func (v *view) title(usual string) string { return or(quantity.OneLine(v.Title), usual) }

// follow returns a note on axes that vary but are not in the figure. In Hwang and Sung's
// experiment, for example, steps vary along with the batch.
func (v *view) follow(used ...quantity.Axis) []string {
	var names []string
	for _, a := range quantity.Varying(v.recs) {
		if a.Name != "device" && !slices.ContainsFunc(used, func(u quantity.Axis) bool { return u.Name == a.Name }) {
			names = append(names, a.Title)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"Also varies: " + strings.Join(names, ", ") + "."}
}

const tunedNote = "If a technique was measured with several settings, the fastest is shown."

func or(s, usual string) string {
	if s == "" {
		return usual
	}
	return s
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
