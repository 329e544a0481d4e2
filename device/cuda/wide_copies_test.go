package cuda_test

import (
	"errors"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// TestWideCopies: the two warpgroups of mma-wide each have half of the columns. For half of the
// sequences, sums begin with the inputs before the first half of the columns, and for the others
// before the second half. So copies of a sequence are rounded differently, and lie on different
// sides of ReLU's kink. A check that assumed them equal would find right gradients wrong.
func TestWideCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("it emulates forty steps of 64 sequences")
	}
	compiler, driver := emulation(t, 16)
	d := cuda.New(driver, compiler, t.TempDir())
	t.Cleanup(func() { d.Close() })
	p := rnn.Problem{Cell: cell.RNNReLU, Pass: rnn.Train, Input: 192, Hidden: 192, Layers: 1, Batch: 64, Steps: 40, Precision: schedule.FP16}
	data := rnn.NewData(p, 1, 3, "normal")
	plan, s, err := rnn.Layout(impl.Lookup("persistent"), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := d.Compile(s, knob.Params{"resident": 9, "samples": 32})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
		t.Fatal(err)
	}
	if _, err := prog.Run(1); err != nil {
		t.Fatal(err)
	}
	check := oracle.Stepwise{FLOPs: 4e9}
	got, _, err := oracle.ReadDistinct(plan, prog, data)
	if err != nil {
		t.Fatal(err)
	}
	if dev, _, err := check.Check(plan, prog, data, got); err != nil || dev.OK() {
		t.Errorf("copies are all on one side, so nothing is tried: %v, %v", dev, err)
	}
	dev, covered, err := check.CheckEach(plan, prog, data)
	if k := covered.Kinks; err != nil || dev.Error > dev.Tolerance/4 || covered.Share != 1 || k.TooMany() || k.Other == 0 {
		t.Errorf("%v, %+v, %v", dev, covered, err)
	}
}
