package record

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// errContradiction marks a record that contradicts itself.
var errContradiction = errors.New("this record contradicts itself")

// contradiction returns an error for a record whose parts cannot all be true. A table that believed it
// could name it the fastest.
func contradiction(r *Record) error {
	w, c := r.Work, r.Cost
	switch {
	case min(w.Flops, w.Executed, w.Bytes, w.Memory) < 0 || min(w.Ops, w.Waits) < 0:
		return errors.New("its work is negative")
	case min(c.Setup, c.Verify, c.Warmup, c.Measure) < 0:
		return errors.New("its cost is negative")
	case r.Status == OK && r.Verify != nil && !r.Verify.OK:
		return errors.New("its status is ok, but its answer was wrong")
	}
	if t := r.Training; t != nil && (t.Iterations < 0 || t.Frames < 0 || t.Wall < 0) {
		return errors.New("it counts less than nothing of training")
	}
	if r.Samples == nil {
		return nil
	}
	for _, list := range [][]float64{r.Samples.Wall, r.Samples.Device} {
		if slices.ContainsFunc(list, func(v float64) bool { return v < 0 }) {
			return errors.New("a sample is negative")
		}
	}
	if slices.ContainsFunc(r.Samples.Iters, func(n int) bool { return n < 1 }) {
		return errors.New("a sample has no runs")
	}
	return r.Stats.contradiction(r.timed())
}

// timed is the samples that r's statistics are of.
func (r *Record) timed() []float64 {
	if r.Mode.Timer == "event" && len(r.Samples.Device) > 0 {
		return r.Samples.Device
	}
	return r.Samples.Wall
}

// contradiction returns an error if s cannot be the statistics of samples; none: nothing is known.
func (s *Stats) contradiction(samples []float64) error {
	if s == nil || len(samples) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(samples))
	for _, v := range []struct {
		name      string
		says, has float64
	}{{"smallest", s.Min, sorted[0]}, {"median", s.Median, quantile(sorted, 0.5)}, {"largest", s.Max, sorted[len(sorted)-1]}} {
		if math.Abs(v.says-v.has) > 0.01*v.has {
			return fmt.Errorf("its %s is %.3g s, but that of its samples is %.3g s", v.name, v.says, v.has)
		}
	}
	return nil
}
