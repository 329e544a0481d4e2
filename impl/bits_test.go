package impl_test

import (
	"errors"
	"slices"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// mayDependOnThreads reports whether the last bits of t, of technique tech for p, may depend on the
// number of threads: the order in which a product adds depends on a worker's share of its rows.
func mayDependOnThreads(tech string, p rnn.Problem, t oracle.Tensor) bool {
	return t.Gradient || tech == "persistent" && p.Precision != rnn.FP32
}

// TestBitsOfThreads: on one thread, two and three, states and outputs have the same bits, but for what
// mayDependOnThreads names.
func TestBitsOfThreads(t *testing.T) {
	var devices []*cpu.Device
	level := simd.Generic // others may round bf16 by the size of a share
	for n := 1; n <= 3; n++ {
		d, err := cpu.Open(cpu.Options{Threads: n, Level: &level, InTurn: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		devices = append(devices, d)
	}
	compared := 0
	for k, p := range []rnn.Problem{
		{Input: 48, Hidden: 40, Layers: 2, Batch: 6, Steps: 9, Output: 20},
		{Input: 64, Hidden: 128, Layers: 2, Batch: 16, Steps: 5},
	} {
		for i, c := range cell.All() {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				for _, precision := range []rnn.Precision{rnn.FP32, rnn.BF16} {
					if third := (i+int(precision))%3 == 0; !third && (k > 0 || testing.Short()) || k > 0 && testing.Short() {
						continue
					}
					p.Cell, p.Pass, p.Precision = c, pass, precision
					data := rnn.NewData(p, 1, p.Batch, "normal")
					for _, tech := range slices.Concat(impl.Direct(), impl.Vendors()) {
						compared += sameBits(t, devices, tech, p, data)
					}
				}
			}
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// sameBits runs p on each device and compares the answers. It returns how many tensors it compared.
func sameBits(t *testing.T, devices []*cpu.Device, tech rnn.Technique, p rnn.Problem, data *rnn.Data) (compared int) {
	var first []oracle.Tensor
	for n, d := range devices {
		got, err := answerOn(d, tech, p, data)
		if errors.Is(err, schedule.ErrUnsupported) {
			return 0
		}
		if err != nil {
			t.Fatalf("%v: %s: %v", p, tech.Name(), err)
		}
		if n == 0 {
			first = got
			continue
		}
		for i, g := range got {
			if mayDependOnThreads(tech.Name(), p, g) {
				continue
			}
			if compared++; !slices.Equal(g.Values, first[i].Values) {
				t.Errorf("%v: %s: %s differs between %d threads and one", p, tech.Name(), g.Name, n+1)
			}
		}
	}
	return compared
}

// answerOn is the answer of a run of p on d.
func answerOn(d *cpu.Device, tech rnn.Technique, p rnn.Problem, data *rnn.Data) ([]oracle.Tensor, error) {
	plan, s, err := rnn.Layout(tech, p, nil)
	if err != nil {
		return nil, err
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
		return nil, err
	}
	if _, err := prog.Run(1); err != nil {
		return nil, err
	}
	return oracle.Read(plan, prog)
}
