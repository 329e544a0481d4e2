package advise

import (
	"fmt"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// Table shows advice: a row for each layer, then sentences on doubts, memory and floors.
func Table(all []Advice, title string) *table.Table {
	t := &table.Table{Title: title, Columns: []table.Column{
		{Name: "layer", Key: "layer"},
		{Name: "fastest here", Key: "best"}, {Name: "time", Key: "time_s", Right: true}, {Name: "p99", Key: "p99_s", Right: true, Spare: 2},
		{Name: "today", Key: "today"}, {Name: "time", Key: "today_s", Right: true}, {Name: "p99", Key: "today_p99_s", Right: true, Spare: 1},
		{Name: "times as fast", Key: "times_as_fast", Right: true}, {Name: "believe it", Key: "believe"},
	}}
	for i, a := range all {
		row := []table.Cell{table.Text(a.name())}
		row = append(append(row, a.Best.cells()...), a.Today.cells()...)
		times := table.Cell{}
		if a.Times != nil {
			times = table.Number(*a.Times, quantity.Times(a.interval()))
		}
		believe := "yes"
		if n := len(a.Doubts); n > 0 {
			believe = fmt.Sprintf("see [%d]", i+1)
		}
		t.Rows = append(t.Rows, append(row, times, table.Text(believe)))
		for _, note := range a.notes() {
			t.Notes = append(t.Notes, fmt.Sprintf("[%d] %s", i+1, note))
		}
	}
	return t
}

// name is the layer in a table.
func (a Advice) name() string {
	p := a.Point
	shape := fmt.Sprintf("%s %d→%d", p.Cell, p.Input, p.Hidden)
	if cell, _, cut := strings.Cut(p.Cell, "@"); cut {
		shape = fmt.Sprintf("%s %d→%d", cell, p.Input, p.Hidden)
	}
	if p.Layers > 1 {
		shape += fmt.Sprintf(" ×%d", p.Layers)
	}
	if p.Direction != "" {
		shape += " " + p.Direction.String()
	}
	switch len(a.Layers) {
	case 0:
		return shape
	case 1:
		return a.Layers[0] + ": " + shape
	}
	return fmt.Sprintf("%d layers: %s", len(a.Layers), shape)
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

// notes are the sentences on a layer.
func (a Advice) notes() (list []string) {
	if len(a.Layers) > 1 {
		list = append(list, "Layers of this shape: "+strings.Join(a.Layers, ", ")+". The first one was measured with its weights.")
	}
	for _, d := range a.Doubts {
		list = append(list, strings.ToUpper(d[:1])+d[1:]+".")
	}
	if a.Best == nil {
		return list
	}
	facts := fmt.Sprintf("%s takes %s of memory", a.Best.Setting, quantity.Bytes(float64(a.Memory)))
	if a.Floor != nil {
		facts += fmt.Sprintf(". No technique can take less than %s here (%s): at most %s as fast", quantity.SI(*a.Floor, "s"), a.Bound, quantity.Factor(a.Best.Seconds / *a.Floor))
	}
	return append(list, facts+".")
}
