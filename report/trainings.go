package report

import (
	"slices"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// apart splits records into those of passes and those of training, which do not compete: an iteration
// of training also feeds, updates and reads the loss.
func apart(recs []*record.Record) (passes, trainings []*record.Record) {
	for _, r := range recs {
		if r.Training == nil {
			passes = append(passes, r)
		} else {
			trainings = append(trainings, r)
		}
	}
	return passes, trainings
}

// whole returns one record for each network among records of training, with the samples of all its
// iterations. Each record alone has only those since the record before it, so the fastest of them says
// little of a technique.
func whole(recs []*record.Record) (list []*record.Record) {
	all := values(recs)
	for _, last := range record.Trainings(all) {
		r := record.WholeTraining(last, all)
		list = append(list, &r)
	}
	return list
}

// timed returns the records that compete: passes, and whole trainings.
func (b *builder) timed() (passes, trainings []*record.Record) {
	passes, trainings = apart(b.recs)
	return passes, whole(trainings)
}

// drawLoss adds the loss of trainings over time.
func (b *builder) drawLoss(s *section, recs []*record.Record) error {
	names := []string{"loss"}
	if slices.ContainsFunc(recs, func(r *record.Record) bool { return r.Training.HeldOut != nil }) {
		names = append(names, "held-out")
	}
	if slices.ContainsFunc(recs, func(r *record.Record) bool {
		return r.Training.HeldOut != nil && r.Training.HeldOut.LabelErrors != nil
	}) {
		names = append(names, "label-errors")
	}
	var axes []string
	for _, a := range quantity.Varying(recs) {
		if a.Numeric {
			axes = append(axes, a.Name)
		}
	}
	for _, y := range names {
		if err := b.split(s, recs, plots.Spec{Kind: "lines", X: "wall", Y: y}, axes); err != nil {
			return err
		}
	}
	return nil
}
