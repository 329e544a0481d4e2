package impl_test

import (
	"errors"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/oracle"
)

// ran lays p out by a technique, and runs it once on data.
func ran(t *testing.T, d device.Device, technique string, p rnn.Problem, data *rnn.Data) (*rnn.Plan, device.Program) {
	t.Helper()
	plan, s, err := rnn.Layout(impl.Lookup(technique), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
		t.Fatal(err)
	}
	if _, err := prog.Run(1); err != nil {
		t.Fatal(err)
	}
	return plan, prog
}

// plantFaults checks all that a run left step by step, and then that each of the named tensors is found wrong if its
// middle value is off by so much. A cell that has no h has c. It returns what the run left.
func plantFaults(t *testing.T, plan *rnn.Plan, prog device.Program, data *rnn.Data, by map[string]float64) (got []oracle.Tensor) {
	t.Helper()
	p := plan.Problem
	got, _, err := oracle.ReadDistinct(plan, prog, data)
	if err != nil {
		t.Fatal(err)
	}
	check := func() oracle.Deviation {
		dev, covered, err := oracle.Stepwise{FLOPs: 1e9}.Check(plan, prog, data, got)
		if err != nil || covered.Share != 1 || covered.Steps != p.Steps {
			t.Fatalf("%v: %v: %v of the values are compared, at %d steps", p, err, covered.Share, covered.Steps)
		}
		return dev
	}
	if dev := check(); !dev.OK() {
		t.Errorf("%v: %v", p, dev)
	}
	for name, off := range by {
		k := slices.IndexFunc(got, func(t oracle.Tensor) bool { return t.Name == name || t.Name == "c"+name[1:] })
		v := &got[k].Values[len(got[k].Values)/2]
		right := *v
		*v += off
		if dev := check(); dev.OK() {
			t.Errorf("%v: %s may be off by %v", p, name, off)
		}
		*v = right
	}
	return got
}

// directOf runs problems in fp32 and bf16 by each technique, with one worker and with two.
func directOf(t *testing.T, problems func(rnn.Precision) []rnn.Problem) {
	t.Helper()
	one, two := openWorkers(t)
	impltest.RunShared(t, one, two, impl.Direct(), slices.Concat(problems(rnn.FP32), problems(rnn.BF16)), nil)
}

// emulatedOf runs problems by each technique on the CUDA device without a GPU, by the vendor's library
// too. With -short it runs every nth.
func emulatedOf(t *testing.T, nth int, problems func(rnn.Precision) []rnn.Problem) {
	t.Helper()
	d := emulated(t)
	for i, tech := range slices.Concat(impl.Direct(), impl.Vendors()) {
		var some []rnn.Problem
		for j, p := range slices.Concat(problems(rnn.FP32), problems(rnn.BF16), problems(rnn.FP16)) {
			if !testing.Short() || (i+j)%nth == 0 {
				some = append(some, p)
			}
		}
		t.Run(tech.Name(), func(t *testing.T) { impltest.Run(t, d, tech, some) })
	}
}
