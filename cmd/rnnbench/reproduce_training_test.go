package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"rnnbench/experiments/study"
	"rnnbench/internal/exit"
	"rnnbench/plots"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// toLearn returns an experiment that sweeps a point and trains two techniques at it.
func toLearn() study.Experiment {
	p := record.Point{Cell: "gru", Pass: "train", Hidden: 9, Input: 5, OneHot: true, Output: 4, Batch: 4, Steps: 8, Layers: 1, Precision: "fp32"}
	part := study.Part{Points: []record.Point{p}, Specs: []grid.Spec{{Name: "naive", Label: "naive"}, {Name: "persistent", Label: "persistent"}}}
	return study.Experiment{
		ID: "learn", Title: "Learning", Source: "none",
		Parts: func(study.Size, study.Target) []study.Part { return []study.Part{part} },
		Trainings: func(study.Size, study.Target) []study.Training {
			return []study.Training{{Part: part, Plan: record.TrainingPlan{
				Data: "copy:delay=2:length=2:symbols=3", Optimizer: "sgd:lr=0.5:momentum=0.9", Iterations: 40, Every: 10, Batches: 2,
			}}}
		},
		Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
			learning := slices.DeleteFunc(slices.Clone(recs), func(r record.Record) bool { return r.Training == nil })
			if len(learning) == 0 {
				return nil, errors.New("no training")
			}
			fig, err := plots.Lines(learning, plots.Spec{X: "frames", Y: "loss"})
			t := &table.Table{Columns: []table.Column{{Name: "records", Key: "records", Right: true}}, Rows: [][]table.Cell{{table.Int(len(recs))}}}
			return &study.Report{Tables: []*table.Table{t}, Figures: []study.Named{{Name: "learn", Figure: fig}}}, err
		},
	}
}

// reproduceLearning runs toLearn as the command reproduce would.
func reproduceLearning(ctx context.Context, t *testing.T, stderr io.Writer, args ...string) error {
	t.Helper()
	p := &program{in: strings.NewReader(""), out: &bytes.Buffer{}, err: stderr, log: slog.New(slog.DiscardHandler)}
	f, cmd := &sweepFlags{}, &cobra.Command{Use: "reproduce"}
	var quick bool
	var from recorded
	f.reproduceFlags(cmd, &quick, &from)
	if err := cmd.ParseFlags(append(args, strings.Fields("--threads 1 --no-hostname"+quickly)...)); err != nil {
		t.Fatal(err)
	}
	if err := f.resolve(p); err != nil {
		t.Fatal(err)
	}
	before, err := f.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	return reproduce(ctx, p, cmd, f, toLearn(), study.Quick, before, nil)
}

// TestReproduceTrains: an experiment that trains continues after an interruption, or after its
// budget is spent, with the same results as without.
func TestReproduceTrains(t *testing.T) {
	t.Chdir(t.TempDir())
	var quiet bytes.Buffer
	if err := reproduceLearning(t.Context(), t, &quiet, "--out", "whole"); err != nil {
		t.Fatal(err)
	}
	end := func(dir string) (losses []float64) {
		m, recs, _, err := record.Read(dir)
		if err != nil || len(recs) != 10 || m.Scope.Records != 4 {
			t.Fatalf("%s has %d records of a plan of %d: %v", dir, len(recs), m.Scope.Records, err)
		}
		for _, r := range recs {
			if x := r.Training; x != nil {
				losses = append(losses, float64(x.Iterations), x.Loss, x.HeldOut.Loss)
			}
		}
		return losses
	}
	whole := end("whole")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &trigger{word: "naive: iteration 20, loss", f: cancel}
	err := reproduceLearning(ctx, t, stderr, "--out", "parts")
	var bad *exit.Failure
	if !errors.As(err, &bad) || bad.Code != exit.Interrupted || !strings.Contains(bad.Hint, "--resume parts") {
		t.Fatalf("interrupted: %v", err)
	}
	var text bytes.Buffer
	if err := reproduceLearning(t.Context(), t, &text, "--out", "parts", "--resume", "parts"); err != nil {
		t.Fatal(err)
	}
	if parts := end("parts"); !slices.Equal(parts, whole) {
		t.Errorf("in one run %v, in two %v", whole, parts)
	}
	if figures, _ := filepath.Glob("parts/*/learn.svg"); len(figures) != 1 || strings.Contains(text.String(), "iteration 10, loss") && !strings.Contains(text.String(), "persistent: iteration 10") {
		t.Errorf("figures %v: %s", figures, &text)
	}

	text.Reset()
	if err := reproduceLearning(t.Context(), t, &text, "--out", "budget", "--budget", "1ns"); err != nil || !strings.Contains(text.String(), "2 of 4 records missing or not trained to the end") {
		t.Fatalf("%v: %s", err, &text)
	}
	if err := reproduceLearning(t.Context(), t, &text, "--out", "budget", "--resume", "budget", "--budget", "0s"); err != nil {
		t.Fatal(err)
	}
	if parts := end("budget"); !slices.Equal(parts, whole) {
		t.Errorf("in one run %v, within budgets %v", whole, parts)
	}
	text.Reset()
	if err := reproduceLearning(t.Context(), t, &text, "--out", "budget", "--resume", "budget"); err != nil || strings.Contains(text.String(), "iteration") {
		t.Errorf("again: %v: %s", err, &text)
	}
	if err := reproduceLearning(t.Context(), t, &text, "--out", "shards", "--shard", "1/2"); err != nil || !exists("shards") {
		t.Errorf("a shard: %v", err)
	}
	if err := reproduceLearning(t.Context(), t, &text, "--out", "dry", "--dry-run"); err != nil || exists("dry") {
		t.Errorf("a dry run: %v", err)
	}
}

// TestUnreadableData: unreadable data is reported once, before anything is measured.
func TestUnreadableData(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOROOT", t.TempDir())
	o := rnnbench(t, "reproduce hwang-train --quick --out none")
	o.want(t, exit.Error, nil, []string{"hwang-train: words: ", "set GOROOT to a Go distribution"})
	if strings.Count(o.errors, "GOROOT") != 1 || exists("none") {
		t.Errorf("it is told more than once, or a run was begun: %s", o.errors)
	}
}
