// Package persistent runs each layer as one operation over many time steps and
// keeps the recurrent weights on chip. Every worker keeps the weights of a band of
// units in its private memory, and a barrier ends each time step. One product
// computes the inputs of a block of steps before the block runs. The backward pass
// mirrors this, and the weight gradients follow as one product per matrix. A projection
// is folded into the recurrent weights. Layers run one after another, or as a wave:
// while a layer runs a block of steps, the layer above runs the previous block. In a
// wave, input products run ahead on their own streams.
//
// A cell without recurrent products has no such weights. Its units read no state but their own, so
// all steps of a layer are one serial scan, which keeps states in registers and never waits for
// others.
//
// Reference: Diamos, Sengupta, Catanzaro, Chrzanowski, Coates, Elsen, Engel,
// Hannun, Satheesh. Persistent RNNs: Stashing Recurrent Weights On-Chip. ICML
// 2016, section 3.
package persistent

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Technique is the persistent technique.
type Technique struct{}

func (Technique) Name() string { return "persistent" }
func (Technique) Doc() string {
	return "recurrent weights kept on chip across time steps (Diamos 2016)"
}

// Knobs implements rnn.Technique.
func (Technique) Knobs(p rnn.Problem) []knob.Knob { return knobs(p, false) }

// LaunchedKnobs implements rnn.Launcher: both ways of a layer run side by side. This is as safe as
// one after the other (docs/notebook/persistent.md, Safe). If a GPU cannot hold both, one waits
// until the other is done.
func (Technique) LaunchedKnobs(p rnn.Problem) []knob.Knob { return rnn.LaunchedSizes(knobs(p, true)) }

func knobs(p rnn.Problem, launched bool) []knob.Knob {
	packed := []int{2, 1} // weights of inference do not change between passes
	if p.Pass == rnn.Train {
		packed = []int{1, 2}
	}
	return append([]knob.Knob{
		{Name: "inputbatch", Doc: "time steps per block of one input product and one persistent operation; 0: all, or as many as fit input products of 2 GiB; in a wave, a length that balances block starts against the delay between layers", Values: blocks(p.Steps), Max: p.Steps},
		{Name: "transposed", Doc: "transpose weights in each pass (1) or once before all passes (2)", Values: packed},
		{Name: "streams", Doc: "streams, half of them for input products, on which layers run as a wave of blocks, and heads and both ways side by side; 1: one layer, head and way after another; more than two for each stay idle", Values: streams(p, launched), Min: 1, Max: maxStreams},
	}, rnn.SizesKnob(p, 16, 4, 1, 0)...)
}

// blocks returns the values of inputbatch to try: all steps (0), and lengths that divide a sequence
// into few blocks or many.
func blocks(steps int) []int {
	v := []int{0}
	for n := 16; n < steps && n <= 256; n *= 4 {
		v = append(v, n)
	}
	if steps > 1 && len(v) == 1 {
		v = append(v, (steps+1)/2)
	}
	return v
}

const maxStreams = 64

// waves returns the numbers of streams to try: one in all, two for every other layer or head, two
// for each.
func waves(layers int) []int {
	return slices.Compact([]int{1, min(2*((layers+1)/2), maxStreams), min(2*layers, maxStreams)})
}

// startSteps is roughly the time to start a block, in steps: a device reads the weights again. On an
// H200 it is 2 steps for large batches and 10 for one sequence.
const startSteps = 6

// streams returns the values of streams to try for p, the default first.
func streams(p rnn.Problem, launched bool) []int {
	layers, ways := p.Layers, p.Ways()
	if ways > 1 {
		layers = 1 // each layer ends where both ways meet
	}
	all := waves(layers * max(1, p.Heads))
	if ways > 1 {
		for i := range all {
			all[i] = min(ways*all[i], maxStreams)
		}
		all = slices.Compact(slices.Insert(all, 0, 1))
	}
	switch {
	case p.Heads > 1: // heads side by side: they never wait for each other
		slices.Reverse(all)
	case ways > 1 && launched:
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// waveBlock returns the fastest number of steps a block. With blocks of b steps, a wave starts
// T/b blocks and takes T + (L-1)·b steps: each layer begins a block after the one below. A single
// layer is one block: only the products after its gradient can overlap.
func waveBlock(steps, layers int) int {
	if layers == 1 {
		return steps
	}
	b := int(math.Ceil(math.Sqrt(float64(startSteps*steps) / float64(layers-1))))
	return min(b, steps)
}

// NormalisesBatch implements rnn.BatchNormaliser.
func (Technique) NormalisesBatch() {}

// Plan implements rnn.Technique.
func (Technique) Plan(p *rnn.Plan, k knob.Params) error {
	if p.Cell.Window > 1 {
		return fmt.Errorf("%w: %v reads %d time steps of its input, and a persistent layer reads one", schedule.ErrCell, p.Cell, p.Cell.Window)
	}
	if p.Cell.Inner > 0 {
		return fmt.Errorf("%w: %v has recurrent products that wait for others of the same step, and a persistent layer has one product a step", schedule.ErrCell, p.Cell)
	}
	if err := declineFolded(p.Problem); err != nil {
		return err
	}
	n := &network{Plan: p, block: k["inputbatch"]}
	switch {
	case p.Norm == rnn.NormBatch:
		if n.block > 0 && n.block < p.Steps {
			return fmt.Errorf("%w: norm=%s takes the input products of all steps at once: set inputbatch to 0", schedule.ErrKnob, p.Norm)
		}
		n.block = p.Steps
	case n.block > 0:
	case p.Streams() > 1:
		n.block = min(waveBlock(p.Steps, p.Layers), fitting(n))
	default:
		n.block = fitting(n)
	}
	if p.Projection > 0 {
		n.firstStep = 1
	}
	n.parts = p.Batches.Runs(n.firstStep, p.Steps-n.firstStep, n.block)
	for l := range p.Layers {
		n.layers = append(n.layers, n.layout(l))
	}
	n.pack(k["transposed"] == 2)
	n.wave(n.forward)
	if p.Head != nil {
		p.OutputLayer(p.Layers - 1)
	}
	if p.Pass == rnn.Train {
		p.Cut()
		for _, y := range n.layers {
			y.back.Start()
		}
		top := p.Layers - 1
		n.layers[top].folded.receive(n.products(top), 0, p.Steps)
		n.wave(func(depth, block int) { n.backward(p.Layers-1-depth, n.blocks()-1-block) })
		n.weightGradients()
	}
	return nil
}

type network struct {
	*rnn.Plan
	block     int       // steps per input product, at most
	firstStep int       // the first step of the first block
	parts     []rnn.Run // the blocks
	layers    []layer
}

// most limits the input products of a block, in bytes, unless the knob is set. A product of so many
// rows runs at full speed, and starting a block takes a small part of its time.
const most = 2 << 30

// fitting returns the longest block whose input products fit most, with all blocks about equally
// long.
func fitting(n *network) int {
	at := max(1, most/(4*n.Batch*len(n.Cell.Gates)*n.Hidden))
	blocks := (n.Steps + at - 1) / at
	return (n.Steps + blocks - 1) / blocks
}

// stream returns the stream on which a head of layer l runs.
func (n *network) stream(l, head int) int { return (l*n.heads() + head) % ((n.Streams() + 1) / 2) }

// products returns the stream of layer l's input products and weight gradients.
func (n *network) products(l int) int {
	of := (n.Streams() + 1) / 2
	if n.Streams() == 1 {
		return 0
	}
	return of + l%(n.Streams()-of)
}

// A layer holds what one layer needs beyond the plan's own matrices.
type layer struct {
	x  *schedule.Matrix // input products of a block, or of two in turn if they run ahead, block·B × G·H each
	w  *schedule.Matrix // Wᵀ packed, width × G·H; nil where one-hot
	r  []schedule.View  // Rᵀ packed, by head, then gate, H × H each; H counts a head's units
	wb *schedule.Matrix // when training: W packed, G·H × width; nil where one-hot
	rb []schedule.View  // and R, recurrent gates·H × H for each head

	own           rnn.Layer // parameters, ordered by head
	params, grads []copied  // copies into own, and back from its gradients

	folded *folded // the folded projection; nil without one

	back *rnn.LayerBack
}

func (n *network) layout(l int) layer {
	y, h, train := n.Plan.Layer[l], n.Hidden/n.heads(), n.Pass == rnn.Train
	gh := len(n.Cell.Gates) * n.Hidden
	name := func(s string) string { return fmt.Sprintf("%s%d", s, l) }
	ahead := 1
	if n.Streams() > 1 && n.blocks() > 1 {
		ahead = 2
	}
	out := layer{x: n.Scratch(name("x·W"), ahead*n.block*n.Batch, len(n.Cell.Gates)*n.Hidden)}
	out.own, out.params, out.grads = n.ordered(l)
	out.folded, out.own = fold(n, l, out.own)
	if !oneHot(n, l) {
		out.w = n.Packed(y.W.Name+"ᵀ", n.Width(l), gh)
	}
	for i := range n.heads() * n.Cell.Recurrent {
		out.r = append(out.r, n.Packed(out.own.R.Band(i*h, h).String()+"ᵀ", h, h).All())
	}
	if train {
		if !oneHot(n, l) {
			out.wb = n.Packed(y.W.Name, gh, n.Width(l))
		}
		if n.Cell.Recurrent > 0 {
			for k := range n.heads() {
				out.rb = append(out.rb, n.Packed(n.weightsOf(out.own.R, k).String(), n.Cell.Recurrent*h, h).All())
			}
		}
		out.back = n.Back(l, n.products(l), n.stream(l, 0))
		out.back.ByHead = n.Heads > 1
	}
	return out
}

func oneHot(n *network, l int) bool { return l == 0 && n.OneHot }

// weightsOf views head k's rows of the recurrent weights r.
func (n *network) weightsOf(r *schedule.Matrix, k int) schedule.View {
	rows := r.Rows / n.heads()
	return r.Band(k*rows, rows)
}

// pack packs the weights in each pass or, with ahead, once before all passes.
func (n *network) pack(ahead bool) {
	for l, y := range n.layers {
		do := func(stream int, op schedule.Op) {
			if ahead {
				n.Prepare(op)
			} else {
				n.Do(stream, op)
			}
		}
		for _, c := range y.params {
			for _, op := range n.copies(c, false) {
				do(n.products(l), op)
			}
		}
		for _, op := range y.folded.packs() {
			do(n.stream(l, 0), op)
		}
		if y.w != nil {
			do(n.products(l), schedule.Pack{Src: y.own.W.All(), Dst: y.w.All(), Trans: true})
		}
		for i, r := range y.r {
			do(n.stream(l, i/n.Cell.Recurrent), schedule.Pack{Src: y.own.R.Band(i*r.Rows, r.Rows), Dst: r, Trans: true})
		}
		if y.wb != nil {
			do(n.products(l), schedule.Pack{Src: y.own.W.All(), Dst: y.wb.All()})
		}
		for k, r := range y.rb {
			do(n.stream(l, k), schedule.Pack{Src: n.weightsOf(y.own.R, k), Dst: r})
		}
	}
}

// blocks is the number of blocks of steps.
func (n *network) blocks() int { return len(n.parts) }

// wave calls visit for every block of every layer: layer after layer, or in the order of a diagonal
// wave. depth and block count from where the pass begins.
func (n *network) wave(visit func(depth, block int)) {
	blocks, shift := n.blocks(), n.blocks()
	if n.Streams() > 1 {
		shift = 1
	}
	for w := range blocks + (n.Layers-1)*shift {
		for d := range n.Layers {
			if b := w - d*shift; b >= 0 && b < blocks {
				visit(d, b)
			}
		}
	}
}

// steps returns the first step of a block and the number of its steps.
func (n *network) steps(block int) (t, steps int) {
	return n.parts[block].T, n.parts[block].N
}

// span is steps, but the first block includes a first step that runs on its own.
func (n *network) span(block int) (t, steps int) {
	t, steps = n.steps(block)
	if block == 0 {
		return 0, t + steps
	}
	return t, steps
}

// input computes the products of layer l's inputs at steps [t, t+steps).
func (n *network) input(l, t, steps int, x schedule.View) {
	y, in := n.layers[l], n.InputOf(l, t, steps)
	if oneHot(n, l) {
		n.Do(n.products(l), schedule.Gather{Index: in, Table: y.own.W.All(), Out: x})
	} else {
		n.Do(n.products(l), schedule.Gemm{A: in, B: y.w.All(), C: x})
	}
}

// forward runs a block of layer l.
func (n *network) forward(l, block int) {
	y := n.layers[l]
	if block == 0 && n.firstStep > 0 {
		y.folded.first()
	}
	t, steps := n.steps(block)
	slot := n.block * n.Batch
	x := y.x.Band(block%(y.x.Rows/slot)*slot, n.Batches.Rows(t, steps))
	n.input(l, t, steps, x)
	for _, op := range n.Layer[l].BatchNorm.Input(x) {
		n.Do(n.products(l), op)
	}
	for k := range n.heads() {
		s := n.sequence(l, t, steps, x, k)
		if n.Cell.Recurrent == 0 {
			n.Do(n.stream(l, k), schedule.Scan{Sequence: s, Serial: true})
			continue
		}
		n.Do(n.stream(l, k), schedule.Persistent{Sequence: s, R: y.r[k*n.Cell.Recurrent:][:n.Cell.Recurrent]})
	}
	if y.folded != nil {
		t, steps := n.span(block)
		y.folded.project(t, steps)
	}
}

// above returns the gradient of layer l's output.
func (n *network) above(l int) *schedule.Matrix {
	if l < n.Layers-1 {
		return n.layers[l+1].back.Below
	}
	return n.Top()
}

// gradientOf views the gradients that steps [t, t+steps) of layer l read and write.
func (n *network) gradientOf(l, t, steps int) schedule.SequenceGrad {
	y, from := n.layers[l], n.above(l)
	if y.folded != nil {
		from = y.folded.du
	}
	var dr schedule.View
	if y.back.DR != nil {
		dr = n.Rows(y.back.DR, t, steps)
	}
	return n.SequenceBack(l, t, n.Rows(from, t, steps), n.Rows(y.back.DX, t, steps), dr, rnn.Maybe(y.back.DPeep))
}

// backward runs the gradient of a block of layer l, then that of its input.
func (n *network) backward(l, block int) {
	y := n.layers[l]
	t, steps := n.steps(block)
	grad := n.gradientOf(l, t, steps)
	for k := range n.heads() {
		s, g := n.sequence(l, t, steps, schedule.View{}, k), n.gradient(grad, k)
		if n.Cell.Recurrent == 0 {
			n.Do(n.stream(l, k), schedule.ScanBackward{Sequence: s, SequenceGrad: g, Serial: true})
			continue
		}
		n.Do(n.stream(l, k), schedule.PersistentBackward{Sequence: s, SequenceGrad: g, R: y.rb[k]})
	}
	if block == 0 && n.firstStep > 0 {
		y.folded.firstBack()
	}
	for _, op := range n.Layer[l].BatchNorm.InputBack(y.back.DX.All()) {
		n.Do(n.products(l), op)
	}
	if t, steps = n.span(block); y.wb != nil {
		n.Do(n.products(l), schedule.Gemm{A: y.back.Input(t, steps), B: y.wb.All(), C: n.Rows(y.back.Below, t, steps)})
	}
	if l > 0 {
		n.layers[l-1].folded.receive(n.products(l), t, steps)
	}
}

// weightGradients sums the gradients of all weights after back-propagation.
func (n *network) weightGradients() {
	for l := n.Layers - 1; l >= 0; l-- {
		if n.Heads > 1 {
			n.headGradients(l)
			continue
		}
		b := n.layers[l].back
		b.Project(n.above(l).All())
		b.Weights(0, n.Steps, true)
		b.Peeps()
	}
	if n.Head != nil {
		n.OutputGradient(n.Layers - 1)
	}
}
