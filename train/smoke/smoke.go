// Package smoke checks that every technique learns as double precision does. The same small network
// learns the same task from the same first weights, and its loss must stay within what rounding
// explains.
package smoke

import (
	"context"
	"fmt"
	"math"
	"slices"

	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/oracle"
	"rnnbench/train"
	"rnnbench/train/data"
)

// Iterations is the length of a training.
const Iterations = 50

// So many trainings in double precision give the spread of losses. Each has first weights that are
// off by one unit in the last place. A curve may be off by allowed times the spread.
const (
	trainings = 8
	allowed   = 4
)

// Data is the task, as train spells it.
const Data = "echo:symbols=3"

// OptimizerOf returns the optimiser that trains a cell, as train spells it. Nothing bounds the
// states of rnn-relu: at the rate of the others its losses jump, and rounding would explain any loss.
func OptimizerOf(c *cell.Cell) string {
	if c == cell.RNNReLU {
		return "sgd:lr=0.05:momentum=0.9:clip=0.5"
	}
	return "sgd:lr=0.25:momentum=0.9:clip=0.5"
}

// A Case is a training.
type Case struct {
	Problem    rnn.Problem
	Optimizer  train.Optimizer
	Data       string // see data.Open
	Iterations int
	Seed       uint64 // of first weights and minibatches
	Glorot     bool   // first weights are those of Glorot and Bengio (2010)
}

// Of is the training of a small network of the cell.
func Of(c *cell.Cell, precision rnn.Precision, seed uint64) (Case, error) {
	const symbols = 3
	o, err := train.ParseOptimizer(OptimizerOf(c), precision)
	return Case{
		Problem: rnn.Problem{
			Cell: c, Pass: rnn.Train, Input: symbols, Hidden: 11, Layers: 2, Batch: 8, Steps: 7, Output: symbols, Precision: precision,
		},
		Optimizer: o, Data: Data, Iterations: Iterations, Seed: seed,
	}, err
}

func (k Case) source() (data.Source, error) {
	return data.Open(k.Data, data.Options{Batch: k.Problem.Batch, Steps: k.Problem.Steps, Seed: k.Seed})
}

// A Curve is the mean loss of each iteration.
type Curve []float64

// A Band is where the losses of a cell in a precision may lie.
type Band struct {
	Middle Curve // in double precision
	Width  Curve // to either side
}

// ulp is the unit in the last place of a precision, relative to the number.
var ulp = map[rnn.Precision]float64{rnn.FP32: 0x1p-23, rnn.TF32: 0x1p-10, rnn.BF16: 0x1p-7, rnn.FP16: 0x1p-10}

// Band trains in double precision, once with the first weights as they are and then with weights that are off.
func (k Case) Band() (Band, error) {
	middle, err := k.descend(0, 0, nil)
	if err != nil {
		return Band{}, err
	}
	b := Band{Middle: middle, Width: make(Curve, k.Iterations)}
	for i := range uint64(trainings) {
		curve, err := k.descend(ulp[k.Problem.Precision], i+1, nil)
		if err != nil {
			return Band{}, err
		}
		for i, loss := range curve {
			b.Width[i] = max(b.Width[i], math.Abs(loss-b.Middle[i]))
		}
	}
	for i, w := range b.Width { // a loss is a difference of numbers in single precision
		b.Width[i] = allowed*w + 4*ulp[rnn.FP32]*b.Middle[0]
	}
	return b, nil
}

// descend trains in double precision, with first weights that are off by a part of themselves.
// fault, unless nil, changes gradients by their names.
func (k Case) descend(off float64, by uint64, fault func(name string, grad []float64)) (Curve, error) {
	source, err := k.source()
	if err != nil {
		return nil, err
	}
	if source.Shape().Continues {
		return nil, fmt.Errorf("smoke: task %s goes on from minibatch to minibatch: the reference carries no states", k.Data)
	}
	d := rnn.NewData(k.Problem, k.Seed, k.Problem.Batch, "zeros")
	d.ClearStates()
	if k.Glorot {
		d.Glorot()
	}
	if off > 0 {
		d = d.Off(float32(off), by)
	}
	run := oracle.NewDescent(d, k.Optimizer.Optimizer)
	run.Fault = fault
	x, target := run.Data.Get("x"), run.Data.Get("target")
	var out Curve
	for i := range k.Iterations {
		source.Next(x, target)
		out = append(out, run.Step(k.Optimizer.RateAt(i+1), k.Optimizer.Clip))
	}
	return out, nil
}

// Outside is the first iteration whose loss lies outside the band, counted from 1; 0: none.
func (b Band) Outside(c Curve) int {
	for i, loss := range c {
		if !(math.Abs(loss-b.Middle[i]) <= b.Width[i]) {
			return i + 1
		}
	}
	return 0
}

// Train trains by a technique on a device. The error wraps schedule.ErrUnsupported where
// either declines.
func (k Case) Train(ctx context.Context, d device.Device, t rnn.Technique) (Curve, error) {
	source, err := k.source()
	if err != nil {
		return nil, err
	}
	trainer, err := train.New(train.Setup{Device: d, Technique: t, Problem: k.Problem, Optimizer: k.Optimizer, Seed: k.Seed, Glorot: k.Glorot, Source: source})
	if err != nil {
		return nil, err
	}
	defer trainer.Close()
	var out Curve
	for range k.Iterations {
		if err := trainer.Step(ctx, 1); err != nil {
			return nil, err
		}
		loss, err := trainer.Loss()
		if err != nil {
			return nil, err
		}
		out = append(out, loss)
	}
	return out, nil
}

// averaged is the number of iterations over which losses are averaged: a single loss depends on its minibatch.
const averaged = 10

func meanOf(c Curve) float64 {
	sum := 0.0
	for _, loss := range c {
		sum += loss
	}
	return sum / float64(len(c))
}

// Check reports what is wrong with the curve.
func (b Band) Check(c Curve) error {
	switch at := b.Outside(c); {
	case at > 0:
		return fmt.Errorf("at iteration %d the loss is %.7g, but %.7g ± %.2g in double precision", at, c[at-1], b.Middle[at-1], b.Width[at-1])
	case !(meanOf(c[len(c)-averaged:]) < meanOf(c[:averaged])):
		return fmt.Errorf("nothing was learnt: the mean loss of the first %d iterations is %.3g, that of the last %.3g", averaged, meanOf(c[:averaged]), meanOf(c[len(c)-averaged:]))
	}
	return nil
}

// Reference is the curve in double precision. fault, unless nil, changes gradients by the names of
// their parameters.
func (k Case) Reference(fault func(name string, grad []float64)) (Curve, error) {
	return k.descend(0, 0, fault)
}

// Parameters returns the names of the parameters that the network learns.
func (k Case) Parameters() ([]string, error) {
	var names []string
	_, err := k.descend(0, 0, func(name string, _ []float64) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	return names, err
}
