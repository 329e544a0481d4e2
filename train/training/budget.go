package training

import (
	"errors"
	"time"

	"rnnbench/tuner"
)

// sweepShare is the part of a budget, one in so many, that a sweep may take before the training beside it.
const sweepShare = 10

// Divide runs a sweep and a training within a budget that begins now; 0: no limit. The sweep first
// gets a tenth of it. So the training has the rest even where the sweep alone would take it all.
// Time that the training leaves over goes to the sweep again. Each is told how long it may take,
// and returns tuner.ErrBudget if that was too short.
func Divide(budget time.Duration, now func() time.Time, sweep, train func(time.Duration) error) error {
	end := now().Add(budget)
	rest := func(f func(time.Duration) error) error {
		if budget == 0 {
			return f(0)
		}
		if left := end.Sub(now()); left > 0 {
			return f(left)
		}
		return tuner.ErrBudget
	}
	swept := sweep(budget / sweepShare)
	if swept != nil && !errors.Is(swept, tuner.ErrBudget) {
		return swept
	}
	if err := rest(train); err != nil || swept == nil {
		return err
	}
	return rest(sweep)
}
