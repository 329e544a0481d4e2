package impltest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"rnnbench/cells"
	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// optimizers returns the suite's optimisers. Adam's ε is large: with a small one, the mere sign of a
// tiny gradient would decide how much a parameter changes.
func optimizers() []rnn.Optimizer {
	return []rnn.Optimizer{
		{Rule: schedule.SGD},
		{Rule: schedule.SGD, Beta1: 0.9, Norm: true, LossScale: 1024},
		{Rule: schedule.Adam, Beta1: 0.9, Beta2: 0.99, Epsilon: 0.25, Norm: true},
	}
}

// Every training of the suite takes these iterations at this learning rate. The limit to the norm of
// gradients is low enough to clip some.
const (
	iterations   = 3
	learningRate = 4
	normLimit    = 0.2
)

// RunTraining compares training by technique tech on device d with the reference's in double
// precision: each cell, each precision of the device, each optimiser.
func RunTraining(t *testing.T, d device.Device, tech rnn.Technique) {
	all := optimizers()
	published := cells.Inners()[:2] // R of the others changes by little more than its own rounding
	for i, c := range slices.Concat(cell.All(), published) {
		for j, name := range rnn.Precisions() {
			precision := rnn.Precision(j)
			if !slices.Contains(d.Info().Precision, name) || precision == rnn.INT8 {
				continue
			}
			if c.Kinked() && precision != rnn.FP32 {
				continue // at a kink either gradient is right, so trainings diverge
			}
			p := rnn.Problem{Cell: c, Pass: rnn.Train, Input: 5, Hidden: 17, Layers: 2, Batch: 3, Steps: 6, Output: 7, Precision: precision}
			switch i % 3 {
			case 1:
				p.OneHot, p.Input = c.Window == 1, 9+20*(i/3%2) // more symbols than there are steps, or fewer
			case 2:
				p.Symbols, p.Embedding = 4, 3
				p.Output, p.Groups, p.Weighted = 8, 2, true
			}
			o := all[(i+j)%len(all)]
			o.Nesterov = o.Rule == schedule.SGD && o.Beta1 > 0 && i%2 == 1
			p.Direction = rnn.Direction((i + j) % len(rnn.Directions()))
			t.Run(p.String(), func(t *testing.T) { trainOnce(t, d, tech, p, o) })
			if c.Recurrent > 0 && precision == rnn.FP32 {
				q, once := p, o
				q.Hidden, q.Heads = 15, 3
				t.Run(q.String(), func(t *testing.T) { trainOnce(t, d, tech, q, once) })
				// Through a projection peepholes change by little more than their own rounding.
				if q.Hidden, q.Heads, q.Projection = 17, 0, 6; c.Projects() && len(c.Peeps) == 0 {
					t.Run(q.String(), func(t *testing.T) { trainOnce(t, d, tech, q, once) })
				}
			}
			if i%4 == j {
				q, once := p, o
				q.Lengths = "2+5+6"
				t.Run(q.String(), func(t *testing.T) { trainOnce(t, d, tech, q, once) })
			}
			if i%5 == j {
				q, once := p, o
				q.Output, q.Groups, q.Weighted, q.Transcript = 4, 0, false, 3
				once.Norm = true // losses are sums over steps, so their gradients are large
				t.Run(q.String(), func(t *testing.T) { trainOnce(t, d, tech, q, once) })
			}
			if i%3 == j {
				q, once := p, o
				q.Layers, q.Skip = 3, 1
				if i%2 == 0 {
					q.Norm = rnn.NormBatch
				}
				if q.Direction == rnn.FromFirst {
					q.Lookahead = 3
				}
				t.Run(q.String(), func(t *testing.T) { trainOnce(t, d, tech, q, once) })
				if q.Direction == rnn.FromFirst {
					once.Carry = true
					t.Run(q.String()+"/carry", func(t *testing.T) { trainOnce(t, d, tech, q, once) })
				}
			}
			if i%4 == (j+2)%4 && precision == rnn.FP32 {
				q, r := p, p
				q.Dense = 11
				r.OneHot, r.Symbols, r.Embedding, r.Conv = false, 0, 0, "3x2x3/2"
				t.Run(q.String(), func(t *testing.T) { trainOnce(t, d, tech, q, o) })
				t.Run(r.String(), func(t *testing.T) { trainOnce(t, d, tech, r, o) })
			}
			o.Carry, p.Direction = true, rnn.FromFirst
			p.Batch, p.History = 2, []int{4, 6, 13, 0}[(i+j)%4] // fewer steps than the new ones, as many, more, none
			t.Run(p.String(), func(t *testing.T) { trainOnce(t, d, tech, p, o) })
		}
	}
}

// trainOnce compares how much training changes each parameter with the reference.
func trainOnce(t *testing.T, d device.Device, tech rnn.Technique, p rnn.Problem, o rnn.Optimizer) {
	data := rnn.NewData(p, 3, p.Batch, "normal")
	plan, s, err := rnn.LayoutTraining(tech, p, nil, o)
	if errors.Is(err, schedule.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := schedule.Verify(s); err != nil {
		t.Fatal(err)
	}
	got, err := trained(d, plan, s, data, o)
	if errors.Is(err, schedule.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ref := oracle.NewDescent(data, o)
	for range p.Runs() {
		ref.See()
		copy(newSteps(ref.Data), newSteps(data))
	}
	for range iterations {
		copy(newSteps(ref.Data), newSteps(data))
		ref.Step(learningRate, normLimit)
	}
	var want []oracle.Tensor
	for _, one := range plan.Updates.Trained {
		want = append(want, change(one, data.Get(one.Name), ref.Data.Get(one.Name)))
	}
	dev, err := oracle.Compare(p, got, want)
	if err != nil || !dev.OK() {
		t.Errorf("%+v: after %d iterations: %v, %v", o, iterations, dev, err)
	}
}

// trained runs the iterations on d and returns the change of each parameter.
func trained(d device.Device, plan *rnn.Plan, s *schedule.Schedule, data *rnn.Data, o rnn.Optimizer) ([]oracle.Tensor, error) {
	prog, err := d.Compile(s, nil)
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	if err := errors.Join(plan.Write(prog, data), plan.Updates.Begin(prog, data), prog.Prepare()); err != nil {
		return nil, err
	}
	if plan.XN != nil {
		if err := fillHistory(prog, plan, data, o); err != nil {
			return nil, err
		}
	}
	for i := range iterations {
		if err := prog.Write(plan.Updates.Rates, o.Rates(i+1, learningRate, normLimit)); err != nil {
			return nil, err
		}
		if _, err := prog.Run(1); err != nil {
			return nil, err
		}
	}
	var out []oracle.Tensor
	for _, one := range plan.Updates.Trained {
		values, used := make([]float32, one.Param.Elements()), make([]float32, one.Param.Elements())
		if err := errors.Join(prog.Read(one.Param, values), prog.Read(one.Used, used)); err != nil {
			return nil, err
		}
		for i, v := range used {
			if diff := float64(v - values[i]); diff > 0.01 || diff < -0.01 {
				return nil, fmt.Errorf("the network reads %g where %s is %g", v, one.Name, values[i])
			}
		}
		out = append(out, change(one, data.Get(one.Name), values))
	}
	return out, nil
}

// fillHistory fills the history: it runs at a rate of 0 until a minibatch has filled all its steps.
func fillHistory(prog device.Program, plan *rnn.Plan, data *rnn.Data, o rnn.Optimizer) error {
	err := errors.Join(prog.Write(plan.XN, newSteps(data)), prog.Write(plan.Updates.Rates, o.Rates(1, 0, 0)))
	for range plan.Runs() {
		if err == nil {
			_, err = prog.Run(1)
		}
	}
	return errors.Join(err, plan.Updates.Begin(prog, data))
}

// newSteps returns the inputs of the steps after the history.
func newSteps(d *rnn.Data) []float32 {
	x, p := d.Get("x"), d.Problem
	return x[len(x)/p.Frames()*p.History:]
}

// change returns after - before of a parameter, as a tensor to be compared like its gradient.
func change(of rnn.Trained, before, after []float32) oracle.Tensor {
	t := oracle.Tensor{Name: "grad_" + of.Name, Rows: of.Param.Rows, Cols: of.Param.Cols, Gradient: true}
	for i := range before {
		t.Values = append(t.Values, float64(after[i])-float64(before[i]))
	}
	return t
}
