package impl_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/emulator"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestTraining: every technique trains as the reference does.
func TestTraining(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, tech := range impl.Direct() {
		t.Run(tech.Name(), func(t *testing.T) { impltest.RunTraining(t, d, tech) })
	}
}

// TestEmulatedTraining does so on the CUDA device without a GPU.
func TestEmulatedTraining(t *testing.T) {
	if os.Getenv("RNNBENCH_EMULATE") == "" {
		t.Skip("make emulate runs it")
	}
	compiler, err := emulator.NewCompiler()
	if err != nil {
		t.Skip(err)
	}
	driver, err := emulator.New(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := cuda.New(driver, compiler, t.TempDir())
	defer d.Close()
	for _, tech := range impl.Direct() {
		t.Run(tech.Name(), func(t *testing.T) { impltest.RunTraining(t, d, tech) })
	}
}

// TestTrainingDeclines: a problem that cannot be trained is declined with the reason.
func TestTrainingDeclines(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 5, Layers: 1, Batch: 2, Steps: 4, Output: 3, Pass: rnn.Train}
	forward, kept := p, p
	forward.Pass, kept.History = rnn.Forward, 2
	adam := rnn.Optimizer{Rule: schedule.Adam, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	noEpsilon := adam
	noEpsilon.Epsilon = 0
	for _, c := range []struct {
		p    rnn.Problem
		o    rnn.Optimizer
		want string
	}{
		{forward, adam, "only training"},
		{kept, adam, "history is 2, but no minibatch continues the one before"},
		{p, noEpsilon, "epsilon is 0"},
		{p, rnn.Optimizer{Beta1: 1}, "momentum"},
		{p, rnn.Optimizer{Nesterov: true}, "momentum above 0"},
		{p, rnn.Optimizer{Rule: 7}, "no optimiser"},
	} {
		if _, _, err := rnn.LayoutTraining(impl.Lookup("scc"), c.p, nil, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %+v: %v, want %q", c.p, c.o, err, c.want)
		}
	}
}

// TestCarry: each run begins with the states that the run before ended with.
func TestCarry(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 5, Layers: 2, Batch: 2, Steps: 4, Output: 3, Pass: rnn.Train}
	for _, tech := range []string{"naive", "cudnnstyle", "persistent", "scc"} {
		plan, s, err := rnn.LayoutTraining(impl.Lookup(tech), p, nil, rnn.Optimizer{Carry: true})
		if err != nil {
			t.Fatal(err)
		}
		prog, err := d.Compile(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		data := rnn.NewData(p, 1, p.Batch, "normal")
		rates := make([]float32, schedule.RateColumns)
		err = errors.Join(plan.Write(prog, data), prog.Prepare(), prog.Write(plan.Updates.Rates, rates))
		if _, ran := prog.Run(1); err != nil || ran != nil {
			t.Fatal(err, ran)
		}
		for l, y := range plan.Layer {
			for i, m := range y.State {
				values, n := make([]float32, m.Elements()), p.Batch*p.Hidden
				if err := prog.Read(m, values); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(values[:n], values[len(values)-n:]) {
					t.Errorf("%s: state %d of layer %d begins with %v after a run that ended with %v", tech, i, l, values[:n], values[len(values)-n:])
				}
			}
		}
		prog.Close()
	}
}
