package diamos

import (
	"slices"

	"rnnbench/experiments/study"
	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/tuner"
)

// predictedStep predicts the step that p measures, with its input product. The layer is divided as
// by the kernel of rec, if that is known, else into a band of rows for each worker.
func predictedStep(m *model.Machine, p record.Point, rec *record.Record) (model.Step, error) {
	problem, err := tuner.Problem(p)
	if err != nil {
		return model.Step{}, err
	}
	w, err := model.Recurrent(problem.Cell, p.Hidden, p.Batch, 4)
	if err != nil {
		return model.Step{}, err
	}
	s, err := dividedStep(m, w, rec)
	if err != nil {
		return s, err
	}
	problem.Layers, problem.Pass = 1, rnn.Forward
	s.Time += float64(problem.FLOPs()-problem.RecurrentFLOPs()) / float64(p.Steps) / m.FLOPS
	return s, nil
}

// dividedStep is the step of w alone.
func dividedStep(m *model.Machine, w model.Work, rec *record.Record) (model.Step, error) {
	if rec != nil && m.GPU != nil {
		for _, k := range rec.Kernels {
			if g, ok := tuner.GroupOf(k); ok {
				return m.InGroups(w, g)
			}
		}
	}
	return m.Bands(w)
}

// overestimated explains a step that took fewer seconds than predicted. If the longest part of s
// alone takes more seconds, the model overestimates that part.
func overestimated(s model.Step, seconds float64) string {
	exchange := s.Sync + s.Exchange
	longest := max(exchange, s.Weights, s.Compute)
	switch {
	case seconds >= longest:
		return study.UnknownCause
	case exchange == longest:
		return "the whole step took less time than the machine file predicts for the exchange alone"
	case s.Weights == longest:
		return "the whole step took less time than reading the weights from " + s.Home + " alone"
	}
	return "the whole step took less time than the products alone at the measured rate"
}

// deviationCause returns what the record shows of why a step is not as predicted.
func deviationCause(rec *record.Record, s model.Step, ratio float64) string {
	half, known := rec.Stats.HalfWidth()
	switch {
	case slices.Contains(rec.Warnings, record.WarnBimodal) || slices.Contains(rec.Warnings, record.WarnDrift):
		return "samples drift or are bimodal"
	case known && half > 0.1:
		return "the interval of the median is wider than ±10 %"
	case ratio < 1:
		return overestimated(s, ratio*s.Time)
	}
	return study.UnknownCause
}
