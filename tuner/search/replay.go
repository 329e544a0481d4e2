package search

import (
	"context"
	"fmt"

	"rnnbench/record"
)

// A Replay is a bench of recorded samples. It returns each arm's samples in order, and starts again
// from the first after the last.
type Replay struct {
	Records []*record.Record // one for each arm; records that are not ok are out

	// Time is the seconds that the samples drawn so far took, with each arm's setup.
	Time float64
	next []int
}

// Measure implements Bench.
func (r *Replay) Measure(_ context.Context, arm int, limit float64) (float64, error) {
	if r.next == nil {
		r.next = make([]int, len(r.Records))
	}
	rec, n := r.Records[arm], r.next[arm]
	if n == 0 {
		r.Time += rec.Cost.Setup + rec.Cost.Verify + rec.Cost.Warmup
	}
	samples := Samples(rec)
	if len(samples) == 0 {
		return 0, fmt.Errorf("search: %s: %w", rec.Impl.Label, ErrOut)
	}
	s := samples[n%len(samples)]
	r.next[arm]++
	if n == 0 && limit > 0 && s > limit { // a rough sample, which the warm-up gave
		return s, nil
	}
	r.Time += rec.Cost.Measure / float64(len(samples))
	return s, nil
}

// Leave implements Bench.
func (*Replay) Leave(int, Reason) error { return nil }

// All is the seconds that recording all samples took.
func (r *Replay) All() float64 {
	sum := 0.0
	for _, rec := range r.Records {
		sum += rec.Cost.Setup + rec.Cost.Verify + rec.Cost.Warmup + rec.Cost.Measure
	}
	return sum
}

// Samples returns a record's wall times in seconds per run; nil where it is not ok or was not verified.
func Samples(rec *record.Record) []float64 {
	if rec.Status != record.OK || rec.Samples == nil || rec.Verify == nil || !rec.Verify.OK {
		return nil
	}
	return rec.Samples.Wall
}
