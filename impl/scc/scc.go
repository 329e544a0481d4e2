// Package scc runs an RNN as the generalized network of Hwang and Sung. The
// layers of its graph that form a loop, a strongly connected component, run step
// after step. Everything else runs over all steps at once (intra), including the
// products into and out of the loops. Without intra every layer runs step after
// step, which is the paper's baseline. Sequences of the batch run together
// either way.
//
// Reference: Hwang, Sung. Single stream parallelization of generalized LSTM-like
// RNNs on a GPU. ICASSP 2015. arXiv:1503.02852, section 3.
package scc

import (
	"fmt"

	"rnnbench/rnn"
	"rnnbench/rnn/graph"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Technique is the technique of strongly connected components.
type Technique struct{}

func (Technique) Name() string { return "scc" }
func (Technique) Doc() string {
	return "loops of the network graph step by step, everything else over all time steps at once (Hwang & Sung 2015)"
}

// Knobs implements rnn.Technique.
func (Technique) Knobs(p rnn.Problem) []knob.Knob {
	packed := []int{1, 0, 2}
	if p.Calls > 0 { // weights do not change between calls
		packed = []int{2, 1, 0}
	}
	return append([]knob.Knob{
		{Name: "intra", Doc: "run layers outside loops over all time steps at once (1) or step by step (0) (3.1)", Values: []int{1, 0}},
		{Name: "fused", Doc: "fuse consecutive point-wise operations (1) or run each separately (0)", Values: []int{1, 0}},
		{Name: "transposed", Doc: "transpose weights in each pass (1), once before all passes (2) or never (0)", Values: packed},
	}, rnn.SizesKnob(p, 0, 8, 1)...)
}

// KeepsHistory implements rnn.Keeper.
func (Technique) KeepsHistory() {}

// Plan implements rnn.Technique.
func (Technique) Plan(p *rnn.Plan, k knob.Params) error {
	if p.Heads > 1 {
		return fmt.Errorf("%w: connections of a graph are full or diagonal, not in blocks: set heads to none", schedule.ErrHeads)
	}
	if p.Resets > 0 {
		return fmt.Errorf("%w: graphs carry their states through all steps, but resets are %d%%: set resets to none", schedule.ErrResets, p.Resets)
	}
	if p.Projection > 0 {
		return fmt.Errorf("%w: a graph has one product between its layers, and no projection of a loop's outputs: set projection to none", schedule.ErrProjection)
	}
	g, err := graph.New(graph.Stack{
		Cell: p.Cell, Layers: p.Layers, Input: p.Input, Hidden: p.Hidden, Output: p.Output, Symbols: p.OneHot,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", schedule.ErrCell, err)
	}
	size := graph.Size{Batch: p.Batch, History: p.History, Steps: p.Steps, Train: p.Pass == rnn.Train}
	f := frames{batch: p.Batch}
	if p.Lengths != "" {
		f.ragged = &p.Batches
	}
	n, err := layOut(p.Builder, stack{p, p.Inputs(), p.Results()}, g, size, f, k, p.Continues)
	if err != nil || !p.Continues {
		return err
	}
	for k, l := range n.Layers {
		if l.Activation != graph.Softmax { // only new steps have it
			p.Keep(n.y[k].m, n.y[k].lead)
		}
	}
	return nil
}

// stack is the memory of a plan.
type stack struct {
	plan            *rnn.Plan
	inputs, results map[string]*schedule.Matrix
}

func (s stack) Input(name string) *schedule.Matrix {
	if name == "x" { // with an embedding, x is not the given input
		return s.plan.X
	}
	return s.inputs[name]
}

func (s stack) Gradient(name string) *schedule.Matrix {
	if name == "x" {
		return s.plan.DX
	}
	return s.results["grad_"+name]
}

func (s stack) Classes(graph.Layer) (prob, loss *schedule.Matrix) {
	return s.plan.Head.Prob, s.plan.Head.Loss
}

func (s stack) Loss(_ graph.Layer, t, n int) schedule.SoftmaxLoss { return s.plan.Loss(t, n) }
