package cpu_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// unassembled returns c as a new cell, with a name and programs that have no assembly. Each program
// ends with a copy that changes nothing.
func unassembled(c *cell.Cell) *cell.Cell {
	reword := func(p cell.Program) cell.Program {
		if len(p) == 0 {
			return p
		}
		last := p[len(p)-1].Out
		return append(slices.Clone(p), cell.Instr{Op: cell.Copy, Out: last, A: last})
	}
	out := *c
	out.Name = "new " + c.Name
	out.Inference, out.Forward, out.Backward = reword(c.Inference), reword(c.Forward), reword(c.Backward)
	if r := c.Recurrence; r != nil {
		out.Recurrence = &cell.Recurrence{
			Carried:         r.Carried,
			Inference:       reword(r.Inference),
			Forward:         reword(r.Forward),
			Backward:        reword(r.Backward),
			Compose:         reword(r.Compose),
			ComposeBackward: reword(r.ComposeBackward),
		}
	}
	if c.Surrogate != nil {
		out.Surrogate, out.Core = unassembled(c.Surrogate), unassembled(c.Core)
	}
	return &out
}

// TestCellWithoutAssembly runs new cells, forward and backward, with every technique and at every
// level of this machine, and compares the answers with the float64 reference.
func TestCellWithoutAssembly(t *testing.T) {
	for level := simd.Generic; level <= simd.Detect().Base(); level++ {
		d, err := cpu.Open(cpu.Options{Threads: 2, Level: &level, InTurn: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for _, known := range []*cell.Cell{cell.GRU, cell.LSTMPeephole, cell.SRU, cell.LSLSTM} {
			c := unassembled(known)
			for _, pass := range []fused.Pass{fused.Inference, fused.Forward, fused.Backward} {
				if fused.New(level, c, pass).Assembled() {
					t.Errorf("%v: %v of %v has assembly", level, pass, c)
				}
			}
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				p := rnn.Problem{Cell: c, Input: 5, Hidden: 19, Layers: 2, Batch: 1, Steps: 40, Pass: pass}
				data := rnn.NewData(p, 1, 1, "normal")
				want := oracle.Reference(data)
				ran := 0
				for _, tech := range impl.Direct() {
					err := answer(d, tech, p, data, want)
					switch {
					case err == nil:
						ran++
					case !errors.Is(err, schedule.ErrUnsupported):
						t.Errorf("%v, %s of %v: %v", level, tech.Name(), p, err)
					}
				}
				if ran < 3 {
					t.Errorf("%v: %d techniques run %v", level, ran, p)
				}
			}
		}
	}
}

// answer runs p on d and returns an error if the answer is wrong.
func answer(d *cpu.Device, tech rnn.Technique, p rnn.Problem, data *rnn.Data, want []oracle.Tensor) error {
	plan, s, err := rnn.Layout(tech, p, knob.Params{})
	if err != nil {
		return err
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		return err
	}
	defer prog.Close()
	if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
		return err
	}
	if _, err := prog.Run(1); err != nil {
		return err
	}
	if told := d.Interpreted(s); (len(told) > 0) != (tech.Name() != "naive" && tech.Name() != "scc") {
		return fmt.Errorf("it says that it interprets %v", told)
	}
	deviation, _, err := oracle.Check(plan, prog, want)
	if err == nil && !deviation.OK() {
		err = fmt.Errorf("%v", deviation)
	}
	return err
}
