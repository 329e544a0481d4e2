package impltest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"rnnbench/cells"
	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// RunReplicas compares training by several devices, each with a part of the minibatch, with the
// reference's training on all of it: the gradients, and the changes of parameters.
func RunReplicas(t *testing.T, replicas []device.Device, tech rnn.Technique) {
	for i, p := range []rnn.Problem{
		{Cell: cell.LSTM, Input: 5, Hidden: 17, Layers: 2, Batch: 7, Steps: 6, Output: 7},
		{Cell: cell.GRU, Input: 9, Hidden: 23, Layers: 3, Batch: 5, Steps: 4, OneHot: true, Output: 3},
		{Cell: cell.RNNTanh, Input: 3, Hidden: 33, Layers: 1, Batch: 3, Steps: 5},
		{Cell: cell.SRU, Input: 6, Hidden: 6, Layers: 2, Batch: 4, Steps: 9, Output: 4},
		{Cell: cells.Inners()[0], Input: 5, Hidden: 9, Layers: 2, Batch: 5, Steps: 4, Output: 3},
	} {
		p.Pass = rnn.Train
		o := optimizers()[i%len(optimizers())]
		t.Run(p.String(), func(t *testing.T) { replicasOnce(t, replicas, tech, p, o) })
	}
}

func replicasOnce(t *testing.T, replicas []device.Device, tech rnn.Technique, p rnn.Problem, o rnn.Optimizer) {
	parts, err := rnn.Parts(p.Batch, len(replicas))
	if err != nil {
		t.Fatal(err)
	}
	o.Replicas, o.Whole = len(replicas), p.Batch
	data := rnn.NewData(p, 3, p.Batch, "normal")
	changes, gradients, errs := make([][]oracle.Tensor, len(replicas)), make([][]oracle.Tensor, len(replicas)), make([]error, len(replicas))
	var all sync.WaitGroup
	for i, d := range replicas {
		all.Go(func() { changes[i], gradients[i], errs[i] = replica(d, tech, data.Part(parts[i]), o) })
	}
	all.Wait()
	if err := errors.Join(errs...); errors.Is(err, schedule.ErrUnsupported) {
		t.Skip(errs[0])
	} else if err != nil {
		t.Fatal(err)
	}
	one := o
	one.LossScale = 0 // the reference's losses are not scaled
	ref := oracle.NewDescent(data, one)
	for range iterations {
		ref.Step(learningRate, normLimit)
	}
	var changed, formed []oracle.Tensor
	for _, want := range oracle.Reference(data) {
		if slices.ContainsFunc(gradients[0], func(g oracle.Tensor) bool { return g.Name == want.Name }) {
			formed = append(formed, want)
		}
	}
	if len(formed) != len(gradients[0]) {
		t.Errorf("%d gradients were read, of which the reference has %d", len(gradients[0]), len(formed))
	}
	for _, got := range changes[0] {
		name := got.Name[len("grad_"):]
		w := got
		w.Values = nil
		for i, v := range ref.Data.Get(name) {
			w.Values = append(w.Values, float64(v)-float64(data.Get(name)[i]))
		}
		changed = append(changed, w)
	}
	for r := range replicas {
		if dev, err := oracle.Compare(p, inOrder(gradients[r], formed), formed); err != nil || !dev.OK() {
			t.Errorf("replica %d: gradients: %v, %v", r+1, dev, err)
		}
		if dev, err := oracle.Compare(p, changes[r], changed); err != nil || !dev.OK() {
			t.Errorf("replica %d: parameters: %v, %v", r+1, dev, err)
		}
		for i, got := range changes[r] {
			if !slices.Equal(got.Values, changes[0][i].Values) {
				t.Errorf("replica %d: parameters %s differ from replica 1's", r+1, got.Name)
			}
		}
	}
}

// inOrder returns the tensors that like also has, matched by name, in the order of like.
func inOrder(tensors, like []oracle.Tensor) (out []oracle.Tensor) {
	for _, l := range like {
		if i := slices.IndexFunc(tensors, func(t oracle.Tensor) bool { return t.Name == l.Name }); i >= 0 {
			out = append(out, tensors[i])
		}
	}
	return out
}

// replica trains on one part. It returns the changes of parameters, and the gradients of the whole
// minibatch in the first iteration.
func replica(d device.Device, tech rnn.Technique, data *rnn.Data, o rnn.Optimizer) (changes, gradients []oracle.Tensor, err error) {
	plan, s, err := rnn.LayoutTraining(tech, data.Problem, nil, o)
	if err != nil {
		return nil, nil, err
	}
	if err := schedule.Verify(s); err != nil {
		return nil, nil, err
	}
	if changes, err = trained(d, plan, s, data, o); err != nil {
		return nil, nil, err
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		return nil, nil, err
	}
	defer prog.Close()
	err = errors.Join(plan.Write(prog, data), plan.Updates.Begin(prog, data), prog.Prepare(), prog.Write(plan.Updates.Rates, o.Rates(1, 0, 0)))
	if err != nil {
		return nil, nil, err
	}
	if _, err := prog.Run(3); err != nil { // at a rate of 0 all runs have the same gradients
		return nil, nil, err
	}
	scale := 1.0
	if data.Problem.Output > 0 && o.LossScale > 0 {
		scale = o.LossScale
	}
	for _, one := range plan.Updates.Trained {
		values := make([]float32, one.Grad.Elements())
		if err := prog.Read(one.Grad, values); err != nil {
			return nil, nil, fmt.Errorf("the gradient of %s: %w", one.Name, err)
		}
		g := oracle.Tensor{Name: "grad_" + one.Name, Rows: one.Grad.Rows, Cols: one.Grad.Cols, Gradient: true}
		for _, v := range values {
			g.Values = append(g.Values, float64(v)/scale)
		}
		gradients = append(gradients, g)
	}
	return changes, gradients, nil
}
