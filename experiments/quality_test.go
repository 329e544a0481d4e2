package experiments_test

import (
	"strings"
	"testing"
	"time"

	"rnnbench/experiments/study"
	"rnnbench/record"
)

// timed returns a record with a median and a number of rounds. half is half of its interval, 0 for
// none.
func timed(label string, seconds, half float64, rounds int, warnings ...string) record.Record {
	r := record.Record{Status: record.OK, Point: record.Point{Cell: "lstm"}, Impl: record.Impl{Name: label, Label: label}, Stats: &record.Stats{N: rounds, Median: seconds}, Warnings: warnings}
	if half > 0 {
		lo, hi := seconds*(1-half), seconds*(1+half)
		r.Stats.Lo, r.Stats.Hi = &lo, &hi
	}
	return r
}

// TestQuality checks what is said of rounds, intervals and clocks.
func TestQuality(t *testing.T) {
	training := timed("learns", 1, 0, 1)
	training.Training = &record.Training{}
	failed := timed("fails", 1, 0, 9)
	failed.Status, failed.Stats = record.Failed, nil
	recs := []record.Record{timed("a", 1, 0.02, 6), timed("b", 2, 0.1, 6, record.WarnThrottled), timed("c", 1, 0, 2), training, failed}
	const want = "Measured in one run: 3 records; rounds: 2 to 6, median 6. Half the width of a median's interval is 10 % in the median record, and 10 % at most. 1 of 3 have too few rounds for an interval. The clock was throttled during 1 of 3 records (33 %)."
	if s := study.QualityOf(recs).String(); s != want {
		t.Errorf("%q, want %q", s, want)
	}
	recs[0].Samples, recs[1].Samples = &record.Samples{Clock: []float64{1.98e9, 1.98e9}}, &record.Samples{Clock: []float64{1.2e9}}
	if s := study.QualityOf(recs).String(); !strings.Contains(s, "at most. 1 of 3 have too few rounds for an interval. After samples, the clock is 1.98 GHz in the median and 1.20 GHz at least. The clock was throttled") {
		t.Errorf("with clocks: %q", s)
	}
	if s := study.QualityOf(recs[:1]).String(); !strings.HasSuffix(s, "the clock is 1.98 GHz in the median and 1.98 GHz at least. It was throttled during no record.") {
		t.Errorf("never throttled: %q", s)
	}
	recs[0].Samples = nil
	if s := study.QualityOf(recs[3:]).String(); s != "" {
		t.Errorf("of no times: %q", s)
	}
	if s := study.QualityOf(recs[:1]).String(); s != "Measured in one run: 1 record; rounds: 6. Half the width of a median's interval is 2.0 % in the median record, and 2.0 % at most." {
		t.Errorf("of one: %q", s)
	}
}

// TestSittings: a run that was resumed hours later is not called one run, however long measuring took.
func TestSittings(t *testing.T) {
	start := time.Date(2026, 11, 27, 2, 0, 0, 0, time.UTC)
	at := func(label string, after time.Duration, measured float64) record.Record {
		r := timed(label, 1, 0.02, 6, record.WarnNoisy)
		r.Time, r.Cost.Measure = start.Add(after), measured
		return r
	}
	recs := []record.Record{at("a", 0, 10), at("b", 30*time.Minute, 1700), at("c", 30*time.Minute, 90)}
	if s := study.QualityOf(recs).String(); !strings.HasPrefix(s, "Measured in one run: 3 records") || !strings.Contains(s, "3 of 3 are noisy") {
		t.Errorf("%q", s)
	}
	recs = append(recs, at("d", 7*time.Hour+20*time.Minute, 10))
	if s := study.QualityOf(recs).String(); !strings.HasPrefix(s, "Measured in 2 sittings within 7 hours: 4 records") {
		t.Errorf("%q", s)
	}
}

// TestRepeat checks what is said of two runs.
func TestRepeat(t *testing.T) {
	a := []record.Record{timed("a", 1, 0, 6), timed("b", 2, 0, 6), timed("c", 1, 0, 6), timed("alone", 1, 0, 6)}
	b := []record.Record{timed("a", 1.1, 0, 6), timed("b", 1.6, 0, 6), timed("c", 1.01, 0, 6)}
	if s := study.RepeatOf(a, b).String(); s != "two runs differ by 10.0 % (median of 3), 25.0 % at most" {
		t.Errorf("%q", s)
	}
	if s := study.RepeatOf(a[3:], b).String(); s != "" {
		t.Errorf("of no pair: %q", s)
	}
}
