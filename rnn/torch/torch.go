// Package torch writes a network's data and an answer as PyTorch would hold
// them: arrays in the names and layouts of torch.nn.RNN, GRU and LSTM, in
// NumPy's .npz format, so that anyone can check an answer without this program.
// scripts/check-pytorch.py does. The package computes nothing and does not know
// whether an answer is right.
//
// Letters are those of package rnn; P is the number of peepholes, or of values of a projection. Inputs are
// float32 and answers float64, as rnn holds them: a device's float32 loses
// nothing and the reference keeps its digits. Symbols and classes are int64.
// Every sequence of the batch is written out, copies included.
//
//	meta             scalar     JSON: the problem and the Source
//	input            T × B × I  features; where one-hot in its place:
//	symbols          T × B      of 0 to I-1
//	                            With an embedding, of 0 to S-1; embedding, S × E, has the first E features
//	                            and input, T × B × (I-E), the others
//	weight_ih_l0     G·H × I    G·H × H from the second layer on; where a cell has a
//	                            window, columns for the step, then for the step before
//	weight_hh_l0     G·H × H    gates in the order of meta's gates: r, z, n and i, f, g, o;
//	                            with heads, G·H × H/heads: the blocks of a block-diagonal matrix
//	weight_hr_l0     P × H      the projection, if there is one. P then takes the place of H in output,
//	                            h_0, h_n, h_l0, weight_hh_l0 and weight_ih of the layers above
//	bias_ih_l0       G·H
//	bias_hh_l0       G·H        5·H in an LSTM with meta's norm layer: the last H are added to the normalised c'
//	gain_ih_l0       G·H        with meta's norm: factors of the normalised input products
//	gain_hh_l0       G·H        with the norm layer, those of the recurrent products, and in an LSTM H of c' behind them
//	weight_ahead_l0  C × H      with meta's lookahead C: output[t] = Σ_j weight_ahead[j] ∘ h[t+j], behind a module's last layer
//	weight_conv0     C × S × F × K  with convolutions, their channels C, steps S and features F, of K channels of input.
//	                            meta's strides are those over features. conv0 = min(max(Σ weight_conv0 · input + bias_conv0, 0), 20),
//	                            T × B × features × C, at ⌊(S-1)/2⌋ steps before each one and as many features on both sides,
//	                            the odd one behind. A convolution has no gradient of the input
//	bias_conv0       C
//	h_0, c_0         L × B × H  states before the first step
//	output           T × B × H  state h of the last layer; with meta's skip or lookahead, and what shortcuts add and row convolutions give
//	h_n, c_n         L × B × H  states after the last step
//	grad_output      T × B × H  given; without output layer
//
// Where layers run both ways, arrays are as in PyTorch. Names of the way from the last step end in
// _reverse. output is T × B × 2·H, layers above the first read as much, and h_0 and its like are
// 2·L × B × H. Steps of all arrays are in their order. h_n of a layer that reads from the last step
// is its state after the first one. meta's direction says which layers do; without it, none does.
//
// Where sequences have lengths of their own, meta lists them. Past the ends answers are 0, as from
// pad_packed_sequence, and targets -1. Inputs have values there that nothing depends on. h_n is
// after each sequence's own last step.
//
// grad_input, grad_weight_ih_l0 and so on, grad_h_0 and grad_c_0 are gradients. They are those of
// the sum of output times grad_output or, with output layer, of the mean loss. Where loss_weight,
// T × B, is there, they are those of the sum of loss times loss_weight. A row of weight 0 has the
// target -1. With groups, the loss and prob are of each group's classes alone. PyTorch's modules
// have no names for these:
//
//	h_l0, c_l0       T × B × H  states of a layer after each step
//	unprojected_l0   T × B × H  what weight_hr_l0 projects to h_l0
//	peephole_l0      P × H      in the order of meta's peepholes
//	weight_dense     N × H      with meta's dense N, a fully connected layer: dense = min(max(weight_dense · output + bias_dense, 0), 20)
//	bias_dense       N
//	dense            T × B × N  its output, which the output layer reads
//	weight_out       V × H      output layer: logits = weight_out · output + bias_out; V × N with dense
//	bias_out         V
//	target           T × B      classes, 0 to V-1
//	loss             T × B      cross-entropy of each step of each sequence
//	prob             T × B × V  softmax of the logits; without training
//
// With meta's transcript N, target and the losses of steps give way to these. Gradients are those of the mean
// loss. prob is 1 for the blank behind a sequence's end.
//
//	transcript        B × N      labels from 1 on, then zeros; class 0 is the blank
//	transcript_labels B          their number
//	transcript_steps  B          steps of the sequence
//	loss              B          as torch.nn.functional.ctc_loss gives it
package torch

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
)

// Format names the version of the names and layouts above.
const Format = "rnnbench.torch/1"

// A Source says where data and answer come from. It is copied to meta.
type Source struct {
	Technique    string      `json:"technique"` // "reference" for that of oracle.Reference
	Knobs        knob.Params `json:"knobs,omitempty"`
	Device       string      `json:"device,omitempty"`
	DeviceKnobs  knob.Params `json:"device_knobs,omitempty"`
	Seed         uint64      `json:"seed"`
	Distribution string      `json:"distribution"`
}

// Export writes Arrays as an .npz file.
func Export(w io.Writer, d *rnn.Data, answer []oracle.Tensor, from Source) error {
	arrays, err := Arrays(d, answer, from)
	if err != nil {
		return err
	}
	return WriteNPZ(w, arrays)
}

// Arrays lays out d and an answer for it, from oracle.Read or oracle.Reference.
func Arrays(d *rnn.Data, answer []oracle.Tensor, from Source) ([]Array, error) {
	if n := d.Problem.History; n > 0 {
		return nil, fmt.Errorf("torch: PyTorch's layers keep no steps of a previous minibatch, but history is %d", n)
	}
	if n := d.Problem.Resets; n > 0 {
		return nil, fmt.Errorf("torch: PyTorch's layers begin no sequence anew within a run, but resets are %d%%: set resets to none", n)
	}
	l := layout{Data: d, p: d.Problem, answer: make(map[string]oracle.Tensor)}
	for _, t := range answer {
		l.answer[t.Name] = t
	}
	l.meta(from)
	l.parameters()
	l.convolutions()
	l.states()
	if l.p.Pass == rnn.Train {
		l.gradients()
	}
	if l.p.Output > 0 {
		l.head()
	}
	for _, name := range slices.Sorted(maps.Keys(l.answer)) {
		l.fail("the answer has %s, which is not part of the problem", name)
	}
	return l.arrays, l.err
}

// layout collects arrays, and keeps the first error.
type layout struct {
	*rnn.Data
	p      rnn.Problem
	answer map[string]oracle.Tensor // tensors that are not laid out yet
	arrays []Array
	err    error
}

func (l *layout) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("torch: "+format, args...)
	}
}

func (l *layout) add(name string, values any, shape ...int) {
	l.arrays = append(l.arrays, Array{name, shape, values})
}

// given returns an input whose rows are steps × batch.
func (l *layout) given(name string, cols int) []float32 {
	return rnn.Repeat(l.Get(name), cols, l.Distinct, l.p.Batch)
}

// take removes a tensor, rows × cols, from the answer and returns it. If the answer has none of
// that shape, it returns zeros.
func (l *layout) take(name string, rows, cols int) []float64 {
	t, ok := l.answer[name]
	delete(l.answer, name)
	if !ok {
		l.fail("the answer has no %s", name)
		return make([]float64, rows*cols)
	}
	values := t.Values
	if t.PerSequence && t.Rows*l.p.Batch == rows*l.Distinct && len(values) == t.Rows*cols {
		values = rnn.Repeat(values, cols, l.Distinct, l.p.Batch)
	}
	if t.Cols != cols || len(values) != rows*cols {
		l.fail("the answer's %s is %d×%d and holds %d values, not %d×%d", name, t.Rows, t.Cols, len(t.Values), rows, cols)
		return make([]float64, rows*cols)
	}
	return values
}

func (l *layout) meta(from Source) {
	c, p, direction := l.p.Cell, l.p, ""
	if p.Direction != rnn.FromFirst {
		direction = p.Direction.String()
	}
	text, err := json.Marshal(struct {
		Format    string   `json:"format"`
		Cell      string   `json:"cell"`
		Gates     []string `json:"gates"`
		States    []string `json:"states"`
		Peepholes []string `json:"peepholes,omitempty"`
		Input     int      `json:"input"`
		Hidden    int      `json:"hidden"`
		Layers    int      `json:"layers"`
		Batch     int      `json:"batch"`
		Distinct  int      `json:"distinct"`
		Steps     int      `json:"steps"`
		Output    int      `json:"output"`
		OneHot    bool     `json:"onehot"`
		Symbols   int      `json:"symbols,omitempty"`
		Embedding int      `json:"embedding,omitempty"`
		Groups    int      `json:"groups,omitempty"`
		Heads     int      `json:"heads,omitempty"`
		Direction string   `json:"direction,omitempty"` // where it is not forward
		Lengths   []int    `json:"lengths,omitempty"`   // where not all sequences have all steps
		Pass      string   `json:"pass"`
		Precision string   `json:"precision"`
		Source

		Projection int    `json:"projection,omitempty"`
		Norm       string `json:"norm,omitempty"`
		Skip       int    `json:"skip,omitempty"`
		Lookahead  int    `json:"lookahead,omitempty"`
		Dense      int    `json:"dense,omitempty"`
		Transcript int    `json:"transcript,omitempty"`
		Strides    []int  `json:"strides,omitempty"` // of the convolutions, over features
	}{
		Format, c.Name, c.Gates, c.States, c.Peeps, p.Input, p.Hidden, p.Layers, p.Batch, l.Distinct, p.Steps,
		p.Output, p.OneHot, p.Symbols, p.Embedding, p.Groups, p.Heads, direction, rnn.SequenceLengths(p), p.Pass.String(), p.Precision.String(), from, p.Projection, p.Norm, p.Skip, p.Lookahead, p.Dense, p.Transcript, strides(p),
	})
	if err != nil {
		l.fail("%w", err)
	}
	l.add("meta", string(text))
}

func (l *layout) parameters() {
	p := l.p
	h, gh, rh, mh := p.Hidden, len(p.Cell.Gates)*p.Hidden, p.Cell.Recurrent*p.Hidden, p.Cell.Multiplied()*p.Hidden
	switch {
	case p.OneHot:
		l.add("symbols", integers(l.given("x", 1)), p.Steps, p.Batch)
	case p.Symbols > 0:
		l.embedding()
	default:
		l.add("input", l.given("x", p.Input), p.Steps, p.Batch, p.Input)
	}
	for i := range p.Reads() {
		n, name := i/p.Ways(), func(s string) string { return p.Named(s, i) }
		w := l.Get(name("weight_ih"))
		if n == 0 && p.OneHot {
			w = transposed(w, p.FanIn(n), gh)
		}
		l.add(name("weight_ih"), w, gh, p.FanIn(n))
		if rh > 0 {
			l.add(name("weight_hh"), l.Get(name("weight_hh")), mh, p.HeadUnits())
		}
		l.add(name("bias_ih"), l.Get(name("bias_ih")), gh)
		if rh > 0 {
			l.add(name("bias_hh"), l.Get(name("bias_hh")), rh)
		}
		if k := len(p.Cell.Peeps); k > 0 {
			l.add(name("peephole"), l.Get(name("peephole")), k, h)
		}
		if p.Projection > 0 {
			l.add(name("weight_hr"), l.Get(name("weight_hr")), p.Projection, h)
		}
		if p.Norm != "" {
			l.add(name("gain_ih"), l.Get(name("gain_ih")), gh)
			if p.Norm == rnn.NormLayer {
				l.add(name("gain_hh"), l.Get(name("gain_hh")), rh)
			}
		}
		if rnn.LooksAhead(p, i) {
			l.add(name("weight_ahead"), l.Get(name("weight_ahead")), p.Lookahead, p.Out())
		}
	}
}

// embedding adds the table, its symbols, and the features beside them if there are any.
func (l *layout) embedding() {
	p := l.p
	x, wide := l.given("x", p.Given()), p.Given()
	var symbols, features []float32
	for ; len(x) > 0; x = x[wide:] {
		symbols, features = append(symbols, x[0]), append(features, x[1:wide]...)
	}
	l.add("symbols", integers(symbols), p.Steps, p.Batch)
	if wide > 1 {
		l.add("input", features, p.Steps, p.Batch, wide-1)
	}
	l.add("embedding", l.Get("embedding"), p.Symbols, p.Embedding)
}

func (l *layout) states() {
	t, b, layers := l.p.Steps, l.p.Batch, l.p.Reads()
	for i, s := range l.p.Cell.States {
		h := rnn.StateWidth(l.p, i)
		var first []float32
		var last []float64
		for n := range layers {
			first = append(first, l.given(l.p.Named(s+"0", n), h)...)
			name := l.p.Named(s, n)
			steps := t - l.answer[name].First - l.answer[name].Later
			v := l.take(name, steps*b, h)
			if steps < t { // the answer has only the end of the sequence that is read last
				end := steps - 1
				if l.p.Backwards(n) {
					end = 0
				}
				last = append(last, v[end*b*h:(end+1)*b*h]...)
				continue
			}
			for j, end := range l.ends(n) {
				at := (end*b + j) * h
				last = append(last, v[at:at+h]...)
			}
			l.add(name, v, t, b, h)
			if i == 0 && n == layers-1 && !rnn.Joins(l.p) {
				l.add("output", v, t, b, h)
			}
		}
		l.add(s+"_0", first, layers, b, h)
		l.add(s+"_n", last, layers, b, h)
	}
	for n := range layers {
		if name := l.p.Named("unprojected", n); l.p.Projection > 0 {
			l.add(name, l.take(name, t*b, l.p.Hidden), t, b, l.p.Hidden)
		}
	}
	if rnn.Joins(l.p) {
		l.add("output", l.take("y", t*b, l.p.Out()), t, b, l.p.Out())
	}
}

// ends returns, for each sequence, the step that number i of Reads reads last.
func (l *layout) ends(i int) []int {
	lengths, out := rnn.SequenceLengths(l.p), make([]int, l.p.Batch)
	for j := range out {
		switch {
		case l.p.Backwards(i):
		case lengths != nil:
			out[j] = lengths[j] - 1
		default:
			out[j] = l.p.Steps - 1
		}
	}
	return out
}

func (l *layout) gradients() {
	p := l.p
	b, h, gh, rh, mh := p.Batch, p.Hidden, len(p.Cell.Gates)*p.Hidden, p.Cell.Recurrent*p.Hidden, p.Cell.Multiplied()*p.Hidden
	if p.Output == 0 {
		l.add("grad_output", l.given("dy", p.Out()), p.Steps, b, p.Out())
	}
	if p.Symbols > 0 {
		l.add("grad_embedding", l.take("grad_embedding", p.Symbols, p.Embedding), p.Symbols, p.Embedding)
	}
	if !p.OneHot && p.Conv == "" {
		l.add("grad_input", l.take("dx", p.Steps*b, p.Input), p.Steps, b, p.Input)
	}
	for i := range p.Reads() {
		n, name := i/p.Ways(), func(s string) string { return p.Named("grad_"+s, i) }
		if n == 0 && p.OneHot {
			l.add(name("weight_ih"), transposed(l.take(name("weight_ih"), p.FanIn(n), gh), p.FanIn(n), gh), gh, p.FanIn(n))
		} else {
			l.add(name("weight_ih"), l.take(name("weight_ih"), gh, p.FanIn(n)), gh, p.FanIn(n))
		}
		if rh > 0 {
			l.add(name("weight_hh"), l.take(name("weight_hh"), mh, p.HeadUnits()), mh, p.HeadUnits())
		}
		l.add(name("bias_ih"), l.take(name("bias_ih"), 1, gh), gh)
		if rh > 0 {
			l.add(name("bias_hh"), l.take(name("bias_hh"), 1, rh), rh)
		}
		if k := len(p.Cell.Peeps); k > 0 {
			l.add(name("peephole"), l.take(name("peephole"), 1, k*h), k, h)
		}
		if p.Projection > 0 {
			l.add(name("weight_hr"), l.take(name("weight_hr"), p.Projection, h), p.Projection, h)
		}
		if p.Norm != "" {
			l.add(name("gain_ih"), l.take(name("gain_ih"), 1, gh), gh)
			if p.Norm == rnn.NormLayer {
				l.add(name("gain_hh"), l.take(name("gain_hh"), 1, rh), rh)
			}
		}
		if rnn.LooksAhead(p, i) {
			l.add(name("weight_ahead"), l.take(name("weight_ahead"), p.Lookahead, p.Out()), p.Lookahead, p.Out())
		}
	}
	for i, s := range p.Cell.States {
		h := rnn.StateWidth(p, i)
		var v []float64
		for n := range p.Reads() {
			v = append(v, l.take(p.Named("grad_"+s+"0", n), b, h)...)
		}
		l.add("grad_"+s+"_0", v, p.Reads(), b, h)
	}
}

func (l *layout) head() {
	t, b, v, h, n := l.p.Steps, l.p.Batch, l.p.Output, rnn.HeadInput(l.p), l.p.Dense
	if n > 0 {
		l.add("weight_dense", l.Get("weight_dense"), n, l.p.Out())
		l.add("bias_dense", l.Get("bias_dense"), n)
		l.add("dense", l.take("dense", t*b, n), t, b, n)
	}
	l.add("weight_out", l.Get("weight_out"), v, h)
	l.add("bias_out", l.Get("bias_out"), v)
	l.losses()
	if l.p.Pass != rnn.Train {
		l.add("prob", l.take("prob", t*b, v), t, b, v)
		return
	}
	if n > 0 {
		l.add("grad_weight_dense", l.take("grad_weight_dense", n, l.p.Out()), n, l.p.Out())
		l.add("grad_bias_dense", l.take("grad_bias_dense", 1, n), n)
	}
	l.add("grad_weight_out", l.take("grad_weight_out", v, h), v, h)
	l.add("grad_bias_out", l.take("grad_bias_out", 1, v), v)
}

// losses adds the targets and their losses: of steps or, with transcripts, of sequences.
func (l *layout) losses() {
	t, b := l.p.Steps, l.p.Batch
	if n := l.p.Transcript; n > 0 {
		var steps, counts, labels []int64
		for row := range slices.Chunk(l.given("target", 1+n), 1+n) {
			end, spelled := rnn.Transcript(row)
			steps, counts, labels = append(steps, int64(end)), append(counts, int64(len(spelled))), append(labels, integers(row[1:])...)
		}
		l.add("transcript_steps", steps, b)
		l.add("transcript_labels", counts, b)
		l.add("transcript", labels, b, n)
		l.add("loss", l.take("loss", b, 1), b)
		return
	}
	target := integers(l.given("target", 1))
	lengths := rnn.SequenceLengths(l.p)
	for row := range target {
		if lengths != nil && row/b >= lengths[row%b] {
			target[row] = -1
		}
	}
	l.add("target", target, t, b)
	if l.p.Weighted {
		l.add("loss_weight", l.given("loss_weight", 1), t, b)
	}
	l.add("loss", l.take("loss", t*b, 1), t, b)
}

// convolutions adds those in front of the layers, what they give, and their gradients.
func (l *layout) convolutions() {
	all, err := rnn.Convolutions(l.p)
	if err != nil {
		l.fail("%w", err)
	}
	for i, c := range all {
		name := func(s string) string { return fmt.Sprintf("%sconv%d", s, i) }
		l.add(name("weight_"), l.Get(name("weight_")), c.Channels, c.Steps, c.Features, c.From)
		l.add(name("bias_"), l.Get(name("bias_")), c.Channels)
		l.add(name(""), l.take(name(""), l.p.Steps*l.p.Batch, c.Cols()), l.p.Steps, l.p.Batch, c.Wide, c.Channels)
		if l.p.Pass == rnn.Train {
			l.add(name("grad_weight_"), l.take(name("grad_weight_"), c.Channels, c.Steps*c.Taps()), c.Channels, c.Steps, c.Features, c.From)
			l.add(name("grad_bias_"), l.take(name("grad_bias_"), 1, c.Channels), c.Channels)
		}
	}
}

// strides are those of the convolutions of p over features; nil: there are none.
func strides(p rnn.Problem) (list []int) {
	all, _ := rnn.Convolutions(p) // convolutions tells an error
	for _, c := range all {
		list = append(list, c.Stride)
	}
	return list
}

func transposed[F float32 | float64](v []F, rows, cols int) []F {
	out := make([]F, len(v))
	for r := range rows {
		for c := range cols {
			out[c*rows+r] = v[r*cols+c]
		}
	}
	return out
}

func integers(v []float32) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}
