package experiments_test

import (
	"strings"
	"testing"

	"rnnbench/experiments"
)

// TestOverhead: the overhead of training is the median over the records, whatever another program
// disturbs. It is compared with the target of the device.
func TestOverhead(t *testing.T) {
	const cpuTarget, gpuTarget = "target on a CPU is at most 5 %: ", "target on a GPU is at most 10 %: "
	for _, c := range []struct {
		id, table, says, target string
		gpu, full               bool
		ratio, spread           float64
	}{
		{"martin-train", "4.0", "4.0 %", cpuTarget + "it applies to the full size alone.", false, false, 1.04, 0},
		{"martin-train", "4.0", "4.0 %", cpuTarget + "it is met.", false, true, 1.04, 0.001},
		{"martin-train", "7.0", "7.0 %", cpuTarget + "it is missed.", false, true, 1.07, 0.001},
		{"martin-train", "7.0", "7.0 %", cpuTarget + "records differ too much to tell whether it is met.", false, true, 1.07, 0.1},
		{"martin-train", "7.0", "7.0 %", gpuTarget + "it is met.", true, true, 1.07, 0.001},
		{"hwang-train", "107 %", "7.0 %", gpuTarget + "it is met.", true, true, 1.07, 0.001},
		{"hwang-train", "107 %", "7.0 %", gpuTarget + "it applies to the full size alone.", true, false, 1.07, 0.001},
		{"martin-fig1-training", "", "median of", "an iteration takes 7.0 % more", false, true, 1.07, 0},
	} {
		on := cpu
		if c.gpu {
			on = gpu
		}
		recs := planned(t, c.id, on)
		for i := range recs {
			x := recs[i].Training
			if x == nil || x.Beside == nil {
				continue
			}
			one := *x.Beside
			if seq := recs[i].Seq; seq < 10 {
				one.Ratio = c.ratio + c.spread*float64(seq-5)
			} else {
				one.Ratio = c.ratio
			}
			if recs[i].Seq == 9 && c.spread < 0.01 {
				one.Ratio = 30
			}
			x.Beside = &one
		}
		on.Reduced = !c.full
		e, err := experiments.Lookup(c.id)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := e.Report(recs, on)
		if err != nil {
			t.Fatal(err)
		}
		if s := about(rep, "in turns"); !strings.Contains(s, c.says) || !strings.Contains(s, c.target) {
			t.Errorf("%s: %q, want %q and %q", c.id, s, c.says, c.target)
		}
		found := c.table == ""
		for _, table := range rep.Tables {
			for _, row := range table.Rows {
				for _, cell := range row {
					found = found || cell.Text == c.table
				}
			}
		}
		if !found {
			t.Errorf("%s: no table has %s", c.id, c.table)
		}
	}
}

// TestOverheadUnknown: without the times of passes, a report says nothing of overhead.
func TestOverheadUnknown(t *testing.T) {
	for _, id := range []string{"martin-train", "hwang-train", "martin-fig1-training"} {
		recs := planned(t, id, cpu)
		for i := range recs {
			if x := recs[i].Training; x != nil {
				x.Beside = nil
			}
		}
		rep := report(t, id, recs, cpu)
		for _, words := range []string{"in turns", "NaN", "Inf"} {
			if s := about(rep, words); s != "" {
				t.Errorf("%s: %s", id, s)
			}
		}
	}
}
