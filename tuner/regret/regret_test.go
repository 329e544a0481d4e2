package regret

import (
	"strings"
	"testing"

	"rnnbench/record"
	"rnnbench/tuner/wisdom"
)

// timed is a record of a technique at a point with so many units. All its samples take so many
// seconds.
func timed(name string, hidden int, seconds float64) *record.Record {
	wall := []float64{seconds, seconds, seconds, seconds}
	st, _ := record.Summarize(wall, 0)
	return &record.Record{
		Point: record.Point{Hidden: hidden, Batch: 1, Steps: 1, Layers: 1, Input: hidden}, Device: "cpu-x", Impl: record.Impl{Name: name}, Status: record.OK,
		Mode: record.Mode{Cache: "hot"}, Samples: &record.Samples{Wall: wall}, Stats: &st, Verify: &record.Verify{OK: true},
	}
}

// TestRecorded finds the choice among records: by an exact entry, by a near one, and without one.
func TestRecorded(t *testing.T) {
	group := func(hidden int) []*record.Record {
		return []*record.Record{timed("naive", hidden, 2), timed("cudnnstyle", hidden, 1), timed("cudnn", hidden, 0.5)}
	}
	var book wisdom.Book
	book.Put(wisdom.Entry{Device: "cpu-x", Cache: "hot", Point: group(8)[0].Point, Impl: "naive"})
	book.Put(wisdom.Entry{Device: "cpu-x", Cache: "hot", Point: group(1024)[0].Point, Impl: "cudnn"})
	p := Policy{
		Book: &book, Allowed: func(name string) bool { return name != "cudnn" },
		Usual: func(_ string, p record.Point) []string { return []string{"persistent", "cudnnstyle"} },
	}
	bound := record.ReasonBound
	declined, lost := timed("persistent", 128, 0), timed("persistent", 128, 0)
	declined.Status, declined.Samples, declined.Stats, declined.ReasonCode = record.Skipped, nil, nil, new(string)
	*declined.ReasonCode = record.ReasonMemory
	*lost = *declined
	lost.ReasonCode = &bound
	g := &List{}
	g.Recorded(p, group(8))                      // exact: four times as slow
	g.Recorded(p, group(16))                     // nearest: likewise
	g.Recorded(p, append(group(128), declined))  // default: twice as slow
	g.Recorded(p, append(group(128), lost))      // a record skipped only by a tuner may be the choice
	g.Recorded(p, group(1024))                   // the entry's technique is not allowed, and the usual one has no record
	g.Recorded(p, []*record.Record{group(8)[1]}) // the entry's technique has no record
	got := strings.Join(g.Table().Notes, "\n")
	for _, want := range []string{
		"exact: regret geometric mean 300.00 % over 1 point, worst 300.0 %", "nearest: regret geometric mean 300.00 % over 1 point",
		"default: regret geometric mean 100.00 % over 1 point", "3 points omitted: auto's choice was not measured",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if rows := g.Table().Rows; len(rows) != 3 || rows[1][3].Text != "1" || rows[2][1].Text != "cudnnstyle" || rows[2][5].Text != "cudnn" {
		t.Errorf("%v", rows)
	}
}

// TestRefused: auto passes over techniques that cannot run, but not those that were not measured or
// failed.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		status record.Status
		code   string
		want   bool
	}{
		{record.Skipped, record.ReasonMemory, true},
		{record.Skipped, record.ReasonCell, true},
		{record.Skipped, record.ReasonUnlikely, false},
		{record.Skipped, record.ReasonBound, false},
		{record.Failed, record.ReasonCUDA, false},
	} {
		if got := refused(&record.Record{Status: c.status, ReasonCode: &c.code}); got != c.want {
			t.Errorf("%s, %s: %v", c.status, c.code, got)
		}
	}
}

// TestApart: if regret is far from the ratio of the times, the table explains why.
func TestApart(t *testing.T) {
	for share, want := range map[float64]bool{0.25: false, 0.1: true} {
		g := &List{}
		g.add(record.Point{}, &record.Choice{Match: predicted}, timed("persistent", 8, 1.25), timed("naive", 8, 1), share)
		if got := strings.Contains(strings.Join(g.Table().Notes, "\n"), "times are medians, whose ratio may differ"); got != want {
			t.Errorf("a regret of %v beside times of 1.25 s and 1 s is explained: %v", share, got)
		}
	}
}
