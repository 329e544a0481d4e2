package training

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"rnnbench/device/allreduce"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/train"
	"rnnbench/train/data"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/grid"
)

// Limits returns how to train: want, or the plan of the run to resume with what the user has given by name. It
// returns an error for limits that are impossible. A training without a limit is one.
func Limits(want record.TrainingPlan, given func(flag string) bool, was *record.TrainingPlan) (record.TrainingPlan, error) {
	switch {
	case was == nil && !given("iterations") && (given("time") || given("loss")):
		want.Iterations = 0
	case was == nil:
	case given("data") && want.Data != was.Data || given("optimizer") && want.Optimizer != was.Optimizer || given("glorot") && want.Glorot != was.Glorot:
		return want, errors.New("--resume goes on with the task, the optimiser and the weights of the run: omit --data, --optimizer and --glorot")
	default:
		w := *was
		for name, set := range map[string]func(){
			"iterations": func() { w.Iterations = want.Iterations }, "time": func() { w.Time = want.Time },
			"loss": func() { w.Loss = want.Loss }, "every": func() { w.Every = want.Every }, "held-out": func() { w.Batches = want.Batches },
			"replicas": func() { w.Replicas = want.Replicas }, "beside": func() { w.Beside = want.Beside },
		} {
			if given(name) {
				set()
			}
		}
		want = w
	}
	switch w := want; {
	case w.Replicas < 0 || w.Replicas > allreduce.MostReplicas:
		return want, fmt.Errorf("--replicas: %d: choose 1 to %d, or 0 for one device alone", w.Replicas, allreduce.MostReplicas)
	case w.Beside && w.Replicas > 0:
		return want, errors.New("--beside times the pass of one device, not of several replicas: omit one of --beside and --replicas")
	case w.Iterations < 0 || w.Time < 0 || w.Every < 0 || w.Batches < 0:
		return want, errors.New("--iterations, --time, --every and --held-out cannot be negative")
	case w.Iterations == 0 && w.Time == 0 && w.Loss <= 0:
		return want, errors.New("training would never stop: set --iterations, --time or --loss")
	case w.Every == 0 && w.Iterations > 0:
		want.Every = max(1, w.Iterations/20)
	case w.Every == 0:
		want.Every = 100
	}
	return want, nil
}

// SetAxes sets the axes of a grid that a task determines, such as input and output.
func SetAxes(task string, r grid.Request, v grid.Vocabulary) error {
	g, err := grid.New(r, v)
	if err != nil {
		return err
	}
	points, err := g.Points()
	if err != nil || len(points) == 0 {
		return err
	}
	source, err := data.Open(task, data.Options{Batch: points[0].Batch, Steps: points[0].Steps})
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	s, axes := source.Shape(), r.Axes
	axes["input"], axes["output"], axes["onehot"], axes["weighted"] = strconv.Itoa(s.Input), strconv.Itoa(s.Output), strconv.FormatBool(s.OneHot), strconv.FormatBool(s.Weighted)
	for name, n := range map[string]int{"symbols": s.Symbols, "embedding": s.Embedding, "groups": s.Groups, "transcript": s.Transcript} {
		if axes[name] = strconv.Itoa(n); n == 0 {
			axes[name] = "none"
		}
	}
	return nil
}

// CheckWords checks the optimiser and the task without a device and without files.
func CheckWords(want record.TrainingPlan) error {
	if _, err := train.ParseOptimizer(want.Optimizer, rnn.FP32); err != nil {
		return fmt.Errorf("--optimizer: %w", err)
	}
	if err := data.Check(want.Data); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	return nil
}

// CheckPoints checks the optimiser, the task and the replicas at each point, before anything is trained.
func CheckPoints(want record.TrainingPlan, q agenda.Agenda) error {
	return q.Each(func(at record.Point, _ []grid.Spec) error {
		_, err := train.ParseOptimizer(want.Optimizer, rnn.Precision(slices.Index(rnn.Precisions(), at.Precision)))
		if err != nil {
			return fmt.Errorf("--optimizer: %w", err)
		}
		source, err := data.Open(want.Data, data.Options{Batch: at.Batch, Steps: at.Steps})
		switch {
		case err != nil:
			return fmt.Errorf("--data: %w", err)
		case at.History > 0 && !source.Shape().Continues:
			return fmt.Errorf("--history %d: minibatches of %s do not continue the ones before: use --data text or words, or omit --history", at.History, want.Data)
		case want.Replicas > at.Batch:
			return fmt.Errorf("--replicas: %d replicas cannot share a minibatch of %d: each needs at least one sequence", want.Replicas, at.Batch)
		case want.Replicas > 0 && at.History > 0:
			return errors.New("--replicas: replicas keep no steps of earlier minibatches: omit --history")
		}
		return nil
	})
}
