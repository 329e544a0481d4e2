// Package smoke holds every technique to learning as double precision does: the same small
// network learns the same task from the same first weights, and its loss stays within what
// rounding explains.
package smoke

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
	"rnnbench/train"
	"rnnbench/train/data"
)

// Iterations is how long networks are trained.
const Iterations = 50

// trainings in double precision, each with first weights that are off by one unit in the last
// place, give the spread of losses; allowed is how many times as far a curve may be off.
const (
	trainings = 8
	allowed   = 4
)

const (
	symbols = 3
	batch   = 8
	steps   = 7
	hidden  = 11
	seed    = 5
)

// Problem is the network of a cell.
func Problem(c *cell.Cell, precision rnn.Precision) rnn.Problem {
	return rnn.Problem{
		Cell: c, Pass: rnn.Train, Input: symbols, Hidden: hidden, Layers: 2, Batch: batch, Steps: steps, Output: symbols, Precision: precision,
	}
}

// Optimizer is by what they learn.
func Optimizer() train.Optimizer {
	return train.Optimizer{Optimizer: rnn.Optimizer{Rule: schedule.SGD, Beta1: 0.9, Norm: true}, Rate: 0.25, Clip: 0.5}
}

// A task asks for the symbol of the step before; its source is what a trainer reads.
type task struct{ at uint64 }

func (t *task) Shape() data.Shape { return data.Shape{Input: symbols, Output: symbols} }

func (t *task) Next(x, target []float32) {
	rng := rand.New(rand.NewPCG(seed, t.at))
	t.at++
	clear(x)
	var before [batch]int
	for i := range steps * batch {
		n := rng.IntN(symbols)
		x[i*symbols+n], target[i] = 1, float32(before[i%batch])
		before[i%batch] = n
	}
}

func (t *task) State() []byte        { return nil }
func (t *task) Restore([]byte) error { return errors.New("smoke: the task keeps no position") }

// A Curve is the mean loss of each iteration.
type Curve []float64

// A Band is where the losses of a cell in a precision may lie.
type Band struct {
	Middle Curve // in double precision
	Width  Curve // to either side
}

// ulp is a unit in the last place of a precision, relative.
var ulp = map[rnn.Precision]float64{rnn.FP32: 0x1p-23, rnn.TF32: 0x1p-10, rnn.BF16: 0x1p-7, rnn.FP16: 0x1p-10}

// NewBand trains in double precision, once as it is and eight times off.
func NewBand(c *cell.Cell, precision rnn.Precision) Band {
	b := Band{Middle: descend(c, 0, 0, nil), Width: make(Curve, Iterations)}
	for k := range uint64(trainings) {
		for i, loss := range descend(c, ulp[precision], k+1, nil) {
			b.Width[i] = max(b.Width[i], math.Abs(loss-b.Middle[i]))
		}
	}
	for i, w := range b.Width { // a loss is a difference of numbers in single precision
		b.Width[i] = allowed*w + 4*ulp[rnn.FP32]*b.Middle[0]
	}
	return b
}

// first are the weights that every training begins with.
func first(c *cell.Cell) *rnn.Data {
	d := rnn.NewData(Problem(c, rnn.FP32), seed, batch, "zeros")
	d.ClearStates()
	return d
}

// descend is a training in double precision, whose first weights are off by a part of
// themselves. fault, unless it is nil, changes gradients by their names.
func descend(c *cell.Cell, off float64, by uint64, fault func(name string, grad []float64)) Curve {
	d := first(c)
	if off > 0 {
		d = d.Off(float32(off), by)
	}
	o := Optimizer()
	run, source := rnn.NewDescent(d, o.Optimizer), &task{}
	run.Fault = fault
	x, target := run.Data.Get("x"), run.Data.Get("target")
	var out Curve
	for range Iterations {
		source.Next(x, target)
		out = append(out, run.Step(o.Rate, o.Clip))
	}
	return out
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
func Train(ctx context.Context, d device.Device, t rnn.Technique, c *cell.Cell, precision rnn.Precision) (Curve, error) {
	o := Optimizer()
	if precision == rnn.FP16 {
		o.LossScale = 1024
	}
	trainer, err := train.New(train.Setup{Device: d, Technique: t, Problem: Problem(c, precision), Optimizer: o, Seed: seed, Source: &task{}})
	if err != nil {
		return nil, err
	}
	defer trainer.Close()
	var out Curve
	for range Iterations {
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

// some iterations tell whether anything was learnt: the loss of one depends on its minibatch.
const some = 10

func meanOf(c Curve) float64 {
	sum := 0.0
	for _, loss := range c {
		sum += loss
	}
	return sum / float64(len(c))
}

// Check says what is wrong with the curve.
func (b Band) Check(c Curve) error {
	switch at := b.Outside(c); {
	case at > 0:
		return fmt.Errorf("at iteration %d the loss is %.7g, and %.7g ± %.2g in double precision", at, c[at-1], b.Middle[at-1], b.Width[at-1])
	case !(meanOf(c[Iterations-some:]) < meanOf(c[:some])):
		return fmt.Errorf("nothing was learnt: the mean loss of the first %d iterations is %.3g, that of the last %.3g", some, meanOf(c[:some]), meanOf(c[Iterations-some:]))
	}
	return nil
}

// Reference is the curve in double precision, where fault, unless it is nil, changes gradients
// by the names of their parameters.
func Reference(c *cell.Cell, fault func(name string, grad []float64)) Curve {
	return descend(c, 0, 0, fault)
}

// Parameters are the names of what a cell's network learns.
func Parameters(c *cell.Cell) []string {
	var names []string
	descend(c, 0, 0, func(name string, _ []float64) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	return names
}
