package turns

import (
	"context"
	"time"

	"rnnbench/record"
)

// A Budget limits how long two programs run in turns.
type Budget struct {
	Time time.Duration
	Most int // runs of each program
}

// Within runs both programs in turns until another pair of runs would probably exceed the budget. One pair
// always runs. Runs that finished before count, with the time that they took. Within returns the time of all.
func (t *Turns) Within(ctx context.Context, b Budget, tell func(Turn)) (spent time.Duration, err error) {
	var longest [2]time.Duration
	for side, runs := range t.Done {
		for _, run := range runs {
			m, err := record.ReadManifest(run)
			if err != nil {
				return spent, err
			}
			took := m.Finished.Sub(m.Started)
			longest[side], spent = max(longest[side], took), spent+took
		}
	}
	note := func(x Turn) {
		for side, p := range t.Programs {
			if p.Label == x.Label {
				longest[side] = max(longest[side], x.Took)
			}
		}
		tell(x)
	}
	start := time.Now()
	for side := range t.Done { // an interruption divided a pair
		for len(t.Done[side]) < len(t.Done[1-side]) {
			x, err := t.take(ctx, side)
			if err != nil {
				return spent, err
			}
			note(x)
		}
	}
	for {
		t.Runs = b.pairs(len(t.Done[0]), spent+time.Since(start), longest[0]+longest[1])
		if t.Runs == 0 {
			return spent + time.Since(start), nil
		}
		if err := t.Run(ctx, note); err != nil {
			return spent, err
		}
		t.Seed++
	}
}

// pairs is how many pairs of runs to make next: two in mirrored order, if both fit. longest is the time of
// the longest pair so far.
func (b Budget) pairs(done int, spent, longest time.Duration) int {
	switch left := b.Time - spent; {
	case done == 0:
		return min(1, b.Most)
	case done >= b.Most || left < longest:
		return 0
	case done+1 == b.Most || left < 2*longest:
		return 1
	}
	return 2
}
