package impl_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// runOnce lays p out and runs it once on random data.
func runOnce(t *testing.T, d device.Device, tech rnn.Technique, p rnn.Problem) (*rnn.Plan, device.Program, *rnn.Data) {
	t.Helper()
	data := rnn.NewData(p, 1, 2, "normal")
	plan, s, err := rnn.Layout(tech, p, nil)
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
	return plan, prog, data
}

// TestDirectionsStepwise checks layers of every direction step by step, wholly and in part, and plants a fault in
// each part of the answer.
func TestDirectionsStepwise(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i, c := range cell.All() {
		for j, direction := range []rnn.Direction{rnn.BothWays, rnn.FromLast, rnn.Alternating} {
			if testing.Short() && i%3 != j {
				continue
			}
			p := rnn.Problem{Cell: c, Input: 3, Hidden: 4 + i%3, Layers: 1 + (i/3+j)%3, Batch: 3, Steps: 7 + j, Direction: direction, Pass: rnn.Train}
			switch (i + j) % 4 {
			case 1:
				p.Output = 6
			case 2:
				p.Output, p.OneHot = 3, c.Window == 1
			case 3:
				p.Symbols, p.Embedding, p.Output, p.Groups, p.Weighted = 5, 2, 6, 2, true
			}
			t.Run(p.String(), func(t *testing.T) { findsFaults(t, d, p) })
			if c.Projects() && p.Symbols == 0 {
				p.Projection = 3
				t.Run(p.String(), func(t *testing.T) { findsFaults(t, d, p) })
			}
		}
	}
}

// findsFaults checks a right answer to p and wrong ones.
func findsFaults(t *testing.T, d device.Device, p rnn.Problem) {
	plan, prog, data := runOnce(t, d, impl.Lookup("cudnnstyle"), p)
	if states, gradients := oracle.Steps(plan); !states || !gradients {
		t.Fatalf("it keeps states %t and gradients %t", states, gradients)
	}
	got, _, err := oracle.ReadDistinct(plan, prog, data)
	if err != nil {
		t.Fatal(err)
	}
	check := func(flops float64) (oracle.Deviation, oracle.Covered) {
		dev, covered, err := oracle.Stepwise{FLOPs: flops}.Check(plan, prog, data, got)
		if err != nil {
			t.Fatal(err)
		}
		return dev, covered
	}
	if dev, covered := check(1e9); !dev.OK() || covered.Share != 1 || covered.Steps != p.Steps {
		t.Errorf("%v: %+v", dev, covered)
	}
	if dev, covered := check(3e4); !dev.OK() || covered.Share >= 1 {
		t.Errorf("in part: %v: %+v", dev, covered)
	}
	for i := range got {
		at := len(got[i].Values) / 2
		right := got[i].Values[at]
		got[i].Values[at] += 1 + 3*max(1, got[i].Spread)
		if dev, _ := check(1e9); dev.OK() {
			t.Errorf("%s may be off by 1", got[i].Name)
		}
		got[i].Values[at] = right
		for k, v := range []float64{math.NaN(), math.Inf(1), 1e30, -1e30} {
			at := (at + 7*k) % len(got[i].Values)
			right := got[i].Values[at]
			got[i].Values[at] = v
			if dev, _ := check(3e4); dev.OK() {
				t.Errorf("in part: %s may be %v", got[i].Name, v)
			}
			got[i].Values[at] = right
		}
	}
	spoiltCopies(t, plan, prog, data)
}

// A spoiling memory has a wrong value in the last of the values that it reads of one matrix.
type spoiling struct {
	rnn.Memory
	matrix *schedule.Matrix
	value  float32
}

func (m spoiling) Read(of *schedule.Matrix, to []float32) error {
	err := m.Memory.Read(of, to)
	if of == m.matrix {
		to[len(to)-1] = m.value
	}
	return err
}

// spoiltCopies plants wrong values in the last sequence, a copy of the first, and in the gradients of each step.
func spoiltCopies(t *testing.T, plan *rnn.Plan, prog rnn.Memory, data *rnn.Data) {
	p := plan.Problem
	for name, m := range plan.Results() {
		if !strings.HasPrefix(name, "h_") && !strings.HasPrefix(name, "c_") && name != "dx" {
			continue
		}
		for _, v := range []float32{float32(math.NaN()), float32(math.Inf(-1)), 1e30} {
			if _, apart, err := oracle.ReadDistinct(plan, spoiling{prog, m, v}, data); err != nil || apart.OK() {
				t.Errorf("a copy's %s may be %v: %v, %v", name, v, apart, err)
			}
		}
	}
	got, _, err := oracle.ReadDistinct(plan, prog, data)
	if err != nil {
		t.Fatal(err)
	}
	for l := range p.Reads() {
		for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), 1e30} {
			b := plan.Layer[l].Back
			dev, _, err := oracle.Stepwise{FLOPs: 3e4}.Check(plan, everywhere{prog, b.DX, v}, data, got)
			if err != nil || dev.OK() {
				t.Errorf("gradients of layer %d may be %v: %v, %v", l, v, dev, err)
			}
		}
	}
}

// An everywhere memory has a wrong value in one unit of all sequences, at the middle step.
type everywhere struct {
	rnn.Memory
	matrix *schedule.Matrix
	value  float32
}

func (m everywhere) Read(of *schedule.Matrix, to []float32) error {
	err := m.Memory.Read(of, to)
	if of == m.matrix {
		for b := range 3 {
			to[(of.Rows/2/3*3+b)*of.Cols] = m.value
		}
	}
	return err
}

// TestDirectionsStepwiseRows: states with their steps in the opposite order are found wrong.
func TestDirectionsStepwiseRows(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 2, Batch: 1, Steps: 8, Direction: rnn.BothWays, Pass: rnn.Train}
	plan, prog, data := runOnce(t, d, impl.Lookup("naive"), p)
	if states, gradients := oracle.Steps(plan); !states || gradients {
		t.Fatalf("naive keeps states %t and gradients %t", states, gradients)
	}
	got, _, err := oracle.ReadDistinct(plan, prog, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"h_l0", "h_l0_reverse", "h_l1", "c_l1_reverse", "y"} {
		i := slices.IndexFunc(got, func(t oracle.Tensor) bool { return t.Name == name })
		right := got[i].Values
		got[i].Values = nil
		for row := p.Steps - 1; row >= 0; row-- {
			got[i].Values = append(got[i].Values, right[row*got[i].Cols:][:got[i].Cols]...)
		}
		if dev, _, err := (oracle.Stepwise{FLOPs: 1e9}).Check(plan, prog, data, got); err != nil || dev.OK() {
			t.Errorf("%s may have its steps in the opposite order: %v %v", name, dev, err)
		}
		got[i].Values = right
	}
	if dev, _, err := (oracle.Stepwise{FLOPs: 1e9}).Check(plan, prog, data, got); err != nil || !dev.OK() {
		t.Error(dev, err)
	}
}
