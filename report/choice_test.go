package report

import (
	"slices"
	"testing"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// pointed is a record of a setting at a point with so many units, in seconds.
func pointed(hidden int, label string, seconds float64) *record.Record {
	r := grid(1, 1, 1, 1)[0]
	r.Point.Hidden, r.Impl.Label = hidden, label
	s := *r.Stats
	s.Median = seconds
	r.Stats = &s
	return &r
}

// chosen is the builder of a tune's page, which chose a label at the point with 64 units.
func chosen(label string, recs ...*record.Record) *builder {
	s := set("tuned", nil)
	s.Manifest.Winners = []record.Winner{{Point: recs[0].Point, Label: label}}
	return &builder{sets: []record.Set{s}, recs: recs}
}

// TestRanked: a setting that a tune chose once ranks before one that is the fastest at more points. Of
// others, the one that is less behind ranks first.
func TestRanked(t *testing.T) {
	recs := []*record.Record{
		pointed(64, "naive:a=1", 1), pointed(64, "naive:a=2", 1.01), pointed(64, "naive:a=3", 3), pointed(64, "naive:a=4", 2),
		pointed(128, "naive:a=1", 1), pointed(128, "naive:a=2", 4), pointed(128, "naive:a=3", 3), pointed(128, "naive:a=4", 2),
	}
	b := chosen("naive:a=2", recs...)
	got := b.ranked(recs, "naive", []string{"naive:a=4", "naive:a=3", "naive:a=2", "naive:a=1"})
	if !slices.Equal(got, []string{"naive:a=2", "naive:a=1", "naive:a=4", "naive:a=3"}) {
		t.Errorf("ranked %v", got)
	}
}

// TestBehindChoice: what has a smaller median than a tune's choice is left out of a map of winners, and
// what is slower stays.
func TestBehindChoice(t *testing.T) {
	recs := []*record.Record{pointed(64, "naive:a=1", 0.99), pointed(64, "naive:a=2", 1), pointed(64, "naive:a=3", 2), pointed(128, "naive:a=1", 5)}
	list := chosen("naive:a=2", recs...).behindWinner(recs, false)
	var labels []string
	for _, r := range list {
		labels = append(labels, quantity.Label(r))
	}
	if !slices.Equal(labels, []string{"naive:a=2", "naive:a=3", "naive:a=1"}) {
		t.Errorf("left are %v", labels)
	}
}

// TestChosenElsewhere: a choice among the entrants comes first, also if it was first before. Only a choice
// that is not among them was measured elsewhere.
func TestChosenElsewhere(t *testing.T) {
	recs := []*record.Record{pointed(64, "naive:a=1", 1), pointed(64, "naive:a=2", 1.01)}
	for label, elsewhere := range map[string]bool{"naive:a=1": false, "naive:a=2": false, "naive:a=9": true} {
		b := chosen(label, recs...)
		x := b.crown(races(recs))[0]
		if x.elsewhere != elsewhere || !elsewhere && quantity.Label(x.entrants[0]) != label {
			t.Errorf("%s: measured elsewhere is %t, and the first is %s", label, x.elsewhere, quantity.Label(x.entrants[0]))
		}
	}
}

// TestWrongAnswersAreCounted: wrong answers and failures are counted apart.
func TestWrongAnswersAreCounted(t *testing.T) {
	var s record.Set
	for i, status := range []record.Status{record.Incorrect, record.Incorrect, record.Incorrect, record.Failed, record.Timeout, record.OK, record.Skipped} {
		s.Records = append(s.Records, record.Record{Status: status, Point: record.Point{Hidden: i}})
	}
	r := &Recorded{Reproduction: Reproduction{Set: s}}
	if got, want := r.state(), "0001-01-01, computed, 3 wrong answers, 2 failed"; got != want {
		t.Errorf("the state is %q, want %q", got, want)
	}
}
