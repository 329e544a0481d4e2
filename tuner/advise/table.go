package advise

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/impl"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// Table shows advice: a row for each layer, then sentences on it. The title says where and on what recs,
// which the advice is of, were measured.
func Table(all []Advice, recs []record.Record) *table.Table {
	t := &table.Table{Title: title(recs), Columns: []table.Column{
		{Name: "layer", Key: "layer"},
		{Name: "fastest here", Key: "best"}, {Name: "time", Key: "time_s", Right: true}, {Name: "p99", Key: "p99_s", Right: true, Spare: 2},
		{Name: "today", Key: "today"}, {Name: "time", Key: "today_s", Right: true}, {Name: "p99", Key: "today_p99_s", Right: true, Spare: 1},
		{Name: "times as fast", Key: "times_as_fast", Right: true}, {Name: "believe it", Key: "believe"},
	}}
	for i, a := range all {
		row := []table.Cell{table.Text(fmt.Sprintf("[%d] %s", i+1, a.name()))}
		row = append(append(row, a.Best.cells()...), a.Today.cells()...)
		times := table.Cell{}
		if a.Times != nil {
			times = table.Number(*a.Times, quantity.Times(a.interval()))
		}
		t.Rows = append(t.Rows, append(row, times, table.Text(a.Verdict)))
		for _, note := range a.notes() {
			t.Notes = append(t.Notes, fmt.Sprintf("[%d] %s", i+1, note))
		}
	}
	t.Notes = append(t.Notes, words(all)...)
	return t
}

// title names the device and what all layers have in common.
func title(recs []record.Record) string {
	latest := quantity.Latest(recs)
	if len(latest) == 0 {
		return ""
	}
	parts := []string{latest[0].Device}
	if common := quantity.Common(latest, "cell", "hidden", "input", "layers", "direction", "projection", "weights", "impl", "graph", "streams"); common != "" {
		parts = append(parts, common)
	}
	return strings.Join(parts, " · ")
}

// words explains the words of the table.
func words(all []Advice) []string {
	notes := []string{fmt.Sprintf("Times are medians, one layer each. Ranges are %g %% intervals. Answers agree with the float64 reference. Today is the fastest of the other programs, each with this layer alone.", 100*record.Confidence)}
	var named []string
	graph := false
	for _, a := range all {
		for _, x := range []*Timed{a.Best, a.Today} {
			if x == nil {
				continue
			}
			graph = graph || strings.Contains(x.Setting, "graph=1")
			name, _, _ := strings.Cut(x.Setting, ":")
			if t := impl.Lookup(name); t != nil && !slices.Contains(named, name) {
				named = append(named, name)
				notes = append(notes, fmt.Sprintf("%s: %s.", name, t.Doc()))
			}
		}
	}
	if graph {
		notes = append(notes, "graph=1: the pass is replayed as a CUDA graph.")
	}
	return notes
}

// name is the layer in a table.
func (a Advice) name() string {
	p := a.Point
	cell, _, _ := strings.Cut(p.Cell, "@")
	shape := fmt.Sprintf("%s %d→%d", cell, p.Input, p.Hidden)
	if p.Layers > 1 {
		shape += fmt.Sprintf(", %d layers", p.Layers)
	}
	switch p.Direction {
	case "":
	case "both":
		shape += ", both ways"
	default:
		shape += ", " + p.Direction.String()
	}
	switch len(a.Layers) {
	case 0:
		return shape
	case 1:
		return a.Layers[0] + ": " + shape
	}
	return fmt.Sprintf("%d layers, each %s", len(a.Layers), shape)
}

// cells are the technique, its time and its p99.
func (t *Timed) cells() []table.Cell {
	if t == nil {
		return []table.Cell{table.Text("none"), {}, {}}
	}
	p99 := table.Cell{}
	if t.P99 != nil {
		p99 = table.Number(*t.P99, quantity.SI(*t.P99, "s"))
	}
	return []table.Cell{table.Text(t.Label), table.Number(t.Seconds, quantity.SI(t.Seconds, "s")), p99}
}

// interval is how many times as fast Best is as Today.
func (a Advice) interval() record.Interval {
	v := record.Interval{Value: *a.Times, Lo: 1, Hi: 0} // unknown
	if a.Lo != nil && a.Hi != nil {
		v.Lo, v.Hi = *a.Lo, *a.Hi
	}
	return v
}

// reasons say what binds a run at its floor.
var reasons = map[string]string{
	"exchange":      "processors exchange states at each step",
	"multiply-adds": "the products take their multiply-adds",
	"memory":        "weights and states come from memory",
	"launch":        "kernels are launched",
}

// notes are the sentences on a layer.
func (a Advice) notes() (list []string) {
	if n := len(a.Layers); n > 1 {
		list = append(list, fmt.Sprintf("%s was timed. The others of this shape take as long: %s.", a.Layers[0], strings.Join(a.Layers[1:], ", ")))
	}
	if len(a.Doubts) > 0 {
		doubts := strings.Join(a.Doubts, "; ")
		list = append(list, strings.ToUpper(doubts[:1])+doubts[1:]+".")
	}
	if a.Best == nil {
		return list
	}
	list = append(list, fmt.Sprintf("%s takes %s of memory.", a.Best.Setting, quantity.Bytes(float64(a.Memory))))
	if a.Floor != nil {
		why := reasons[a.Bound]
		if why == "" {
			why = a.Bound
		}
		list = append(list, fmt.Sprintf("Room left: it could be at most %s as fast, since it cannot take less than %s (%s).", quantity.Factor(a.Best.Seconds / *a.Floor), quantity.SI(*a.Floor, "s"), why))
	}
	return list
}
