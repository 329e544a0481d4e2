package agenda

import (
	"cmp"
	"slices"

	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// A Network is a network that an agenda trains: a technique at a point.
type Network struct {
	Point    record.Point
	Spec     grid.Spec
	Training record.TrainingPlan
	Number   int // in the whole agenda, from 1; it names the checkpoint
}

// Trained is the agenda with every part trained until t.
func (a Agenda) Trained(t record.TrainingPlan) Agenda {
	return a.train(t, func(Part) bool { return true })
}

// Until is the agenda with limits t for the parts that it trains.
func (a Agenda) Until(t record.TrainingPlan) Agenda {
	return a.train(t, func(q Part) bool { return q.Training != nil })
}

func (a Agenda) train(t record.TrainingPlan, want func(Part) bool) Agenda {
	a.Parts = slices.Clone(a.Parts)
	for i := range a.Parts {
		if want(a.Parts[i]) {
			a.Parts[i].Training = &t
		}
	}
	return a
}

// Sweeps is the agenda without the parts that are trained.
func (a Agenda) Sweeps() Agenda {
	a.Parts = slices.DeleteFunc(slices.Clone(a.Parts), func(q Part) bool { return q.Training != nil })
	return a
}

// Networks lists the networks that the agenda trains.
func (a Agenda) Networks() []Network {
	var list []Network
	for _, q := range a.Parts {
		if q.Training == nil {
			continue
		}
		for i, at := range q.Points {
			before := len(list)
			if q.before != nil {
				before = q.before[i]
			}
			for k, s := range q.Specs {
				list = append(list, Network{at, s, *q.Training, before + k + 1})
			}
		}
	}
	return list
}

// Latest is the newest record of n among recs; nil: there is none.
func (n Network) Latest(recs []record.Record) *record.Record {
	var last *record.Record
	for i := range recs {
		r := &recs[i]
		t := r.Training
		if t == nil || r.Point != n.Point || r.Impl.Label != n.Spec.Label || t.Data != n.Training.Data || t.Optimizer != n.Training.Optimizer || t.Glorot != n.Training.Glorot || t.Repeat != n.Training.Repeat {
			continue
		}
		if last == nil || cmp.Or(r.Time.Compare(last.Time), cmp.Compare(r.Seq, last.Seq)) >= 0 {
			last = r
		}
	}
	return last
}

// Finished reports whether n's newest record, last, says that training need not continue. Failed
// training may be tried again.
func (n Network) Finished(last *record.Record) bool {
	if last == nil || last.Training == nil {
		return false
	}
	return last.Status == record.Skipped || last.Status == record.NotConverged || last.Status == record.OK && n.Training.Reached(last.Training) != ""
}
