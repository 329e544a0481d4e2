package experiments_test

import (
	"strings"
	"testing"
)

// TestOverhead: what training takes beside its pass is the median over the records, whatever
// another program disturbs, and it is held to the target of the device.
func TestOverhead(t *testing.T) {
	for _, c := range []struct {
		id, percent, takes, outcome string
		gpu                         bool
		ratio                       float64
	}{
		{"martin-train", "4.0 %", "+4.0 to +4.0 %", "The target on a CPU is at most 5 %: it is met.", false, 1.04},
		{"martin-train", "7.0 %", "+7.0 to +7.0 %", "The target on a CPU is at most 5 %: it is missed.", false, 1.07},
		{"martin-train", "7.0 %", "+7.0 to +7.0 %", "The target on a GPU is at most 10 %: it is met.", true, 1.07},
		{"hwang-train", "107 %", "+7.0 to +7.0 %", "The target on a GPU is at most 10 %: it is met.", true, 1.07},
		{"martin-fig1-training", "7.0 %", "", "", false, 1.07},
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
			if one.Ratio = c.ratio; recs[i].Seq == 3 {
				one.Ratio, one.Pass = 30, 30*one.Pass
			}
			x.Beside = &one
		}
		rep := report(t, c.id, recs, on)
		s := about(rep, "in turns")
		if !strings.Contains(s, c.takes) || !strings.Contains(s, c.outcome) {
			t.Errorf("%s: %q, want %q and %q", c.id, s, c.takes, c.outcome)
		}
		if c.id == "martin-fig1-training" {
			if !strings.Contains(s, c.percent+" more") {
				t.Errorf("%s: %q", c.id, s)
			}
			continue
		}
		found := false
		for _, table := range rep.Tables {
			for _, row := range table.Rows {
				for _, cell := range row {
					found = found || cell.Text == c.percent || cell.Text+" %" == c.percent
				}
			}
		}
		if !found {
			t.Errorf("%s: no table has %s", c.id, c.percent)
		}
	}
}

// TestOverheadUnknown: without the times of passes, nothing is said of them.
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
