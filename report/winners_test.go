package report

import (
	"fmt"
	"strings"
	"testing"

	"rnnbench/record"
)

// tuned makes a run of a tune at two points with so many settings of a technique, each a little slower
// than the one before. At the first point the tune chose the second setting.
func tuned(settings int) record.Set {
	var recs []record.Record
	for i, r := range grid(1, 2, 1, 1)[:4] {
		if r.Impl.Name != "naive" {
			continue
		}
		recs = append(recs, r)
		for k := range settings {
			q := r
			s := *r.Stats
			s.Median = r.Stats.Median * (0.5 + 0.01*float64(k))
			lo, hi := 0.999*s.Median, 1.001*s.Median
			s.Lo, s.Hi = &lo, &hi
			q.Stats, q.Seq = &s, 100*i+k
			q.Impl.Name, q.Impl.Label = "cudnnstyle", fmt.Sprintf("cudnnstyle:block=%d", k)
			recs = append(recs, q)
		}
	}
	s := set("tuned", recs)
	s.Manifest.Winners = []record.Winner{{Point: recs[0].Point, Label: "cudnnstyle:block=1", Seconds: 1e-3, Run: "made-up", Ties: []string{"cudnnstyle:block=0"}}}
	return s
}

// TestTuneWinner: the report of a tune names the tune's choice, not the smallest median. If another run
// measured the choice, the report names that run.
func TestTuneWinner(t *testing.T) {
	s := tuned(3)
	text := pageOf(t, []record.Set{s}, s.Records)
	for _, want := range []string{"Fastest: cudnnstyle:block=0 at 1, a tie or unsure at 1.", "Tune chose cudnnstyle:block=1 at 1.", "The fastest is the choice of tune"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	s.Manifest.Winners[0].Label, s.Manifest.Winners[0].Run, s.Manifest.Winners[0].Ties = "scc", "another", nil
	text = pageOf(t, []record.Set{s}, s.Records)
	if !strings.Contains(text, "scc (run another)") || !strings.Contains(text, "scc at 1") {
		t.Error("a winner of another run is not named")
	}
	s.Manifest.Winners[0].Point.Hidden = 4096
	if text = pageOf(t, []record.Set{s}, s.Records); !strings.Contains(text, "Chosen from earlier runs: scc at cell0 forward H=4096") {
		t.Error("a winner at a point without records is not named")
	}
	s.Manifest.Winners = nil
	if text = pageOf(t, []record.Set{s}, s.Records); !strings.Contains(text, "Fastest: cudnnstyle:block=0 at 2.") {
		t.Error("without a tune the smallest median is not the fastest")
	}
}

// TestFewSettings: figures show the best settings of each technique, and the page says how many they
// leave out.
func TestFewSettings(t *testing.T) {
	s := tuned(40)
	text := pageOf(t, []record.Set{s}, s.Records)
	if !strings.Contains(text, "The table of all measurements lists 36 others") {
		t.Error("the page does not say how many settings its figures leave out")
	}
	figures, table, _ := strings.Cut(text, `id="all"`)
	figures = figures[strings.Index(figures, "<svg "):]
	for _, c := range []struct {
		label string
		drawn bool
	}{{"cudnnstyle:block=1", true}, {"cudnnstyle:block=0", true}, {"cudnnstyle:block=3", true}, {"cudnnstyle:block=4", false}, {"cudnnstyle:block=39", false}} {
		if strings.Contains(figures, c.label+" ·") != c.drawn { // values under the pointer begin like this
			t.Errorf("%s is drawn: %t", c.label, !c.drawn)
		}
		if !strings.Contains(table, c.label) {
			t.Errorf("%s is not in the table of all", c.label)
		}
	}
}
