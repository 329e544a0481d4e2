package explain

import (
	"fmt"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
)

// Compare compares what makes techniques fast or slow at one point; nil where fewer than two run.
func Compare(all []*Explanation) *table.Table {
	t := &table.Table{Title: "Side by side", Columns: []table.Column{
		{Name: "impl", Key: "impl"}, {Name: "operations", Key: "ops", Right: true}, {Name: "FLOPs", Key: "flops_executed", Right: true}, {Name: "bytes", Key: "bytes", Right: true},
		{Name: "streams", Key: "streams", Right: true}, {Name: "critical path", Key: "critical_ops", Right: true}, {Name: "parallel", Key: "parallelism", Right: true},
	}, Notes: []string{
		"each operation takes time to start, and each byte outside the caches takes time to move",
		"critical path: operations that must run one after the other; parallel: the speed-up if all other operations ran beside them",
	}}
	for _, e := range all {
		if e.Declined != nil {
			continue
		}
		t.Rows = append(t.Rows, []table.Cell{
			table.Text(e.Label), table.Int(e.Operations), table.Number(float64(e.Executed), quantity.SI(float64(e.Executed), "")), table.Number(float64(e.Traffic), quantity.Bytes(float64(e.Traffic))),
			table.Int(e.Streams), table.Int(e.Chain), table.Number(e.Parallelism, fmt.Sprintf("%.2g×", e.Parallelism)),
		})
	}
	if len(t.Rows) < 2 {
		return nil
	}
	return t
}
