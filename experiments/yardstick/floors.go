package yardstick

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
)

// floorOf is the floor of r by the model of on or, of a machine that the program does not know, as it was recorded;
// nil: unknown.
func floorOf(r *record.Record, on study.Target) (*record.Floor, error) {
	const most = 1 << 28 // bytes of a schedule
	if !on.GPU {
		return r.Floor, nil
	}
	m, err := model.Find(on.Name)
	if m == nil || err != nil {
		return r.Floor, err
	}
	return tuner.FloorOf(m, impl.All(), r, most)
}

// A distance is how far a record is from its floor.
type distance struct {
	of    record.Point
	times float64 // its time over the floor
	bound string
}

// distancesOf returns the distances of the fastest technique of each layer that has a floor.
func distancesOf(all []autoLayer, on study.Target) (out []distance, err error) {
	for _, l := range all {
		f, err := floorOf(l.best, on)
		if err != nil {
			return nil, err
		}
		if f != nil && f.Share > 0 {
			out = append(out, distance{of: l.best.Point, times: 1 / f.Share, bound: f.Bound})
		}
	}
	return out, nil
}

// meanOf is the geometric mean of distances.
func meanOf(all []distance) float64 {
	sum := 0.0
	for _, d := range all {
		sum += math.Log(d.times)
	}
	return math.Exp(sum / float64(len(all)))
}

// boundOf is the bound that most of all have, the first by name if several do.
func boundOf(all []distance) string {
	count := map[string]int{}
	for _, d := range all {
		count[d.bound]++
	}
	best := ""
	for _, d := range all {
		if count[d.bound] > count[best] || count[d.bound] == count[best] && d.bound < best {
			best = d.bound
		}
	}
	return best
}

// A family is layers of like size, number of sequences and pass.
type family struct {
	name string
	all  []distance
}

// familyOf names the family of p.
func familyOf(p record.Point) string {
	units := "under 256 units"
	switch {
	case p.Hidden >= 1024:
		units = "1,024 units and more"
	case p.Hidden >= 256:
		units = "256 to 1,023 units"
	}
	sequences := "under 16 sequences"
	if p.Batch >= 16 {
		sequences = "16 sequences and more"
	}
	return strings.Join([]string{units, sequences, passOf(p)}, ", ")
}

// passOf names the pass of p.
func passOf(p record.Point) string {
	if p.Pass == "train" {
		return "training"
	}
	return "forward"
}

// widthOf names the width of the values of p.
func widthOf(p record.Point) string {
	if p.Precision == "fp32" {
		return "fp32"
	}
	return "16 bits"
}

// familiesOf divides distances by name, the furthest from the floor first.
func familiesOf(all []distance, name func(record.Point) string) (out []family) {
	for _, d := range all {
		i := slices.IndexFunc(out, func(f family) bool { return f.name == name(d.of) })
		if i < 0 {
			i = len(out)
			out = append(out, family{name: name(d.of)})
		}
		out[i].all = append(out[i].all, d)
	}
	slices.SortStableFunc(out, func(a, b family) int { return cmp.Compare(meanOf(b.all), meanOf(a.all)) })
	return out
}

// tableOfFloors has a row for each family: how many times its floor a layer takes.
func tableOfFloors(title, what string, all []family) *table.Table {
	t := &table.Table{Title: title, Columns: []table.Column{
		{Name: what, Key: "layers"}, show.Column("Number", "number"), show.Column("time over floor", "over_floor_mean"), show.Column("least", "over_floor_least"), show.Column("most", "over_floor_most"), {Name: "Bound of most", Key: "bound"},
	}}
	for _, f := range all {
		by := func(a, b distance) int { return cmp.Compare(a.times, b.times) }
		t.Rows = append(t.Rows, []table.Cell{table.Text(f.name), table.Int(len(f.all)), show.Number(meanOf(f.all), "%.1f"),
			show.Number(slices.MinFunc(f.all, by).times, "%.1f"), show.Number(slices.MaxFunc(f.all, by).times, "%.1f"), table.Text(boundOf(f.all))})
	}
	return t
}

// fewestLayers is how many layers a family must have to be named in a finding.
const fewestLayers = 3

// addFloors adds to rep how far the fastest technique of each layer is from its floor.
func addFloors(rep *study.Report, all []autoLayer, on study.Target) error {
	distances, err := distancesOf(all, on)
	if err != nil || len(distances) == 0 {
		return err
	}
	kinds := []family{{name: "all", all: distances}}
	kinds = append(kinds, familiesOf(distances, func(p record.Point) string { return passOf(p) + ", " + widthOf(p) })...)
	sums := tableOfFloors("Time of the fastest technique over its floor", "Layers", kinds)
	sums.Notes = []string{"geometric means over layers; the floor is the least time of that technique by the machine's model, and its bound is what takes that time"}
	families := familiesOf(distances, familyOf)
	rep.Tables = append(rep.Tables, sums, tableOfFloors("Families of layers, the furthest from their floor first", "Family", families))
	said := fmt.Sprintf("The fastest technique takes %.1f times its floor (geometric mean of %s).", meanOf(distances), quantity.Plural(len(distances), "layer"))
	var far []string
	for _, f := range families {
		if len(f.all) >= fewestLayers && len(far) < 3 {
			far = append(far, fmt.Sprintf("%s (%.1f×, by %s)", f.name, meanOf(f.all), boundOf(f.all)))
		}
	}
	if far != nil {
		said += fmt.Sprintf(" Of families with at least %d layers, these are the furthest from their floors: %s.", fewestLayers, strings.Join(far, "; "))
	}
	rep.Findings = append(rep.Findings, said)
	return nil
}
