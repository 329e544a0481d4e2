package experiments_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/record"
)

// TestProductionLengths compares layers with lengths with the same layers at full length, where both
// are known.
func TestProductionLengths(t *testing.T) {
	e, err := experiments.Lookup("production")
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range []study.Target{cpu, gpu} {
		recs := synthetic(e, on)
		of := func(recs []record.Record) *study.Report {
			rep, err := e.On(record.Device{Key: recs[0].Device}, recs)
			if err != nil {
				t.Fatal(err)
			}
			return rep
		}
		rep := of(recs)
		i := slices.IndexFunc(rep.Findings, func(s string) bool { return strings.HasPrefix(s, "Sequences of half the steps") })
		if len(rep.Tables) != 2 || len(rep.Tables[1].Rows) != 2 || i < 0 || len(rep.Figures) < 2 {
			t.Fatalf("%d tables, %d figures, findings %q", len(rep.Tables), len(rep.Figures), rep.Findings)
		}
		for _, row := range rep.Tables[1].Rows { // the synthetic time is that of the steps that exist
			mean := row[1].Value.(float64) / 100
			for i, c := range row[2:] {
				low := mean - 0.08
				if strings.HasSuffix(rep.Tables[1].Columns[2+i].Name, " padded") { // later forms are faster here
					low = 0.5 * mean
				}
				if v := c.Value.(float64); v < low || v > mean+0.08 {
					t.Errorf("%s: %s of the full batches' time, want about %.2f", row[0].Text, c.Text, mean)
				}
			}
		}
		if rep := of(slices.DeleteFunc(slices.Clone(recs), func(r record.Record) bool { return r.Point.Direction != "" && r.Point.Lengths == "" })); len(rep.Tables) != 1 {
			t.Errorf("without full batches there are %d tables", len(rep.Tables))
		}
	}
}

// TestProductionFigure: each layer that cuDNN runs has a row with the lead over it, the largest first.
func TestProductionFigure(t *testing.T) {
	recs := planned(t, "production", gpu)
	rep := report(t, "production", recs, gpu)
	var rows []float64
	for _, f := range rep.Figures {
		if bars, ok := f.Figure.(*plots.Bars); ok && f.Name == "production" {
			for _, g := range bars.Groups {
				rows = append(rows, g.Bars[0].Value)
			}
		}
	}
	layers := map[record.Point]bool{}
	for _, r := range recs {
		if strings.HasPrefix(r.Impl.Label, "cudnn") && r.Impl.Name == "cudnn" {
			layers[r.Point] = true
		}
	}
	if len(rows) != len(layers) || !slices.IsSortedFunc(rows, func(a, b float64) int { return cmp.Compare(b, a) }) {
		t.Errorf("%d rows for %d layers: %v", len(rows), len(layers), rows)
	}
}
