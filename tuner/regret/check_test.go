package regret

import (
	"strings"
	"testing"

	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/search"
)

// TestCheckTable: the notes have the mean, the worst and the count of near points, without those that failed.
func TestCheckTable(t *testing.T) {
	verdict := func(name string, hidden int, complete bool) *tuner.Verdict {
		r := timed(name, hidden, 1)
		return &tuner.Verdict{Point: r.Point, Records: []*record.Record{r}, Result: &search.Result{Medians: []float64{1}, Samples: [][]float64{r.Samples.Wall}, Left: make([]search.Reason, 1), Complete: complete}}
	}
	c := &Check{}
	for i, ratio := range []float64{1, 1.21, 1.1, 0.99, 0} {
		st := record.Stats{N: 40, Median: ratio, Lo: new(float64), Hi: new(float64)}
		if *st.Lo, *st.Hi = 0.9*ratio, 1.1*ratio; ratio == 0 { // it failed
			st = record.Stats{}
		}
		c.add(verdict("naive", 8<<i, true), verdict("cudnnstyle", 8<<i, i != 1), 2+float64(i), 60, st)
	}
	tab := c.Table()
	got := strings.Join(tab.Notes, "\n")
	for _, want := range []string{"in turns over 40 rounds: geometric mean +7.1 %, worst +21.0 %; within 2 % at 2 of 4 points; at 1 more the interval does not tell", "tuning took 4.00 s a point, at most 6.00 s", "at 1 point the budget ended"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if len(tab.Rows) != 5 || tab.Rows[1][5].Text != "1, budget exhausted" || tab.Rows[1][7].Text != "+21.0 % (+8.9 to +33.1)" || tab.Rows[4][7].Text != "one of them failed" {
		t.Errorf("%v", tab.Rows)
	}
	if notes := (&Check{}).Table().Notes; len(notes) > 0 {
		t.Errorf("without points it says %q", notes)
	}
}
