package danieli

import (
	"slices"

	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// Train is the experiment newton-train.
var Train = study.Experiment{
	ID: "newton-train", Title: "Training by Newton's method for all steps, by a serial kernel and by scans: loss over time",
	Source: "Danieli et al. 2025 (ParaRNN); Lim et al. 2024 (DEER)", Apart: true,
	Unlike: "one small layer that learns to add, in minutes; the papers train language models and time series",
	Trainings: func(s study.Size, on study.Target) []study.Training {
		plan := adding(s, on)
		var all []study.Training
		for _, x := range trained(on) {
			all = append(all, study.Training{Part: study.Part{Points: []record.Point{memory(x.cell, s)}, Specs: x.specs}, Plan: plan})
		}
		return all
	},
	Report: reportTrain,
}

// scanned labels linear recurrences, which one scan computes.
const scanned = "scan"

// A learner is a cell with the ways to train it.
type learner struct {
	cell  string
	specs []grid.Spec
}

// trained lists the cell of the experiment, and two linear recurrences with gates.
func trained(on study.Target) []learner {
	way := func(label, technique string) grid.Spec {
		x := study.Spec(label, technique, nil)
		if on.GPU {
			x = study.Graphed(label, x)
		}
		return x
	}
	scan := []grid.Spec{way(scanned, "scan")}
	return []learner{{diagonal(), []grid.Spec{way(newton, "newton"), way(serial, "persistent")}}, {"gilr", scan}, {"ls-lstm", scan}}
}

// memory is a layer with 256 channels that adds two values of a sequence, with a class for each of
// 20 intervals of the sum and one for the other steps.
func memory(cell string, s study.Size) record.Point {
	steps := 4096
	if s == study.Quick {
		steps = 512
	}
	return record.Point{Cell: cell, Pass: "train", Input: 2, Hidden: 32, Layers: 1, Output: 21, Steps: steps, Batch: 8, Precision: "fp32"}
}

// checked is how many minibatches a GPU trains between two checks of Newton's method. Each record has a
// check of its own, so a multiple of them are between records.
const checked = 16

// adding is how all networks are trained: on as many minibatches, so that records of both ways to train
// a cell are of the same ones.
func adding(s study.Size, on study.Target) record.TrainingPlan {
	minibatches := 512
	if on.GPU || s == study.Quick {
		minibatches = 2048
	}
	return record.TrainingPlan{Data: "adding:classes=20", Optimizer: "adam:lr=0.01:clip=1", Iterations: minibatches, Every: 2 * checked}
}

// A course is what a network has learnt by one technique.
type course struct {
	cell, label string
	records     []*record.Record // in the order of learning
	ended       *record.Record   // of Newton's method, if it could not go on
}

// courses sorts what was trained by cell and technique, in the order of recs. Those without a minibatch
// are left out, unless Newton's method did not converge.
func courses(recs []record.Record) (all []course) {
	for _, r := range quantity.Latest(recs) {
		if r.Training == nil || r.Status != record.OK && r.Status != record.NotConverged {
			continue
		}
		i := slices.IndexFunc(all, func(c course) bool { return c.cell == r.Point.Cell && c.label == r.Impl.Label })
		if i < 0 {
			i = len(all)
			all = append(all, course{cell: r.Point.Cell, label: r.Impl.Label})
		}
		if c := &all[i]; r.Status == record.OK {
			c.records = append(c.records, r)
		} else {
			c.ended = r
		}
	}
	for _, c := range all {
		slices.SortStableFunc(c.records, func(a, b *record.Record) int { return a.Training.Iterations - b.Training.Iterations })
	}
	return all
}

// last is the newest record; nil: there is none.
func (c course) last() *record.Training {
	if len(c.records) == 0 {
		return nil
	}
	return c.records[len(c.records)-1].Training
}

// convergence is how many iterations of Newton's method the minibatches took; nil: unknown.
func (c course) convergence() *record.Convergence {
	switch {
	case c.ended != nil && c.ended.Training.Convergence != nil:
		return c.ended.Training.Convergence
	case c.last() != nil:
		return c.last().Convergence
	}
	return nil
}

// each is the median time of a minibatch over the records; 0: unknown.
func (c course) each() float64 {
	var list []float64
	for _, r := range c.records {
		if s := r.Seconds(); s > 0 {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// least is the lowest mean loss between two records. c has some.
func (c course) least() float64 {
	best := c.records[0].Training.MeanLoss
	for _, r := range c.records {
		best = min(best, r.Training.MeanLoss)
	}
	return best
}

// reaches is the first record with a loss of at most level; nil: there is none.
func (c course) reaches(level float64) *record.Training {
	for _, r := range c.records {
		if r.Training.MeanLoss <= level {
			return r.Training
		}
	}
	return nil
}

// find returns the course of a technique; nil: there is none.
func find(all []course, label string) *course {
	if i := slices.IndexFunc(all, func(c course) bool { return c.label == label }); i >= 0 {
		return &all[i]
	}
	return nil
}
