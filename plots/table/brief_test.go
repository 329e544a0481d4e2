package table

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/record"
	"rnnbench/record/compare"
)

// TestBrief: a comment lists what changed, slower points first, and is never too long for a pull request.
func TestBrief(t *testing.T) {
	c := compare.Comparison{Base: "base", New: "head", Shift: compare.Interval{Value: math.NaN()}}
	for i := range 1000 {
		v := compare.Verdicts()[i%len(compare.Verdicts())]
		r := &record.Record{Point: record.Point{Cell: "lstm", Pass: "forward", Hidden: i + 1, Precision: "fp32"}, Impl: record.Impl{Name: "naive", Label: "naive:" + strings.Repeat("knob=1:", 20)}, Device: "cpu", Status: record.OK,
			Stats: &record.Stats{Median: 1e-3}}
		c.Changes = append(c.Changes, compare.Change{Verdict: v, Base: r, New: r, Ratio: compare.Interval{Value: 1.2, Lo: 1.1, Hi: 1.3}, P: 0.01, Why: strings.Repeat("why ", 10)})
	}
	var b strings.Builder
	if err := (Brief{Comparison: &c, Options: compare.Usual(), Of: "head a<b against base c", Notes: []string{"A note."}}).Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if !strings.HasPrefix(text, "### rnnbench: 125 SLOWER, 125 BROKEN, 125 FASTER") || !strings.Contains(text, "head a&lt;b against base c") {
		t.Errorf("it begins: %.200s", text)
	}
	if rows := strings.Count(text, "| SLOWER "); rows != briefRows || strings.Contains(text, "| SAME ") || len(text) > 20000 {
		t.Errorf("%d rows, %d characters", rows, len(text))
	}
	if !strings.Contains(text, "- 730 points more changed") || !strings.HasSuffix(text, "- A note.\n") {
		t.Errorf("it ends: %s", text[len(text)-200:])
	}
	c.Changes = slices.DeleteFunc(c.Changes, func(ch compare.Change) bool { return ch.Verdict != compare.Same })
	b.Reset()
	if err := (Brief{Comparison: &c, Options: compare.Usual(), Notes: []string{"A note."}}).Write(&b); err != nil || strings.Contains(b.String(), "|") {
		t.Errorf("%v: %s", err, b.String())
	}
}

// TestSees is what is said of runs whose points move by 4 % from run to run, and of steady ones.
func TestSees(t *testing.T) {
	of := func(moves float64) string {
		var base, head compare.Side
		for run, up := range []float64{1, -1, -1, 1, 1, -1} {
			for i, side := range []*compare.Side{&base, &head} {
				times := make([]float64, 12)
				for j := range times {
					times[j] = 1e-3 * (1 + moves*up*float64(1-2*i)) * (1 + 1e-5*float64(j+run))
				}
				st, _ := record.Summarize(times, 0)
				r := record.Record{Point: record.Point{Cell: "lstm", Pass: "forward", Hidden: 1, Precision: "fp32"}, Impl: record.Impl{Name: "naive", Label: "naive"}, Device: "cpu", Status: record.OK,
					Stats: &st, Samples: &record.Samples{Wall: times}}
				side.Runs = append(side.Runs, record.Set{Records: []record.Record{r}})
			}
		}
		list, err := compare.Runs(base, []compare.Side{head}, compare.Usual())
		if err != nil {
			t.Fatal(err)
		}
		return Sees(&list[0], compare.Usual(), 6, 9*time.Minute, 0.05)
	}
	for moves, want := range map[float64]string{
		0.6:   "Noisy: in 6 runs of each program, which took 9 min, this machine shows changes of 3.84× and more; 5 % would take about 4 days.",
		0.04:  "Noisy: in 6 runs of each program, which took 9 min, this machine shows changes of 8.1 % and more; 5 % would take about 21 min.",
		0.002: "In 6 runs of each program, which took 9 min, this machine shows changes of 2.2 % and more.",
	} {
		if got := of(moves); got != want {
			t.Errorf("%v: %s", moves, got)
		}
	}
}
