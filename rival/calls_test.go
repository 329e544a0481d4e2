package rival_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/cells"
	"rnnbench/device"
	"rnnbench/rival"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// serve has a rival make the calls of p one by one, and then again as they are timed. It compares both
// answers with the reference's for the sequence of all calls.
func serve(r *rival.Rival, p rnn.Problem, k knob.Params) (err error) {
	plan, s, err := rnn.Layout(r, p, k)
	if err != nil {
		return err
	}
	prog, err := r.Host().Compile(s, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prog.Close()) }()
	d := rnn.NewData(p.Sequence(), seed, p.Batch, "normal")
	if err := errors.Join(plan.Write(prog, d.Cut(p)), prog.Prepare()); err != nil {
		return err
	}
	want := oracle.Reference(d)
	got, _, err := oracle.Serve(plan, prog, d, func() error {
		_, err := prog.Run(1)
		return err
	})
	if err != nil {
		return err
	}
	if p.Steps == 1 { // of several steps a call, it shows the states after the last one alone
		if dev, err := oracle.CompareCalls(d, got, want); err != nil || !dev.OK() {
			return fmt.Errorf("one by one: %v, %w", dev, err)
		}
	}
	var calls device.Calls
	for range 2 {
		if err := errors.Join(plan.Write(prog, d.Cut(p)), prog.Prepare()); err != nil {
			return err
		}
		if _, err := prog.Run(2); err != nil {
			return err
		}
		if err := errors.Join(plan.Write(prog, d.Cut(p)), prog.Prepare()); err != nil {
			return err
		}
		out, n := rnn.CallOutput(plan)
		calls = device.Calls{In: plan.Given, Inputs: rnn.CallInputs(plan, d, 1<<20), Each: plan.Given.Elements(), Out: out, Read: n, N: p.Calls}
		times, err := device.Call(prog, calls)
		if err != nil {
			return err
		}
		if len(times.Wall) != p.Calls || len(times.Run) != p.Calls {
			return fmt.Errorf("%d of %d calls are timed", len(times.Wall), p.Calls)
		}
		if got, _, err = oracle.ReadDistinct(plan, prog, d); err != nil {
			return err
		}
		if dev, err := oracle.CompareCall(d, p.Calls, p.Steps, got, want); err != nil || !dev.OK() {
			return fmt.Errorf("timed: %v, %w", dev, err)
		}
	}
	calls.N = 2500 // more than a request
	if times, err := device.Call(prog, calls); err != nil || len(times.Wall) != calls.N {
		return fmt.Errorf("%d of %d calls are timed: %w", len(times.Wall), calls.N, err)
	}
	return nil
}

// TestCalls: a rival is called step by step, keeps the states, and times each call.
func TestCalls(t *testing.T) {
	r := cheats(t)("honest")
	for _, p := range []rnn.Problem{
		{Input: 3, Hidden: 5, Layers: 1, Batch: 1, Steps: 1, Calls: 9},
		{Input: 7, Hidden: 4, Layers: 1, Batch: 3, Steps: 2, Calls: 5},
	} {
		p.Cell = cell.RNNTanh
		if err := serve(r, p, nil); err != nil {
			t.Errorf("%v: %v", p, err)
		}
	}
	p := problem(cell.GRU, rnn.Forward)
	p.Calls = 3
	want := "stranger runs whole sequences and keeps no state from call to call"
	if err := serve(open(t, "honest"), p, nil); !errors.Is(err, schedule.ErrCalls) || !strings.Contains(err.Error(), want) {
		t.Errorf("a rival that states no calls: %v", err)
	}
}

// TestInvalidCalls: a rival whose answer to calls is invalid is ended, and says why.
func TestInvalidCalls(t *testing.T) {
	for how, want := range map[string]string{
		"few calls":      "its calls_s has 3 times, not 4",
		"untimed calls":  "its calls_s has 0 times, not 4",
		"negative calls": "its times are not positive",
		"later calls":    "it says that the runs took",
	} {
		p := rnn.Problem{Cell: cell.RNNTanh, Input: 3, Hidden: 5, Layers: 1, Batch: 1, Steps: 1, Calls: 4}
		if err := serve(cheats(t)(how), p, nil); !errors.Is(err, device.ErrFault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", how, err, want)
		}
	}
}

// holdCalls checks every cell of an adapter at odd sizes, called step by step.
func holdCalls(t *testing.T, r *rival.Rival, a adapter) {
	for _, c := range slices.Concat(cell.All(), cells.Inners()) {
		for _, p := range []rnn.Problem{
			{Input: 1, Hidden: 1, Layers: 1, Batch: 1, Steps: 1, Calls: 3},
			{Input: 13, Hidden: 17, Layers: 1, Batch: 1, Steps: 1, Calls: 9},
			{Input: 7, Hidden: 33, Layers: 3, Batch: 3, Steps: 2, Calls: 4},
			{Input: 13, Hidden: 17, Projection: 5, Layers: 2, Batch: 3, Steps: 1, Calls: 5},
		} {
			for _, k := range []knob.Params{nil, {a.other: 1}}[:min(1+len(a.other), 2)] {
				p.Cell = c
				err := serve(r, p, k)
				known := a.calls && slices.Contains(a.cells, c.Name) && (p.Projection == 0 || slices.Contains(a.projects, c.Name))
				if known && err != nil || !known && !errors.Is(err, schedule.ErrUnsupported) {
					t.Errorf("%v %v: %v", p, k, err)
				}
			}
		}
	}
}
