// Package cudnnstyle runs an RNN with the six optimizations of cuDNN 5. Each is a knob that can be
// set alone:
//
//   - grouped: the products of all gates as one
//   - streams: input and recurrent products on streams of their own
//   - fused: one fused cell per step
//   - transposed: weights transposed ahead
//   - inputbatch: the input products of several steps as one
//   - overlap: layers overlapped in a diagonal wave
//
// Another knob, weightgrad, computes weight gradients as one product per matrix after the
// propagation.
//
// Reference: Appleyard, Kočiský, Blunsom. Optimizing Performance of Recurrent Neural Networks on
// GPUs. 2016. arXiv:1604.01946, sections 2.1 to 2.6.
package cudnnstyle

import (
	"fmt"
	"slices"

	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Technique is the cuDNN-style technique.
type Technique struct{}

func (Technique) Name() string { return "cudnnstyle" }
func (Technique) Doc() string {
	return "grouped, streamed, fused, pre-transposed, batched, overlapped (Appleyard 2016)"
}

// Knobs implements rnn.Technique.
func (Technique) Knobs(p rnn.Problem) []knob.Knob {
	packed := []int{1, 0, 2}
	if p.Calls > 0 || p.Precision == rnn.INT8 { // weights do not change between calls; rounding them takes longer than a pass
		packed = []int{2, 1, 0}
	}
	knobs := []knob.Knob{
		{Name: "grouped", Doc: "one product for all gates (1) or one per gate (0) (2.1)", Values: []int{1, 0}},
		{Name: "streams", Doc: "streams: separate input products from recurrent ones (2.2.1), and overlapped layers from each other; streams beyond two per layer, or beyond two without overlap, stay idle", Values: []int{2, 1, 4, 8}, Min: 1, Max: 64},
		{Name: "fused", Doc: "one operation per cell (1) or one per point-wise operation (0) (2.2.2)", Values: []int{1, 0}},
		{Name: "transposed", Doc: "transpose weights in each pass (1), once before all passes (2) or never (0) (2.3)", Values: packed},
		{Name: "inputbatch", Doc: "time steps per input product; 0: all (2.3); the default on a GPU is all, or as many as fit 2 GiB", Values: inputBatches(p.Steps), Min: 0, Max: p.Steps},
		{Name: "overlap", Doc: "overlap layers in a diagonal wave (1) or run them one after another (0) (2.4)", Values: []int{1, 0}},
	}
	if p.Pass == rnn.Train {
		knobs = append(knobs, knob.Knob{Name: "weightgrad", Doc: "weight gradients in one product after back-propagation (0) or one per time step (1) (2.6)", Values: []int{0, 1}})
	}
	if p.Norm == rnn.NormBatch { // it takes the products of all steps
		setDefault(knob.Find(knobs, "inputbatch"), 0)
	}
	return append(knobs, rnn.SizesKnob(p, 0, 8, 1)...)
}

// Normalises implements rnn.Normaliser.
func (Technique) Normalises() {}

// NormalisesBatch implements rnn.BatchNormaliser.
func (Technique) NormalisesBatch() {}

// most limits the input products of all layers on a GPU, in bytes, unless the knob is set.
const most = 2 << 30

// LaunchedKnobs implements rnn.Launcher: one product computes the inputs of all steps, if memory
// allows. Products of more rows run nearer the peak. Running them beside a layer's steps gains
// nothing where either fills the GPU. On an H100, it took 0.75 to 0.92 of the time of two steps a
// product, with layers of 512 to 2,304 units and 16 to 512 sequences. Calls run on one stream:
// waiting for another takes longer than the overlap gains.
func (t Technique) LaunchedKnobs(p rnn.Problem) []knob.Knob {
	knobs := t.Knobs(p)
	k := knob.Find(knobs, "inputbatch")
	first, step := 0, 4*p.Layers*p.Batch*p.Hidden*len(p.Cell.Gates)
	if p.Steps > most/step && p.Norm != rnn.NormBatch {
		first = max(1, most/(blocks*step))
	}
	setDefault(k, first)
	if p.Calls > 0 {
		setDefault(knob.Find(knobs, "streams"), 1)
	}
	return knobs
}

// setDefault makes v the first value of k, which is the default.
func setDefault(k *knob.Knob, v int) {
	k.Values = append([]int{v}, slices.DeleteFunc(k.Values, func(w int) bool { return w == v })...)
}

// inputBatches returns the values of inputbatch to try: 2 first, as in Table 1, then all steps (0),
// 1, and powers of two below the number of steps, up to 64.
func inputBatches(steps int) []int {
	var v []int
	if steps > 2 {
		v = append(v, 2)
	}
	v = append(v, 0)
	if steps > 1 {
		v = append(v, 1)
	}
	for n := 4; n < steps && n <= 64; n *= 2 {
		v = append(v, n)
	}
	return v
}

// Plan implements rnn.Technique.
func (Technique) Plan(p *rnn.Plan, k knob.Params) error {
	if err := p.Room(p.Layers * p.Steps); err != nil {
		return err
	}
	n := &network{
		Plan: p, grouped: k["grouped"] == 1, fused: k["fused"] == 1, overlap: k["overlap"] == 1,
		perStep: k["weightgrad"] == 1, block: k["inputbatch"],
	}
	if n.block == 0 {
		n.block = p.Steps
	}
	if p.Norm == rnn.NormBatch && (n.block < p.Steps || n.perStep) {
		return fmt.Errorf("%w: norm=%s takes the input products of all steps at once: set inputbatch and weightgrad to 0", schedule.ErrKnob, p.Norm)
	}
	for l := range p.Layers {
		n.layers = append(n.layers, n.layout(l))
	}
	n.pack(k["transposed"])
	n.wave(n.forward)
	if p.Head != nil {
		n.OutputLayer(n.inputStream(p.Layers - 1))
	}
	if p.Pass == rnn.Train {
		p.Cut()
		for _, y := range n.layers {
			y.back.Start()
		}
		if j := p.Layer[p.Layers-1].Projection; j != nil {
			n.Do(n.recurrentStream(p.Layers-1), j.Receive(0, p.Steps, n.Top().All()))
		}
		n.wave(n.backward)
		n.weightGradients()
	}
	return nil
}

type network struct {
	*rnn.Plan
	grouped, fused, overlap, perStep bool

	block  int // steps per input product
	layers []layer
}

// wave calls visit for every step of every layer: layer after layer, or with overlap in Appleyard's
// diagonal order, in which each layer is a block of steps behind the one before it. depth and step
// count from where the pass begins.
func (n *network) wave(visit func(depth, step int)) {
	if !n.overlap {
		for d := range n.Layers {
			for s := range n.Steps {
				visit(d, s)
			}
		}
		return
	}
	for w := range n.Steps + (n.Layers-1)*n.block {
		for d := range n.Layers {
			if s := w - d*n.block; s >= 0 && s < n.Steps {
				visit(d, s)
			}
		}
	}
}

// inputStream returns the stream of layer l's input products. Each layer has a pair of streams, as
// in Listing 4; without overlap all layers share one pair.
func (n *network) inputStream(l int) int {
	if !n.overlap {
		return 0
	}
	return 2 * l
}

func (n *network) recurrentStream(l int) int { return n.inputStream(l) + 1 }

// forward runs step t of layer l.
func (n *network) forward(l, t int) {
	y, norm := &n.layers[l], n.Layer[l].Norm
	if t%n.block == 0 {
		steps := min(n.block, n.Steps-t)
		x := y.pre(n, t, steps)
		out := norm.InputProduct(x, t, steps)
		if l == 0 && n.OneHot {
			n.Do(n.inputStream(l), schedule.Gather{Index: n.InputOf(l, t, steps), Table: n.Layer[l].W.All(), Out: out})
		} else {
			for _, tap := range n.Taps(l, t, steps) {
				n.product(n.inputStream(l), tap.In, y.w[tap.K], tap.Of(out), tap.K > 0)
			}
		}
		if norm != nil {
			n.Do(n.inputStream(l), norm.Input(x, t, steps))
		}
		for _, op := range n.Layer[l].BatchNorm.Input(x) {
			n.Do(n.inputStream(l), op)
		}
	}
	rec := n.Batches.Last(rnn.Maybe(y.rec), t)
	step, through := n.Step(l, t, y.pre(n, t, 1), rec), schedule.View{}
	if y.restart != nil {
		y.restart.Step(&step, n.recurrentStream(l), l, t)
		through = step.Prev[n.Cell.Through]
	} else if y.rec != nil {
		through = n.Through(l, t, 1)
	}
	if y.rec != nil {
		n.product(n.recurrentStream(l), through, y.r, norm.RecurrentProduct(rec, t), false)
	}
	if norm != nil {
		n.Do(n.recurrentStream(l), norm.Recurrent(rec, t))
	}
	for i, half := range n.Layer[l].Inner.Halves(step, t) {
		switch {
		case i > 0 && n.Cell.Normalised:
			n.Do(n.recurrentStream(l), norm.Inner(rec, t))
		case i > 0:
			n.product(n.recurrentStream(l), n.Layer[l].Inner.Value(t, 1), y.i, rec, false)
		}
		if n.fused {
			n.Do(n.recurrentStream(l), half)
			continue
		}
		for _, m := range half.Maps(n.Batches.Last(y.temp.All(), t)) {
			n.Do(n.recurrentStream(l), m)
		}
	}
	if j := n.Layer[l].Projection; j != nil {
		op := j.Out(t, 1)
		n.product(n.recurrentStream(l), op.A, y.p, op.C, false)
	}
}
