package tuner

import (
	"errors"
	"fmt"

	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner/grid"
)

// FloorOf is the floor of a record on m, as of a run that is measured now. It lays the point out as the record
// says, and takes the record's kernels. limit is how many bytes the schedule may take; 0: any. The floor is nil if m
// is nil, if another program ran, or if techniques have changed so much since that none lays out the record.
func FloorOf(m *model.Machine, techniques []rnn.Technique, r *record.Record, limit int64) (*record.Floor, error) {
	if m == nil || r.Stats == nil || r.Rival != nil || r.Equations != nil {
		return nil, nil
	}
	l, err := settle(techniques, r.Point, grid.Spec{Name: r.Impl.Name, Label: r.Impl.Label, Knobs: r.Impl.Knobs}, record.OnGPU(r.Device))
	if err != nil || l.Reason != "" {
		return nil, nil
	}
	l.DeviceKnobs = l.rest
	l.Plan, l.Schedule, err = rnn.LayoutWithin(l.Technique, l.Problem, l.Knobs, limit)
	if large := (*rnn.TooLarge)(nil); errors.As(err, &large) || errors.Is(err, schedule.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the floor of %v by %s: %w", r.Point, r.Impl.Label, err)
	}
	f, err := Floor(m, l, r.Kernels, 0, r.Mode.Cache == "cold")
	if err != nil {
		return nil, err
	}
	return floorOf(f, r.Stats.Median), nil
}
