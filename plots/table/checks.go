package table

import (
	"fmt"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// Checks returns a table of the outcome of each record's check.
func Checks(recs []record.Record) *Table {
	t := &Table{Columns: []Column{
		{Name: "point", Key: "point"}, {Name: "impl", Key: "impl"}, {Name: "status", Key: "status"},
		{Name: "worst tensor", Key: "tensor"}, {Name: "error", Key: "error", Right: true}, {Name: "tolerance", Key: "tolerance", Right: true},
		{Name: "sequences", Key: "sequences", Right: true}, {Name: "steps", Key: "steps", Right: true}, {Key: "reason_code"}, {Key: "reason"}, {Name: "method", Key: "method"},
		{Key: "near_zero", Right: true}, {Key: "other_gradient", Right: true}, {Key: "iterations", Right: true}, {Key: "residual", Right: true},
	}}
	all := make([]*record.Record, len(recs))
	for i := range recs {
		r := &recs[i]
		all[i] = r
		row := []Cell{Text(r.Point.String()), Text(r.Impl.Label), Text(string(r.Status)), {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}
		switch r.Status {
		case record.OK:
			row[2].Grade = Near
		case record.Incorrect, record.Impossible, record.Failed:
			row[2].Grade = Worst
		}
		if v := r.Verify; v != nil {
			row[3] = Text(v.Tensor)
			row[4] = Number(v.Error, fmt.Sprintf("%.2g", v.Error))
			row[5] = Number(v.Tolerance, fmt.Sprintf("%.2g", v.Tolerance))
			row[6], row[7], row[10] = Int(v.Sequences), Int(v.Steps), Text(v.Method)
			if k := v.Kinks; k != nil {
				t.Columns[11].Name, t.Columns[12].Name = "near 0", "other gradient"
				row[11], row[12] = Int(k.Near), Int(k.Other)
			}
		}
		if v := r.Verify; v != nil && v.Iterations > 0 {
			t.Columns[13].Name, t.Columns[14].Name = "iterations", "residual"
			row[13], row[14] = Int(v.Iterations), Number(v.Residual, fmt.Sprintf("%.2g", v.Residual))
		}
		if r.ReasonCode != nil {
			row[8] = Text(*r.ReasonCode)
		}
		if r.Reason != nil {
			row[9] = Text(*r.Reason)
			t.Columns[9].Name = "reason"
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = quantity.Doubts(quantity.Latest(recs))
	t.Fold(all)
	return t
}
