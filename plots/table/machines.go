package table

import (
	"fmt"
	"slices"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// Machines returns a table of what several machines measured alike: a row for each machine at each point of
// each technique. Throughput is also a share of each machine's peak, memory traffic one of its copy rate, and
// throughput is divided by its power. So machines of different sizes compare.
func Machines(recs []record.Record) (*Table, error) {
	all := quantity.Latest(recs)
	if len(all) == 0 {
		return nil, fmt.Errorf("table: no records to show")
	}
	axes := quantity.Axes()
	device := axes[slices.IndexFunc(axes, func(a quantity.Axis) bool { return a.Name == "device" })]
	key := slices.DeleteFunc(axes, func(a quantity.Axis) bool { return a.Name == "device" || a.Name == "graph" }) // machines launch differently
	fastest, tuned := quantity.Choose(all, append(slices.Clone(key), device)...)
	var chosen []*record.Record
	single := 0
	for len(fastest) > 0 {
		n := slices.IndexFunc(fastest, func(r *record.Record) bool { return apart(r, fastest[0], key) })
		if n < 0 {
			n = len(fastest)
		}
		if n > 1 {
			chosen = append(chosen, fastest[:n]...)
		} else {
			single++
		}
		fastest = fastest[n:]
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("table: no technique at a point has records of two machines: name runs of the same points on different machines")
	}
	t := &builder[*record.Record]{Table: &Table{Title: title(chosen)}}
	varying := quantity.Varying(chosen)
	for _, a := range key {
		c := Column{Key: a.Name, Right: a.Numeric}
		if a.Name == "impl" || slices.ContainsFunc(varying, func(v quantity.Axis) bool { return v.Name == a.Name }) {
			c.Name = a.Name
		}
		t.column(c, func(r *record.Record) Cell { return axisCell(a, r) })
	}
	t.column(Column{Name: "machine", Key: "device"}, func(r *record.Record) Cell { return Text(device.Text(r)) })
	for _, x := range []struct{ metric, name string }{
		{"time", "time"}, {"flops", "rate"}, {"percent", "of peak"}, {"copy", "of copy"}, {"per-watt", "per watt"},
	} {
		m, err := quantity.MeasureOf(x.metric)
		if err != nil {
			return nil, fmt.Errorf("table: %w", err)
		}
		t.column(Column{Name: x.name, Key: m.Key, Right: true}, func(r *record.Record) Cell {
			if v, ok := m.Of(r, nil); ok {
				return Number(v.Value, m.Format(v.Value))
			}
			if x.metric == "time" {
				return Text(quantity.Reason(r))
			}
			return Cell{}
		})
	}
	for _, r := range chosen {
		t.row(r)
	}
	t.Notes = []string{"Of peak: FLOP/s over the measured peak. Of copy: memory traffic of the operations over the measured copy rate; caches may let it exceed 100 %."}
	if tuned {
		t.Notes = append(t.Notes, "If a technique was measured with several settings, the fastest is shown.")
	}
	if single > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s not listed: one machine alone measured them.", quantity.Are(single, "result")))
	}
	t.Notes = append(t.Notes, quantity.Doubts(chosen)...)
	return t.Table, nil
}

// apart reports whether two records lie at different places of an axis.
func apart(x, y *record.Record, axes []quantity.Axis) bool {
	return slices.ContainsFunc(axes, func(a quantity.Axis) bool { return a.Text(x) != a.Text(y) })
}
