package rnn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"rnnbench/internal/parallel"
	"rnnbench/rnn/schedule"
)

// Distributions lists the distributions that inputs can be drawn from. Values matter for speed on
// machines whose clock depends on power.
func Distributions() []string { return []string{"normal", "uniform", "zeros"} }

// Data is one network's parameters and inputs, by name. Names follow PyTorch:
// weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, with ours added:
// peephole_l0, weight_hr_l0, gain_ih_l0, gain_hh_l0, weight_ahead_l0, embedding, weight_conv0, bias_conv0, weight_dense, bias_dense, weight_out, bias_out, x, dy, target, loss_weight, h0_l0, c0_l0.
type Data struct {
	Problem Problem

	// Distinct is the number of different sequences: sequence b is a copy of sequence b mod
	// Distinct. So the reference takes no longer for a large batch than for a small one, and every
	// row can still be checked.
	Distinct int

	Tensors []Tensor

	lengths []int // of the sequences; nil: all have all steps
	steps   int64 // total of all sequences, where they have lengths

	memo *memo // what follows from the values; nil: it is not kept
}

type Tensor struct {
	Name        string
	Rows, Cols  int
	PerSequence bool // rows belong to steps × distinct sequences
	Values      []float32
}

// part is the number of values that one generator draws. Parts are drawn side by side.
const part = 1 << 16

// NewData draws reproducible parameters and inputs for p: weights and biases uniform in ±1/√H as
// PyTorch draws them, inputs and gradients from the named distribution. An embedding is normal, as
// PyTorch draws it. Recurrent weights have the problem's gain. Weights that the problem names take their places. distinct is limited to the batch; where sequences have lengths of their own, it
// is the whole batch. Past their ends there are values too, which nothing may depend on.
func NewData(p Problem, seed uint64, distinct int, distribution string) *Data {
	d := DataFor(p, Distinct(p, distinct))
	w := &drawer{data: d, seed: seed}
	normal := each(func(rng *rand.Rand) float32 { return float32(rng.NormFloat64()) })
	input := normal
	switch distribution {
	case "uniform":
		input = uniform(1)
	case "zeros":
		input = func(*rand.PCG, []float32) {}
	}
	symbol := func(n int) filler {
		return each(func(rng *rand.Rand) float32 { return float32(rng.IntN(n)) })
	}
	weight := uniform(float32(1 / math.Sqrt(float64(p.Hidden))))
	rows, fresh := p.Frames()*d.Distinct, p.Steps*d.Distinct
	switch {
	case p.OneHot:
		w.draw("x", rows, 1, true, symbol(p.Input))
	case p.Symbols > 0:
		w.draw("x", rows, p.Given(), true, input)
		w.draw("embedding", p.Symbols, p.Embedding, false, normal)
		d.drawSymbols(seed)
	default:
		w.draw("x", rows, p.Input, true, input)
	}
	if p.Resets > 0 {
		d.Tensors = append(d.Tensors, Tensor{resetName, fresh, 1, true, drawResets(p, seed, d.Distinct)})
	}
	all, _ := Convolutions(p)
	for i, c := range all {
		taps := uniform(float32(1 / math.Sqrt(float64(c.Steps*c.Taps()))))
		w.draw(fmt.Sprintf("weight_conv%d", i), c.Channels, c.Steps*c.Taps(), false, taps)
		w.draw(fmt.Sprintf("bias_conv%d", i), 1, c.Channels, false, taps)
	}
	for i := range p.Reads() {
		w.layer(i, weight)
	}
	if p.Output > 0 {
		if p.Dense > 0 {
			w.draw("weight_dense", p.Dense, p.Out(), false, weight)
			w.draw("bias_dense", 1, p.Dense, false, weight)
		}
		w.draw("weight_out", p.Output, HeadInput(p), false, weight)
		w.draw("bias_out", 1, p.Output, false, weight)
		if p.Transcript > 0 {
			d.Tensors = append(d.Tensors, Tensor{"target", d.Distinct, 1 + p.Transcript, true, drawTranscripts(p, seed, d.Distinct)})
		} else {
			w.draw("target", fresh, 1, true, symbol(p.Output))
		}
		if p.Weighted {
			w.draw("loss_weight", fresh, 1, true, each(func(rng *rand.Rand) float32 { return float32(rng.IntN(4)) }))
			d.scaleLossWeights()
		}
	} else if p.Pass == Train {
		w.draw("dy", fresh, p.Out(), true, input)
	}
	d.adopt()
	return d
}

// A drawer adds tensors to data, one after the other.
type drawer struct {
	data   *Data
	seed   uint64
	stream uint64 // of the generators of the latest tensor
}

// draw adds a tensor. Each has generators of its own, so that none depends on the others' sizes.
func (w *drawer) draw(name string, rows, cols int, perSequence bool, fill filler) {
	w.stream++
	v := make([]float32, rows*cols)
	parallel.For((len(v)+part-1)/part, func(i int) {
		fill(rand.NewPCG(w.seed, w.stream+uint64(i)<<32), v[i*part:min((i+1)*part, len(v))])
	})
	w.data.Tensors = append(w.data.Tensors, Tensor{name, rows, cols, perSequence, v})
}

// layer adds the parameters and the initial states of layer i of Problem.Reads.
func (w *drawer) layer(i int, weight filler) {
	p := w.data.Problem
	l, h, gh, rh := i/p.Ways(), p.Hidden, len(p.Cell.Gates)*p.Hidden, p.Cell.Recurrent*p.Hidden
	name := func(s string) string { return p.Named(s, i) }
	if l == 0 && p.OneHot {
		w.draw(name("weight_ih"), p.FanIn(l), gh, false, weight)
	} else {
		w.draw(name("weight_ih"), gh, p.FanIn(l), false, weight)
	}
	if mh := p.Cell.Multiplied() * h; mh > 0 {
		w.draw(name("weight_hh"), mh, p.HeadUnits(), false, weight)
	}
	w.draw(name("bias_ih"), 1, gh, false, weight)
	if rh > 0 {
		w.draw(name("bias_hh"), 1, rh, false, weight)
	}
	if n := len(p.Cell.Peeps); n > 0 {
		w.draw(name("peephole"), 1, n*h, false, weight)
	}
	if p.Projection > 0 {
		w.draw(name("weight_hr"), p.Projection, h, false, weight)
	}
	if p.Norm != "" {
		gain := each(func(rng *rand.Rand) float32 { return 0.25 + rng.Float32()/2 }) // so small that a step forgets errors
		w.draw(name("gain_ih"), 1, gh, false, gain)
		if p.Norm == NormLayer {
			w.draw(name("gain_hh"), 1, rh, false, gain)
		}
	}
	if LooksAhead(p, l) && i == l {
		w.draw(name("weight_ahead"), p.Lookahead, p.Out(), false, uniform(float32(1/math.Sqrt(float64(p.Lookahead)))))
	}
	w.data.scaleRecurrent(i)
	for k, s := range p.Cell.States {
		start := each(func(rng *rand.Rand) float32 { return float32(p.Cell.Start(k, float64(rng.Float32()-0.5))) })
		w.draw(name(s+"0"), w.data.Distinct, StateWidth(p, k), true, start)
	}
}

// drawSymbols writes the symbols beside the features of x.
func (d *Data) drawSymbols(seed uint64) {
	x, rng := d.Get("x"), rand.New(rand.NewPCG(seed, 1<<63))
	for i := 0; i < len(x); i += d.Problem.Given() {
		x[i] = float32(rng.IntN(d.Problem.Symbols))
	}
}

// scaleLossWeights scales the weights of the loss so that they add up to 1. At least the last row
// counts. A row of weight 0 gets no class.
func (d *Data) scaleLossWeights() {
	weight, target := d.Get("loss_weight"), d.Get("target")
	last := len(weight) - 1 // it exists: the longest sequence comes last
	for row := range weight {
		if !d.Exists(row) {
			weight[row] = 0
		}
	}
	weight[last] = max(weight[last], 1)
	sum := 0.0
	for row, w := range weight {
		sum += float64(w) * d.Copies(row%d.Distinct)
	}
	for row, w := range weight {
		if w == 0 {
			target[row] = -1
		}
		weight[row] = float32(float64(w) / sum)
	}
}

// A filler draws values, all from one generator.
type filler func(*rand.PCG, []float32)

func each(value func(*rand.Rand) float32) filler {
	return func(g *rand.PCG, v []float32) {
		rng := rand.New(g)
		for i := range v {
			v[i] = value(rng)
		}
	}
}

// uniform draws from ±bound the values that (*rand.Rand).Float32 would, several times as fast:
// large networks have hundreds of millions of weights.
func uniform(bound float32) filler {
	return func(g *rand.PCG, v []float32) {
		for i := range v {
			v[i] = bound * (2*(float32(int64(g.Uint64()<<8>>40))/(1<<24)) - 1)
		}
	}
}

// Cut returns d for p, which differs from d's problem at most in having fewer steps: the first
// steps, with the same parameters.
func (d *Data) Cut(p Problem) *Data {
	out := DataFor(p, d.Distinct)
	for _, t := range d.Tensors {
		if steps := t.Rows / d.Distinct; t.PerSequence && steps > 1 {
			// dy and target are of new steps alone.
			if t.Rows = p.Frames() * d.Distinct; steps == d.Problem.Steps {
				t.Rows = p.Steps * d.Distinct
			}
			t.Values = t.Values[:t.Rows*t.Cols]
		}
		if t.Name == "target" && p.Transcript > 0 {
			t.Values = FitTranscripts(t.Values, t.Cols, p.Steps)
		}
		out.Tensors = append(out.Tensors, t)
	}
	return out
}

// Off returns d with every value larger or smaller by a part of itself, except symbols, classes and resets.
func (d *Data) Off(part float32, seed uint64) *Data {
	out := DataFor(d.Problem, d.Distinct)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, t := range d.Tensors {
		if t.Name != "target" && t.Name != resetName && (t.Name != "x" || !d.Problem.OneHot) {
			t.Values = slices.Clone(t.Values)
			for i, v := range t.Values {
				if t.Name == "x" && d.Problem.Symbols > 0 && i%t.Cols == 0 {
					continue
				}
				t.Values[i] = v + part*v*float32(2*rng.IntN(2)-1)
			}
		}
		out.Tensors = append(out.Tensors, t)
	}
	return out
}

// Get returns the values of a tensor. Rows of sequences are steps × Distinct.
func (d *Data) Get(name string) []float32 {
	for _, t := range d.Tensors {
		if t.Name == name {
			return t.Values
		}
	}
	panic(fmt.Sprintf("rnn: there is no input %q", name))
}

// A memo keeps what was computed of data.
type memo struct {
	sync.Mutex
	made map[any]any // by key
}

// Once is make(d), computed at the first call for the key and kept with d. So d must not change
// afterwards.
func Once[T any](d *Data, key any, make func(d *Data) T) T {
	if d.memo == nil {
		return make(d)
	}
	d.memo.Lock()
	defer d.memo.Unlock()
	if d.memo.made[key] == nil {
		d.memo.made[key] = make(d)
	}
	return d.memo.made[key].(T)
}

// distinctOf is the number of different sequences that p gets if distinct are asked for.
func Distinct(p Problem, distinct int) int {
	if p.Lengths != "" || p.Norm == NormBatch && Kinked(p) {
		return p.Batch
	}
	return min(max(distinct, 1), p.Batch)
}

// dataOf is data for p, without tensors.
func DataFor(p Problem, distinct int) *Data {
	return &Data{Problem: p, Distinct: distinct, lengths: SequenceLengths(p), steps: StepsBeyond(p, 0), memo: &memo{made: map[any]any{}}}
}

// exists reports whether the sequence of a row, of steps × distinct sequences, has its step.
func (d *Data) Exists(row int) bool {
	return d.lengths == nil || row/d.Distinct < d.lengths[row%d.Distinct]
}

// copies is how many sequences of the batch equal distinct sequence j.
func (d *Data) Copies(j int) float64 {
	return float64((d.Problem.Batch - j + d.Distinct - 1) / d.Distinct)
}

// Repeat spreads rows of steps × distinct sequences over steps × batch. Values without steps count
// as one step.
func Repeat[F float32 | float64](values []F, cols, distinct, batch int) []F {
	if distinct == batch {
		return values
	}
	steps := len(values) / (cols * distinct)
	out := make([]F, steps*batch*cols)
	parallel.For(steps, func(t int) {
		for b := range batch {
			from := (t*distinct + b%distinct) * cols
			copy(out[(t*batch+b)*cols:], values[from:from+cols])
		}
	})
	return out
}

// Memory is the part of a device's program that moves matrices.
type Memory interface {
	// Write copies src to the first elements of m, and Read copies the first elements of m to dst.
	// The slice's length is a whole number of rows.
	Write(m *schedule.Matrix, src []float32) error
	Read(m *schedule.Matrix, dst []float32) error
}

// Write copies d to the plan's matrices. Where only the first rows of a matrix are an input, as in
// states with the initial one in front, it writes only those.
func (p *Plan) Write(mem Memory, d *Data) error {
	if err := WriteConstants(p, mem); err != nil {
		return err
	}
	place := p.inputs()
	parts := map[*schedule.Matrix][]float32{} // first rows of matrices of which tensors are bands
	var order []*schedule.Matrix
	for _, t := range d.Tensors {
		t = p.turn.turned(t)
		values := t.Values
		if t.PerSequence {
			values = Repeat(values, t.Cols, d.Distinct, p.Batch)
		}
		if t.Name == resetName {
			if err := writeResets(p, mem, values); err != nil {
				return err
			}
			continue
		}
		if t.Name == "target" && p.Transcript > 0 {
			padding := make([]float32, p.Head.Padding.Rows)
			FillPadding(padding, values, t.Cols)
			if err := mem.Write(p.Head.Padding, padding); err != nil {
				return err
			}
		}
		v := place[t.Name]
		switch {
		case !t.PerSequence:
		case len(values) == p.Batch*t.Cols:
			values = p.Batches.reorder(values, t.Cols)
		case v.Rows == p.Batches.Before(p.Steps):
			values = p.Batches.pack(values, t.Cols)
		}
		if v == v.M.All() {
			if err := mem.Write(v.M, values); err != nil {
				return err
			}
			continue
		}
		if parts[v.M] == nil {
			order = append(order, v.M)
		}
		from, to := v.Row*v.M.Cols, v.Row*v.M.Cols+len(values)
		if more := to - len(parts[v.M]); more > 0 {
			parts[v.M] = append(parts[v.M], make([]float32, more)...)
		}
		copy(parts[v.M][from:to], values)
	}
	for _, m := range order {
		if err := mem.Write(m, parts[m]); err != nil {
			return err
		}
	}
	return nil
}

// Inputs maps the name of each input tensor to the matrix that it is written to.
func (p *Matrices) Inputs() map[string]*schedule.Matrix {
	out := map[string]*schedule.Matrix{}
	for name, v := range p.inputs() {
		out[name] = v.M
	}
	return out
}

// inputs lists where each input goes: to bands of whole rows.
func (p *Matrices) inputs() map[string]schedule.View {
	in := map[string]schedule.View{"x": p.Given.All(), "dy": Maybe(p.DY)}
	if p.Embed != nil {
		in["embedding"] = p.Embed.Table.All()
	}
	for i, y := range p.Convolutions {
		in[fmt.Sprintf("weight_conv%d", i)], in[fmt.Sprintf("bias_conv%d", i)] = y.W.All(), y.B.All()
	}
	for l, layer := range p.Layer {
		name := func(s string) string { return p.Named(s, l) }
		in[name("weight_ih")], in[name("weight_hh")] = layer.W.All(), Maybe(layer.R)
		in[name("bias_ih")], in[name("bias_hh")] = layer.BX.All(), Maybe(layer.BR)
		in[name("peephole")] = Maybe(layer.Peep)
		if j := layer.Projection; j != nil {
			in[name("weight_hr")] = j.W.All()
		}
		if m := layer.Norm; m != nil {
			in[name("gain_ih")], in[name("gain_hh")] = m.X.All(), m.R.All()
		}
		if m := layer.BatchNorm; m != nil {
			in[name("gain_ih")] = m.Gain.All()
		}
		if m := layer.Ahead; m != nil {
			in[name("weight_ahead")] = m.W.All()
		}
		for i, s := range p.Cell.States {
			in[name(s+"0")] = p.shows(l, i).before
		}
	}
	if p.Head != nil {
		in["weight_out"], in["bias_out"], in["target"] = p.Head.W.All(), p.Head.B.All(), p.Head.Target.All()
		if d := p.Head.Dense; d != nil {
			in["weight_dense"], in["bias_dense"] = d.W.All(), d.B.All()
		}
		in["loss_weight"] = Maybe(p.Head.Weight)
	}
	return in
}

// ClearStates sets the states before the first step to 0.
func (d *Data) ClearStates() {
	for _, t := range d.Tensors {
		if t.PerSequence && d.isFirstState(t.Name) {
			clear(t.Values)
		}
	}
}

// isFirstState reports whether a tensor is a state before the first step.
func (d *Data) isFirstState(name string) bool {
	return slices.ContainsFunc(d.Problem.Cell.States, func(s string) bool { return strings.HasPrefix(name, s+"0_l") })
}

// classAt is the right class of a row, and the weight of its loss in that of the run. A row of
// weight 0 has class -1. So has the loss of a sequence with a transcript.
func (d *Data) Class(row int) (class int, weight float64) {
	if d.Problem.Transcript > 0 {
		return -1, 1 / float64(d.Problem.Batch)
	}
	if !d.Exists(row) {
		return -1, 0
	}
	weight = 1 / float64(d.Problem.Steps*d.Problem.Batch)
	if d.lengths != nil {
		weight = 1 / float64(d.steps)
	}
	if d.Problem.Weighted {
		weight = float64(d.Get("loss_weight")[row])
	}
	if weight == 0 {
		return -1, 0
	}
	return int(d.Get("target")[row]), weight
}
