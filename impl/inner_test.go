package impl_test

import (
	"errors"
	"slices"
	"testing"

	"rnnbench/cells"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// TestInnerDeclines: techniques with one recurrent product a step decline cells with inner gates, and
// the others take them. None takes a projection.
func TestInnerDeclines(t *testing.T) {
	for _, c := range cells.Inners() {
		p := rnn.Problem{Cell: c, Pass: rnn.Train, Input: 3, Hidden: 4, Layers: 2, Batch: 2, Steps: 3}
		for _, tech := range slices.Concat(impl.Direct(), impl.Vendors()) {
			_, _, err := rnn.Layout(tech, p, nil)
			switch tech.Name() {
			case "naive", "cudnnstyle", "scc":
				if err != nil {
					t.Errorf("%s: %v: %v", tech.Name(), c, err)
				}
			default:
				if !errors.Is(err, schedule.ErrCell) {
					t.Errorf("%s: %v: %v", tech.Name(), c, err)
				}
			}
			narrow := p
			narrow.Projection = 2
			if _, _, err := rnn.Layout(tech, narrow, nil); !errors.Is(err, schedule.ErrProjection) {
				t.Errorf("%s: %v with a projection: %v", tech.Name(), c, err)
			}
		}
	}
}

// TestInnerCounts: the products of a step and its gradient are as many operations as the problem asks
// for, whether a gate's product waits for another or not.
func TestInnerCounts(t *testing.T) {
	for _, c := range cells.Inners() {
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			p := rnn.Problem{Cell: c, Pass: pass, Input: 3, Hidden: 4, Layers: 2, Batch: 2, Steps: 5, Output: 3}
			for _, name := range []string{"naive", "cudnnstyle", "scc"} {
				_, s, err := rnn.Layout(impl.Lookup(name), p, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, k := range s.Summarize().Kinds {
					if k.Name == "gemm" && k.FLOPs != p.FLOPs() {
						t.Errorf("%s: %v: products take %d operations, want %d", name, p, k.FLOPs, p.FLOPs())
					}
				}
			}
		}
	}
}

// TestEmulatedInner runs cells with inner gates on the emulated CUDA device.
func TestEmulatedInner(t *testing.T) {
	d := emulated(t)
	for i, name := range []string{"naive", "cudnnstyle", "scc"} {
		var ps []rnn.Problem
		for j, precision := range []rnn.Precision{rnn.FP32, rnn.BF16} {
			p := rnn.Problem{Cell: cells.Inners()[(i+2*j)%4], Pass: rnn.Train, Input: 5, Hidden: 17, Layers: 2, Batch: 3, Steps: 4, Output: 3, Precision: precision}
			ps = append(ps, p)
		}
		ps = append(ps, ps[0])
		ps[2].Pass = rnn.Forward
		t.Run(name, func(t *testing.T) { impltest.Run(t, d, impl.Lookup(name), ps) })
	}
}
