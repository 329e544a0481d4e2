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
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// CallProblems returns problems in precision p whose sequences take several calls: every cell, one
// or several steps a call, dense, one-hot and embedded inputs, with and without an output layer.
func CallProblems(p rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range slices.Concat(cell.All(), cells.Inners()) {
		ps = append(ps,
			rnn.Problem{Cell: c, Input: 3, Hidden: 17, Layers: 2, Batch: 3, Steps: 1, Calls: 9, Precision: p},
			rnn.Problem{Cell: c, Input: 7, Hidden: 6, Layers: 1, Batch: 1, Steps: 3, Calls: 4, Output: 5, OneHot: true, Precision: p},
			rnn.Problem{Cell: c, Input: 5, Hidden: 8, Layers: 2, Batch: 2, Steps: 2, Calls: 5, Symbols: 4, Embedding: 3, Output: 4, Groups: 2, Weighted: true, Precision: p},
		)
		if i%4 == 3 {
			ps = append(ps, rnn.Problem{Cell: c, Input: 9, Hidden: 9, Layers: 4 + i%3, Skip: 2, Batch: 2, Steps: 1 + i%2, Calls: 4, Output: 3 * (i % 8 / 4), Precision: p})
		}
		if c.Projects() {
			ps = append(ps, rnn.Problem{Cell: c, Input: 5, Hidden: 8, Projection: 3, Layers: 2, Batch: 2, Steps: 1 + i%2, Calls: 5, Precision: p})
		}
	}
	return ps
}

// RunCalls compares calls of the techniques on device d with the reference of one sequence, which answers
// once for all of them. It tries every value of a technique's knobs, one knob at a time; with -short the
// defaults alone.
func RunCalls(t *testing.T, d device.Device, techs []rnn.Technique, problems []rnn.Problem) {
	for _, p := range problems {
		data := rnn.NewData(p.Sequence(), 1, 2, "normal")
		want := oracle.Reference(data)
		for _, tech := range techs {
			t.Run(p.String()+"/"+tech.Name(), func(t *testing.T) {
				settings := knob.OneAtATime(tech.Knobs(p))
				if testing.Short() {
					settings = settings[:1]
				}
				var declined error
				for i, k := range settings {
					err := calls(d, tech, p, k, data, want)
					switch {
					case errors.Is(err, schedule.ErrUnsupported):
						if i == 0 {
							declined = err
						}
					case err != nil:
						t.Fatalf("%v: %v", k, err)
					default:
						declined = nil
					}
				}
				if declined != nil {
					t.Skip(declined)
				}
			})
		}
	}
}

// calls makes the calls of one setting, and compares their answer and what a server reads with want.
func calls(d device.Device, tech rnn.Technique, p rnn.Problem, k knob.Params, data *rnn.Data, want []oracle.Tensor) error {
	plan, s, err := rnn.Layout(tech, p, k)
	if err != nil {
		return err
	}
	if err := schedule.Verify(s); err != nil {
		return err
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		return err
	}
	defer prog.Close()
	if err := errors.Join(plan.Write(prog, data.Cut(p)), prog.Prepare()); err != nil {
		return err
	}
	m, n := rnn.CallOutput(plan)
	served := make([]float32, n)
	got, apart, err := oracle.Serve(plan, prog, data, func() error {
		_, err := prog.Run(1)
		return errors.Join(err, prog.Read(m, served))
	})
	if err != nil {
		return err
	}
	dev, err := oracle.CompareCalls(data, got, want)
	if err == nil {
		err = timed(prog, plan, data, served)
	}
	switch {
	case err != nil:
		return err
	case !apart.OK():
		return fmt.Errorf("copies of a sequence differ: %v", apart)
	case !dev.OK():
		return fmt.Errorf("%v", dev)
	}
	if !oracle.EveryStep(p, got) {
		return lastServed(p, got, served)
	}
	if dev, _, err = (oracle.Stepwise{Seed: 1, FLOPs: 1e9}).CheckCalls(plan, data, got); err != nil || !dev.OK() {
		return errors.Join(err, fmt.Errorf("step by step: %v", dev))
	}
	return lastServed(p, got, served)
}

// timed makes the same calls by device.Call, as a sweep does. The last must give what the server
// read.
func timed(prog device.Program, plan *rnn.Plan, data *rnn.Data, served []float32) error {
	if err := plan.Write(prog, data.Cut(plan.Problem)); err != nil { // the first states
		return err
	}
	out, n := rnn.CallOutput(plan)
	c := device.Calls{In: plan.Given, Inputs: rnn.CallInputs(plan, data, 1<<20), Each: plan.Given.Elements(), Out: out, Read: n, N: data.Problem.Steps / plan.Steps}
	if _, err := device.Call(prog, c); err != nil {
		return err
	}
	got := make([]float32, n)
	if err := prog.Read(out, got); err != nil {
		return err
	}
	if !slices.Equal(got, served) {
		return fmt.Errorf("timed calls end with %v, runs one by one with %v", got, served)
	}
	return nil
}

// lastServed compares what a server read in the last call with the answer.
func lastServed(p rnn.Problem, got []oracle.Tensor, served []float32) error {
	name := fmt.Sprintf("%s_l%d", p.Cell.States[0], p.Layers-1)
	switch {
	case p.Output > 0:
		name = "prob"
	case rnn.Joins(p):
		name = "y"
	}
	i := slices.IndexFunc(got, func(t oracle.Tensor) bool { return t.Name == name })
	cols, distinct := got[i].Cols, min(2, p.Batch)
	last := got[i].Values[len(got[i].Values)-distinct*cols:]
	from := len(served) - p.Batch*cols
	for j, want := range last {
		if have := float64(served[from+j]); have != want {
			return fmt.Errorf("a server reads %g where %s is %g", have, name, want)
		}
	}
	return nil
}
