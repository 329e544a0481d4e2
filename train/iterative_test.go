package train_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/cells"
	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/train"
	"rnnbench/train/data"
)

// adding is a network with a diagonal recurrence that learns to add.
func adding(t *testing.T, d device.Device, tech, optimizer string) train.Setup {
	return addingBy(t, d, "gru-diag", tech, optimizer)
}

// addingBy is adding with a cell of that name.
func addingBy(t *testing.T, d device.Device, name, tech, optimizer string) train.Setup {
	c, err := cells.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	s := setup(t, d, tech, optimizer, rnn.FP32)
	s.Problem.Cell, s.Problem.Steps = c, 300
	if s.Source, err = data.Open("adding", data.Options{Batch: 4, Steps: 300, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	return s
}

// heldOut evaluates tr, which learns to add.
func heldOut(t *testing.T, tr *train.Trainer) *train.Evaluator {
	held, err := data.Open("adding", data.Options{Batch: 4, Steps: 300, Seed: 3, Held: true})
	if err != nil {
		t.Fatal(err)
	}
	e, err := tr.NewEvaluator(held, 4, 300, 2)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestNewtonTakesItsMost: held-out data take no more iterations than the knob allows.
func TestNewtonTakesItsMost(t *testing.T) {
	s := adding(t, open(t), "newton", "sgd")
	s.Knobs = knob.Params{"iterations": 1024}
	if err := heldOut(t, newTrainer(t, s)).Close(); err != nil {
		t.Error(err)
	}
}

// TestNewton: Newton's method learns as a serial kernel does, with the fewest iterations that converge.
func TestNewton(t *testing.T) {
	d := open(t)
	a, b := newTrainer(t, adding(t, d, "newton", "adam:lr=0.01")), newTrainer(t, adding(t, d, "persistent", "adam:lr=0.01"))
	for i := range 30 {
		if x, y := step(t, a, 1), step(t, b, 1); math.Abs(x-y) > 1e-5*y {
			t.Errorf("iteration %d: the loss is %v, and %v by the serial kernel", i+1, x, y)
		}
	}
	c := train.Convergence(a)
	if first := c.Taken[0]; first.After != 0 || first.Iterations < 2 || first.Iterations > 3 || c.Residual > 1e-4 {
		t.Errorf("%+v", c)
	}
	if train.Convergence(b) != nil {
		t.Error("a serial kernel has no iterations")
	}
	score := func(tr *train.Trainer) train.Score {
		e := heldOut(t, tr)
		defer e.Close()
		s, err := e.Evaluate(tr)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if x, y := score(a), score(b); math.Abs(x.Loss-y.Loss) > 1e-5*y.Loss || x.Top1 != y.Top1 {
		t.Errorf("held-out data: %+v, and %+v by the serial kernel", x, y)
	}
}

// TestNewtonOfTwoStates: where the gradient takes iterations as well, losses are those of a serial kernel, in
// several layers and in both precisions.
func TestNewtonOfTwoStates(t *testing.T) {
	d := open(t)
	for precision, near := range map[rnn.Precision]float64{rnn.FP32: 1e-5, rnn.BF16: 2e-3} {
		var tr [2]*train.Trainer
		for i, tech := range []string{"newton", "persistent"} {
			s := addingBy(t, d, "lstm-diag", tech, "adam:lr=0.01")
			s.Problem.Layers, s.Problem.Precision = 2, precision
			tr[i] = newTrainer(t, s)
		}
		for i := range 20 {
			if x, y := step(t, tr[0], 1), step(t, tr[1], 1); math.Abs(x-y) > near*y {
				t.Errorf("%v, iteration %d: the loss is %v, and %v by the serial kernel", precision, i+1, x, y)
			}
		}
		if taken := train.Convergence(tr[0]).Taken; taken[0].Iterations < 3 {
			t.Errorf("%v: %+v", precision, taken)
		}
	}
}

// TestNewtonGrows: as recurrent weights grow, Newton's method takes more iterations. Minibatches that it did not
// solve are trained again, so losses stay those of a serial kernel. From a checkpoint it goes on bit for bit,
// whether its iterations grow before or after.
func TestNewtonGrows(t *testing.T) {
	const rule, n = "adam:lr=0.3", 40
	d := open(t)
	whole, serial := newTrainer(t, adding(t, d, "newton", rule)), newTrainer(t, adding(t, d, "persistent", rule))
	var losses []float64
	for i := range n {
		losses = append(losses, step(t, whole, 1))
		if y := step(t, serial, 1); i < 5 && math.Abs(losses[i]-y) > 1e-3*y {
			t.Errorf("iteration %d: the loss is %v, and %v by the serial kernel", i+1, losses[i], y)
		}
	}
	taken := train.Convergence(whole).Taken
	if len(taken) < 2 {
		t.Fatalf("the iterations do not grow: %+v", taken)
	}
	for _, at := range []int{taken[1].After, taken[1].After + 2} {
		path := filepath.Join(t.TempDir(), "c.npz")
		part := newTrainer(t, adding(t, d, "newton", rule))
		for range at {
			step(t, part, 1)
		}
		again := newTrainer(t, adding(t, d, "newton", rule))
		if err := errors.Join(part.Save(path), again.Load(path)); err != nil {
			t.Fatal(err)
		}
		for i := at; i < n; i++ {
			if got := step(t, again, 1); got != losses[i] {
				t.Fatalf("from a checkpoint after %d iterations, the loss of iteration %d is %v, not %v", at, i+1, got, losses[i])
			}
		}
		if got := train.Convergence(again).Taken; len(got) != len(taken) || got[1] != taken[1] {
			t.Errorf("%+v, not %+v", got, taken)
		}
	}
}

// TestNewtonDoesNotConverge: where no number of iterations, or not the number given, leads to the answer,
// nothing is learnt from it.
func TestNewtonDoesNotConverge(t *testing.T) {
	d := open(t)
	for want, change := range map[string]func(*train.Setup){
		"after 32 iterations on a minibatch the states still change by ": func(s *train.Setup) { s.Problem.Gain = 6400 },
		"after 1 iteration on a minibatch the states still change by ":   func(s *train.Setup) { s.Knobs = knob.Params{"iterations": 1} },
	} {
		s := adding(t, d, "newton", "adam:lr=0.01")
		change(&s)
		tr := newTrainer(t, s)
		err := tr.Step(context.Background(), 1)
		if !errors.Is(err, train.ErrNotConverged) || !strings.Contains(err.Error(), want) || tr.Iterations() != 0 {
			t.Errorf("%v after %d iterations", err, tr.Iterations())
		}
	}
}
