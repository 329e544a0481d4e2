package experiments_test

import (
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/record"
)

// TestEnergyIntervals: work per joule has the interval of the windows of both sides. With the three
// windows of a steady technique it has none, and the report says why.
func TestEnergyIntervals(t *testing.T) {
	e, err := experiments.Lookup("energy")
	if err != nil {
		t.Fatal(err)
	}
	recs := synthetic(e, cpu)
	windowed := func(n int) []record.Record {
		for i := range recs {
			j := *recs[i].Energy.Joules
			recs[i].Energy.Windows = nil
			for k := range n {
				recs[i].Energy.Windows = append(recs[i].Energy.Windows, j*(0.96+0.01*float64(k%9)))
			}
		}
		return recs
	}
	for _, c := range []struct {
		windows int
		want    string
		lacks   string
	}{
		{3, "(interval unknown) the work per joule", ""},
		{3, "These techniques have 3 to 3 windows", ""},
		{12, " the work per joule, ", "interval unknown"},
	} {
		rep, err := e.Report(windowed(c.windows), cpu)
		if err != nil {
			t.Fatal(err)
		}
		said := about(rep, "last stage of Appleyard's ladder") + about(rep, "These techniques have")
		if !strings.Contains(said, c.want) || c.lacks != "" && strings.Contains(said, c.lacks) {
			t.Errorf("%d windows: %q; want %q, not %q", c.windows, said, c.want, c.lacks)
		}
	}
}
