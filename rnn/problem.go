// Package rnn defines the problem: what a recurrent network computes, at which
// size, from which data, and where a plan keeps them. It knows no technique and no device.
// The right answer is that of package oracle.
//
// Letters are the same everywhere: T steps, B batch, H hidden, I input, G
// gates, L layers, V output classes. Matrices are row-major. Sequences lie step
// after step: row t·B+b belongs to step t of sequence b. Weights are W: G·H×I
// and R: G·H×H, as in PyTorch and cuDNN, gate after gate in the order of
// cell.Cell.Gates. With heads R is narrower: see Blocks.
package rnn

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"rnnbench/internal/nearest"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A Pass says what is computed: inference or training.
type Pass int

const (
	Forward Pass = iota // inference: outputs and states
	Train               // forward, backward through time and weight gradients
)

// Passes lists the passes by name.
func Passes() []string { return []string{"forward", "train"} }

func (p Pass) String() string { return Passes()[p] }

// A Precision is the number format of the matrix products. It is part of the problem,
// since it changes the answer.
type Precision = schedule.Precision

const (
	FP32 = schedule.FP32
	TF32 = schedule.TF32
	BF16 = schedule.BF16
	FP16 = schedule.FP16
	INT8 = schedule.INT8
)

// Precisions lists the precisions by name.
func Precisions() []string {
	return schedule.Precisions()
}

// A Problem is a stack of equal recurrent layers at one size, with an optional
// softmax output layer.
type Problem struct {
	Cell   *cell.Cell
	Input  int  // features of the first layer's input, or symbols where OneHot
	Hidden int  // units per layer
	Layers int  // stacked layers
	Batch  int  // sequences per batch
	Steps  int  // time steps per sequence
	Output int  // classes of the softmax output layer with cross-entropy loss; 0: none
	OneHot bool // the input is one symbol a step: the first product is a table look-up

	// Symbols is how many rows the embedding table has; 0: no embedding. The row of each step's
	// symbol gives the first Embedding features of Input. The others are given with the symbol.
	Symbols, Embedding int

	// Groups divides the classes of the output layer into as many equal parts, each with a softmax
	// of its own. The loss is that of the right class within its own part, as if the part were
	// known. 0 is 1.
	Groups int

	// Transcript is the largest number of labels of a sequence's transcript: see the file transcript.go. The
	// loss is then that of CTC. 0: there are no transcripts.
	Transcript int

	// Dense is the number of units of a fully connected layer in front of the output layer: see the file
	// dense.go. 0: there is none.
	Dense int

	// Conv says which convolutions lie in front of the recurrent layers: see the file convolution.go. "": none.
	Conv string

	// Heads divides the units of each layer into as many equal parts, which the recurrent product
	// does not mix: see Blocks. 0 is 1.
	Heads int

	// Projection is the width of a layer's output where one more product at each step narrows it:
	// see the file projection.go. 0: none.
	Projection int

	// Skip is how many layers a shortcut passes by: see the file skip.go. 0: there are no shortcuts.
	Skip int

	// Lookahead is how many steps a row convolution reads, the present one among them: see the file
	// lookahead.go. 0: there is none.
	Lookahead int

	// Norm is NormLayer where the products and the cell state of each step are normalised: see the
	// file norm.go. It is NormBatch where input products are, over the minibatch: see batchnorm.go. "": nothing is.
	Norm string

	// Weighted gives the loss of each step of each sequence a weight. The loss of a run is
	// then the weighted sum in place of the mean. A step of weight 0 needs no class.
	Weighted bool

	// Direction says from which end the layers read the steps.
	Direction Direction

	// Lengths says how many of the steps each sequence has. "": all.
	Lengths Lengths

	// Resets is the percentage of steps at which a sequence begins anew: see the file resets.go. 0: none.
	Resets int

	// Gain is the percentage of their usual size that recurrent weights have: see the file gain.go. 0 is 100.
	Gain int

	// History is the number of steps of the previous minibatch that training keeps. Steps new ones
	// follow, and their errors flow back through both. That is BPTT(History+Steps; Steps) of
	// Williams and Peng (1990).
	History int

	// Calls is the number of runs that one sequence takes, as on a server. Each run computes the
	// next Steps steps, from the states that the run before left on the device. 0: a run is a whole
	// sequence.
	Calls int

	// Weights is the ID of given parameters and first states; "": they are drawn.
	Weights string

	Pass      Pass
	Precision Precision
}

// Of turns a point into a problem. The error names the word or size that is wrong.
func Of(p axis.Point) (Problem, error) {
	var cells []string
	for _, c := range cell.All() {
		cells = append(cells, c.Name)
	}
	var wrong error
	word := func(kind, have string, of []string) int {
		i := slices.Index(of, have)
		if i < 0 {
			wrong = cmp.Or(wrong, fmt.Errorf("rnn: %w", nearest.Unknown(kind, have, of)))
		}
		return i
	}
	word("cell", p.Cell, cells)
	pass, precision, direction := word("pass", p.Pass, Passes()), word("precision", p.Precision, Precisions()), word("direction", p.Direction.String(), Directions())
	lengths, err := ParseLengths(p.Lengths.String())
	if err = cmp.Or(wrong, err); err != nil {
		return Problem{}, err
	}
	q := Problem{
		Cell: cell.Lookup(p.Cell), Input: p.Input, Hidden: p.Hidden, Layers: p.Layers, Batch: p.Batch, Steps: p.Steps,
		Output: p.Output, OneHot: p.OneHot, History: p.History, Calls: p.Calls,
		Symbols: p.Symbols, Embedding: p.Embedding, Groups: p.Groups, Transcript: p.Transcript, Dense: p.Dense, Conv: p.Conv, Heads: p.Heads, Weighted: p.Weighted, Pass: Pass(pass), Precision: Precision(precision),
		Direction: Direction(direction), Lengths: lengths, Projection: p.Projection, Resets: p.Resets, Gain: p.Gain, Weights: p.Weights, Skip: p.Skip, Lookahead: p.Lookahead, Norm: p.Norm,
	}
	if q.Norm == NormLayer && q.Cell.Norm() != nil {
		q.Cell = q.Cell.Norm()
	}
	return q, q.Check()
}

// MaxSymbols bounds Output, and Input where OneHot: symbols travel as float32, which holds integers
// exactly up to here.
const MaxSymbols = 1 << 24

// MaxLayers bounds Layers.
const MaxLayers = 1024

// Given is the number of values that the host supplies for each step of a sequence: features, or a
// symbol in place of all features that it stands for.
func (p Problem) Given() int {
	switch {
	case p.OneHot:
		return 1
	case p.Symbols > 0:
		return 1 + p.Input - p.Embedding
	}
	return p.Input
}

// Frames is the number of steps whose states are kept: those of the history, and the new ones.
func (p Problem) Frames() int { return p.History + p.Steps }

// Check reports the first invalid size.
func (p Problem) Check() error {
	for _, size := range []struct {
		name  string
		value int
	}{{"input", p.Input}, {"hidden", p.Hidden}, {"layers", p.Layers}, {"batch", p.Batch}, {"steps", p.Steps}} {
		if size.value < 1 {
			return fmt.Errorf("rnn: %s is %d: it must be at least 1", size.name, size.value)
		}
		if size.value > 1<<30 {
			return fmt.Errorf("rnn: %s is %d: it must be at most %d", size.name, size.value, 1<<30)
		}
	}
	switch {
	case p.Layers > MaxLayers:
		return fmt.Errorf("rnn: layers is %d: it must be at most %d", p.Layers, MaxLayers)
	case p.Cell == nil:
		return fmt.Errorf("rnn: the problem has no cell")
	case p.Output < 0 || p.Output > MaxSymbols:
		return fmt.Errorf("rnn: output is %d: it must be 0 (none) to %d", p.Output, MaxSymbols)
	case p.History < 0 || p.History > 1<<30:
		return fmt.Errorf("rnn: history is %d: it must be 0 (none) to %d", p.History, 1<<30)
	case p.Direction < 0 || int(p.Direction) >= len(Directions()):
		return fmt.Errorf("rnn: there is no direction number %d", p.Direction)
	case p.History > 0 && p.Direction != FromFirst:
		return fmt.Errorf("rnn: direction is %v, which begins at the last step, but history is %d steps before the first: set history to 0", p.Direction, p.History)
	case p.History > 0 && p.Pass != Train:
		return fmt.Errorf("rnn: history is %d steps, but only training uses history", p.History)
	case p.OneHot && p.Input > MaxSymbols:
		return fmt.Errorf("rnn: a one-hot input has at most %d symbols, not %d", MaxSymbols, p.Input)
	}
	if err := cmp.Or(p.checkCalls(), p.checkEnds(), checkTranscript(p), checkDense(p), checkConv(p), p.checkHeads(), checkLengths(p), checkProjection(p), checkSkip(p), checkLookahead(p), checkNorm(p), checkResets(p), checkGain(p)); err != nil {
		return err
	}
	if b := p.bytes(); b > 1<<50 {
		return fmt.Errorf("rnn: the problem's weights and states take about %.3g bytes: more than any machine has", b)
	}
	if f := p.flops(); f > math.MaxInt64/2 {
		return fmt.Errorf("rnn: the problem has %.3g operations: more than can be counted", f)
	}
	return nil
}

// checkEnds reports the first invalid size of the embedding and of the output layer's loss.
func (p Problem) checkEnds() error {
	switch {
	case p.Symbols < 0 || p.Symbols > MaxSymbols:
		return fmt.Errorf("rnn: symbols is %d: it must be 0 (no embedding) to %d", p.Symbols, MaxSymbols)
	case p.Symbols == 0 && p.Embedding != 0:
		return fmt.Errorf("rnn: embedding is %d features, but there are no symbols: set symbols", p.Embedding)
	case p.Symbols > 0 && (p.Embedding < 1 || p.Embedding > p.Input):
		return fmt.Errorf("rnn: embedding is %d: it must be at least 1, and at most the input, which has %d features", p.Embedding, p.Input)
	case p.Symbols > 0 && p.OneHot:
		return fmt.Errorf("rnn: a one-hot input is a table already: use either onehot or symbols")
	case p.Groups < 0 || p.Groups > max(1, p.Output) || p.Groups > 1 && p.Output%p.Groups != 0:
		return fmt.Errorf("rnn: groups is %d: it must divide the output, which has %d classes", p.Groups, p.Output)
	case p.Weighted && p.Output == 0:
		return fmt.Errorf("rnn: only the loss of an output layer has weights: set output")
	}
	return nil
}

// bytes estimates the weights and states in floating point, which does not
// overflow.
func (p Problem) bytes() float64 {
	g, h, i, l := float64(len(p.Cell.Gates)), float64(p.Hidden), float64(p.Input), float64(p.Reads())
	rows := float64(p.Frames()) * float64(p.Batch)
	window, out := float64(p.Cell.Window), float64(p.Out())
	if p.Skip > 0 {
		rows += rows * float64(p.Layers/p.Skip) * out / (l * h * (g + 2)) // outputs with what shortcuts add
	}
	if n := float64(RowConvolutions(p)); n > 0 {
		rows += n * out * (4*rows + float64(p.Lookahead)*(2+2*float64(p.Batch))) / (l * h * (g + 2)) // what they read, terms and gradients
	}
	if p.Norm == NormBatch {
		rows *= 2 // products and their gradients, normalised or not
	}
	if all, _ := Convolutions(p); all != nil {
		i = float64(convolved(p))
		for _, c := range all {
			features, _ := c.Padded()
			rows += rows * float64(6*c.Cols()+2*features*c.From) / (l * h * (g + 2)) // sums, outputs and gradients
		}
	}
	if p.Transcript > 0 {
		rows += rows * float64(schedule.CTCScratch(p.Transcript, true)) / (l * h * (g + 2)) // alignments
	}
	return 4 * (window*g*h*i + l*g*h*(window*out+float64(p.HeadUnits())) + l*(h+rows)*float64(p.Projection) + l*rows*h*(g+2) + rows*i + rows*3*float64(p.Dense) + out*float64(p.Dense) + (rows+float64(HeadInput(p)))*float64(p.Output) + float64(p.Symbols)*float64(p.Embedding))
}

// Width is the number of features that layer l reads.
func (p Problem) Width(l int) int {
	if l == 0 {
		return convolved(p)
	}
	return p.Out()
}

// FanIn is the number of input weights of one unit's gate in layer l: the layer's width for each
// step of the window.
func (p Problem) FanIn(l int) int { return p.Cell.Window * p.Width(l) }

// FLOPs is the number of operations that the problem asks for: two per weight,
// step and sequence that exist, and for training twice that again for the gradients of
// inputs and weights. Point-wise operations and look-ups are not counted, as in
// the papers. Neither are zeros between the blocks of heads, nor what a window reads
// before the first step. Of kept steps only the gradients count. Every technique is
// rated by this number, so extra work never looks like speed.
func (p Problem) FLOPs() int64 { return int64(p.flops()) }

func (p Problem) flops() float64 {
	g, h := float64(len(p.Cell.Gates)), float64(p.Hidden)
	steps := func(before int) float64 { // uses of the weights that read the input so many steps before
		n := float64(StepsBeyond(p, before))
		if p.Pass == Train {
			n += 2 * float64(StepsBeyond(p, before-p.History))
		}
		return n
	}
	var used float64 // each weight counted as often as it is used
	for l := range p.Layers {
		for k := range p.Cell.Window {
			if l > 0 || !p.OneHot {
				used += g * h * float64(p.Width(l)) * steps(k)
			}
		}
		used += float64(p.Cell.Multiplied()) * h * float64(p.HeadUnits()) * steps(0)
		used += h * float64(p.Projection) * steps(0)
	}
	head := float64(StepsBeyond(p, 0))
	if p.Pass == Train {
		head *= 3
	}
	front := convolutionFLOPs(p) * float64(StepsBeyond(p, 0))
	return front + 2*(float64(p.Ways())*used+(float64(p.Out())*float64(p.Dense)+float64(HeadInput(p))*float64(p.Output))*head)
}

// RecurrentFLOPs is the part of FLOPs for R·h in the forward pass, which DeepBench and Diamos et
// al. count.
func (p Problem) RecurrentFLOPs() int64 {
	return 2 * int64(p.Cell.Multiplied()) * int64(p.Hidden) * int64(p.HeadUnits()) * int64(p.Reads()) * StepsBeyond(p, 0)
}

// String names the problem as a test or a benchmark would.
func (p Problem) String() string {
	s := fmt.Sprintf("%v/%v/input=%d/hidden=%d/layers=%d/batch=%d/steps=%d", p.Cell, p.Pass, p.Input, p.Hidden, p.Layers, p.Batch, p.Steps)
	if p.Direction != FromFirst {
		s += "/" + p.Direction.String()
	}
	if p.Lengths != "" {
		s += fmt.Sprintf("/lengths=%v", p.Lengths)
	}
	if p.History > 0 {
		s += fmt.Sprintf("/history=%d", p.History)
	}
	if p.Calls > 0 {
		s += fmt.Sprintf("/calls=%d", p.Calls)
	}
	if p.Heads > 1 {
		s += fmt.Sprintf("/heads=%d", p.Heads)
	}
	if p.Projection > 0 {
		s += fmt.Sprintf("/projection=%d", p.Projection)
	}
	if p.Skip > 0 {
		s += fmt.Sprintf("/skip=%d", p.Skip)
	}
	if p.Lookahead > 0 {
		s += fmt.Sprintf("/lookahead=%d", p.Lookahead)
	}
	if p.Norm != "" {
		s += "/norm=" + p.Norm
	}
	if p.Resets > 0 {
		s += fmt.Sprintf("/resets=%d%%", p.Resets)
	}
	if p.Gain > 0 {
		s += fmt.Sprintf("/gain=%d%%", p.Gain)
	}
	if p.OneHot {
		s += "/onehot"
	}
	if p.Symbols > 0 {
		s += fmt.Sprintf("/embedding=%dx%d", p.Symbols, p.Embedding)
	}
	if p.Output > 0 {
		s += fmt.Sprintf("/output=%d", p.Output)
	}
	if p.Groups > 1 {
		s += fmt.Sprintf("/groups=%d", p.Groups)
	}
	if p.Transcript > 0 {
		s += fmt.Sprintf("/transcript=%d", p.Transcript)
	}
	if p.Conv != "" {
		s += "/conv=" + p.Conv
	}
	if p.Dense > 0 {
		s += fmt.Sprintf("/dense=%d", p.Dense)
	}
	if p.Weighted {
		s += "/weighted"
	}
	if p.Weights != "" {
		s += "/weights=" + p.Weights
	}
	if p.Precision != FP32 {
		s += "/" + p.Precision.String()
	}
	return s
}
