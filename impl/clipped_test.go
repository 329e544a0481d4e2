package impl_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
	"rnnbench/rnn/oracle"
)

// clipped returns the cell of the file rnn-crelu, and the same with an output of at most 1.5, so that many
// units are clipped.
func clipped(t *testing.T) (list []*cell.Cell) {
	const path = "../cells/rnn-crelu.cell"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(text), strings.Replace(string(text), "20)", "1.5)", 1)} {
		c, err := equations.Parse(path, "rnn-crelu", text)
		if err != nil {
			t.Fatal(err)
		}
		if !c.Rectifier() {
			t.Fatalf("%s: its kinks are not found", text)
		}
		list = append(list, c)
	}
	return list
}

// clippedProblems are those of layers with clipped ReLUs, plain and as deep speech models have them.
func clippedProblems(t *testing.T, precision rnn.Precision) (ps []rnn.Problem) {
	for _, c := range clipped(t) {
		plain := rnn.Problem{Cell: c, Input: 7, Hidden: 17, Layers: 2, Batch: 3, Steps: 6, Precision: precision}
		wide, symbols, module, strong := plain, plain, plain, plain
		wide.Hidden, wide.Batch, wide.Layers = 68, 9, 1
		symbols.OneHot, symbols.Output = true, 4
		module.Norm, module.Skip, module.Layers, module.Input = rnn.NormBatch, 2, 4, 17
		strong.Gain, strong.Direction = 300, rnn.BothWays
		for _, p := range []rnn.Problem{plain, wide, symbols, module, strong} {
			trained := p
			trained.Pass = rnn.Train
			ps = append(ps, p, trained)
		}
	}
	return ps
}

// TestClipped runs them by each technique.
func TestClipped(t *testing.T) {
	one, two := openWorkers(t)
	impltest.RunShared(t, one, two, impl.Direct(), slices.Concat(clippedProblems(t, rnn.FP32), clippedProblems(t, rnn.BF16)), nil)
}

// TestEmulatedClipped runs them on the CUDA device without a GPU, by the vendor's library too.
func TestEmulatedClipped(t *testing.T) {
	emulatedOf(t, 10, func(p rnn.Precision) []rnn.Problem { return clippedProblems(t, p) })
}

// TestClippedStepwise checks clipped units step by step. A gradient that passes a clip is wrong.
func TestClippedStepwise(t *testing.T) {
	one, _ := openWorkers(t)
	limited := clipped(t)[1]
	p := rnn.Problem{Cell: limited, Input: 11, Hidden: 21, Layers: 2, Batch: 3, Steps: 9, Output: 4, Pass: rnn.Train, Gain: 200}
	for _, precision := range []rnn.Precision{rnn.FP32, rnn.BF16} {
		p.Cell, p.Precision = limited, precision
		data := rnn.NewData(p, 1, 2, "normal")
		for _, c := range []*cell.Cell{limited, cell.RNNReLU} {
			p.Cell = c
			dev, kinks := stepwise(t, one, p, data)
			if dev.OK() != (c == limited) {
				t.Errorf("%v: %v", p, dev)
			}
			if c == limited && (kinks.Units != 9*21*2*2 || kinks.TooMany() || precision == rnn.BF16 && kinks.Near == 0) {
				t.Errorf("%v: found %+v", p, kinks)
			}
		}
	}
}

// stepwise runs p on the inputs of data, and checks the run as one of data's problem.
func stepwise(t *testing.T, d device.Device, p rnn.Problem, data *rnn.Data) (oracle.Deviation, oracle.Kinks) {
	plan, prog := ran(t, d, "cudnnstyle", p, data)
	got, _, err := oracle.ReadDistinct(plan, prog, data)
	if err != nil {
		t.Fatal(err)
	}
	plan.Problem = data.Problem
	dev, covered, err := oracle.Stepwise{FLOPs: 1e9}.Check(plan, prog, data, got)
	if err != nil || covered.Share != 1 {
		t.Fatalf("%v: %v: %v of the values are compared", p, err, covered.Share)
	}
	return dev, covered.Kinks
}
