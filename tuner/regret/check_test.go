package regret

import (
	"math"
	"strings"
	"testing"

	"rnnbench/results"
	"rnnbench/tuner"
	"rnnbench/tuner/search"
)

// TestCheckTable: the notes have the mean, the worst and the count of near points, without those that failed.
func TestCheckTable(t *testing.T) {
	verdict := func(name string, hidden int, complete bool) *tuner.Verdict {
		r := timed(name, hidden, 1)
		return &tuner.Verdict{Point: r.Point, Records: []*results.Record{r}, Result: &search.Result{Medians: []float64{1}, Samples: [][]float64{r.Samples.Wall}, Left: make([]search.Reason, 1), Complete: complete}}
	}
	c := &Check{}
	for i, share := range []float64{0, 0.21, -0.01, math.NaN()} {
		c.add(verdict("naive", 8<<i, true), verdict("cudnnstyle", 8<<i, i != 1), 2+float64(i), 60, share)
	}
	tab := c.Table()
	got := strings.Join(tab.Notes, "\n")
	for _, want := range []string{"both in turns over 24 rounds: geometric mean +6.2 %, worst +21.0 %; within 2 % at 2 of 3 points", "tuning took 3.50 s a point, at most 5.00 s", "at 1 point the budget ended"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if len(tab.Rows) != 4 || tab.Rows[1][5].Text != "1, budget exhausted" || tab.Rows[1][7].Text != "+21.0 %" || tab.Rows[2][7].Text != "-1.0 %" || tab.Rows[3][7].Text != "one of them failed" {
		t.Errorf("%v", tab.Rows)
	}
	if notes := (&Check{}).Table().Notes; len(notes) > 0 {
		t.Errorf("without points it says %q", notes)
	}
}
