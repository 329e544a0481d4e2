package search

import (
	"context"
	"fmt"

	"rnnbench/results"
)

// A Replay is a bench of recorded samples. It hands out each arm's samples in
// their order, and again from the first where there are no more.
type Replay struct {
	Records []*results.Record // one for each arm; what is not ok is out

	// Time is what the samples drawn so far took, in seconds, with what came
	// before an arm's first one.
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
	if n == 0 && limit > 0 && s > limit { // a rough sample, which the warm-up gives
		return s, nil
	}
	r.Time += rec.Cost.Measure / float64(len(samples))
	return s, nil
}

// Leave implements Bench.
func (*Replay) Leave(int, Reason) error { return nil }

// All is what recording all samples took, in seconds.
func (r *Replay) All() float64 {
	sum := 0.0
	for _, rec := range r.Records {
		sum += rec.Cost.Setup + rec.Cost.Verify + rec.Cost.Warmup + rec.Cost.Measure
	}
	return sum
}

// Samples are those of a record's statistics; none where it is not ok, or was not
// checked against the reference.
func Samples(rec *results.Record) []float64 {
	if rec.Status != results.OK || rec.Samples == nil || rec.Verify == nil || !rec.Verify.OK {
		return nil
	}
	return rec.Samples.Wall
}
