package danieli

import (
	"fmt"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// A race is a layer with the records of the ways to run it. Each may be nil.
type race struct {
	record.Point
	newton, serial, launched, single *record.Record
	unconverged                      *record.Record    // of Newton's method, if it has no time
	times                            estimate.Estimate // how many times as fast as the serial kernel Newton's method is
}

// races returns the layers of recs: those of the map, or those with a gain.
func races(recs []record.Record, gain bool) (all []race) {
	for _, p := range pick.Points(recs) {
		if p.Cell == surrogate || (p.Gain > 0) != gain {
			continue
		}
		here := func(q record.Point) bool { return q == p }
		x := race{Point: p, newton: pick.Find(recs, newton, here), serial: pick.Find(recs, serial, here), launched: pick.Find(recs, launched, here)}
		linear := p
		linear.Cell = surrogate
		x.single = pick.Find(recs, single, func(q record.Point) bool { return q == linear })
		for i, r := range recs {
			if r.Status == record.NotConverged && r.Impl.Label == newton && r.Point == p && x.newton == nil {
				x.unconverged = &recs[i]
			}
		}
		x.times = estimate.TimesAsFast(x.serial, x.newton)
		all = append(all, x)
	}
	return all
}

// channels is the number of recurrences that run side by side.
func (x race) channels() int { return x.Batch * x.Hidden }

// lead tells whether Newton's method is clearly faster than the serial kernel. It is open within the
// interval of their ratio, and where one has no time.
func (x race) lead() estimate.Answer {
	if !x.times.Known() {
		return estimate.Open
	}
	return estimate.Above(1).Holds(x.times)
}

// iterations is how many the answer of r took; 0: unknown.
func iterations(r *record.Record) int {
	if r == nil || r.Verify == nil {
		return 0
	}
	return r.Verify.Iterations
}

// tableOfGains has a row for each layer with a gain.
func tableOfGains(all []race) *table.Table {
	t := &table.Table{Title: "The same by the gain: how large recurrent weights are", Columns: []table.Column{
		show.Column("Seq.", "batch"), show.Column("Units", "hidden"), show.Column("Steps", "steps"), show.Column("Gain", "gain"), show.Column("newton", "newton_s"),
		show.Column("serial", "serial_s"), show.Column("Iter.", "iterations"), show.Column("×", "ratio"), {Name: "Status", Key: "status"}}}
	for _, x := range all {
		status := "converged"
		switch {
		case x.unconverged != nil:
			status = "not converged"
		case x.newton == nil:
			status = "–"
		}
		t.Rows = append(t.Rows, []table.Cell{
			table.Int(x.Batch), table.Int(x.Hidden), table.Int(x.Steps), table.Number(float64(x.Gain), fmt.Sprintf("%d %%", x.Gain)),
			seconds(x.newton), seconds(x.serial), x.taken(), show.Ratio(x.times.At), table.Text(status)})
	}
	t.Notes = []string{"Gain: in percent of the recurrent weights usually drawn."}
	return t
}

// seconds is a cell of r's time.
func seconds(r *record.Record) table.Cell {
	if r == nil {
		return show.Missing()
	}
	return table.Time(r)
}

// taken is a cell of how many iterations the answer took, or were tried.
func (x race) taken() table.Cell {
	if n := max(iterations(x.newton), iterations(x.unconverged)); n > 0 {
		return table.Int(n)
	}
	return show.Missing()
}

// tableOfRaces has a row for each layer.
func tableOfRaces(all []race) *table.Table {
	t := &table.Table{Title: "GRU with a diagonal recurrence: forward pass, one input", Columns: []table.Column{
		show.Column("Seq.", "batch"), show.Column("Units", "hidden"), show.Column("Steps", "steps"), show.Column("newton", "newton_s"), show.Column("serial", "serial_s"),
		show.Column("scan", "scan_s"), show.Column("Iter.", "iterations"), show.Column("×", "ratio")}}
	failing := false
	for _, x := range all {
		failing = failing || x.unconverged != nil
	}
	if failing {
		t.Columns = append(t.Columns, table.Column{Name: "Status", Key: "status"})
	}
	for _, x := range all {
		status := ""
		if x.unconverged != nil {
			status = "not converged"
		}
		row := []table.Cell{table.Int(x.Batch), table.Int(x.Hidden), table.Int(x.Steps), seconds(x.newton), seconds(x.serial), seconds(x.single), x.taken(), show.Ratio(x.times.At)}
		if failing {
			row = append(row, table.Text(status))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{"×: how many times as fast as the serial kernel newton is. Channels are sequences × units."}
	return t
}
