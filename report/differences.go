package report

import (
	"path/filepath"

	"rnnbench/experiments/study"
	"rnnbench/plots/table"
)

// Differences is the table of the papers' claims that records contradict, with the cause of each as
// far as the records show one. It is of the newest records on a GPU and on a CPU.
func Differences(list []Recording) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Name: "Records", Key: "records"}, {Name: "The paper found", Key: "paper"}, {Name: "Here", Key: "here"}, {Name: "Cause", Key: "cause"},
	}}
	for _, x := range list {
		for _, r := range []*Recorded{x.GPU, x.CPU} {
			if r == nil || r.Report == nil {
				continue
			}
			name := table.Text(x.Experiment.ID + " on " + filepath.Base(filepath.Dir(r.Set.Dir)))
			for _, c := range r.Report.Claims {
				switch c.Outcome {
				case study.Differs:
				case study.ComputedDiffers:
					c.Why += " (computed, not measured)"
				default:
					continue
				}
				t.Rows = append(t.Rows, []table.Cell{name, table.Text(c.Paper), table.Text(c.Here), table.Text(c.Why)})
			}
		}
	}
	return t
}
