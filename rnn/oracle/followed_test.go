package oracle

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// deep are networks of many layers at few samples, as checks of speech networks have them.
func deep() []rnn.Problem {
	base := rnn.Problem{Cell: cell.RNNReLU, Input: 12, Hidden: 20, Layers: 88, Skip: 4, Norm: rnn.NormBatch, Batch: 4, Steps: 3, Output: 9, Pass: rnn.Train, Precision: rnn.FP32}
	ahead, bare, gates := base, base, base
	ahead.Cell, ahead.Layers, ahead.Lookahead, ahead.Transcript = clippedAt(20), 72, 3, 2
	bare.Layers, bare.Skip = 48, 0
	gates.Cell, gates.Skip, gates.Batch = cell.GRU, 0, 3
	return []rnn.Problem{base, ahead, bare, gates}
}

// followed is the reference that a deep network is judged by.
func followed(d *rnn.Data, answer []Tensor) []Tensor {
	r := newReference(d)
	follow(r, answer)
	want, _ := near(r, answer)
	return want
}

// TestDeepNetworks: right answers of deep normalised networks are beyond Tolerance of the reference, and right layer
// by layer. No tolerance is larger than that of the reference.
func TestDeepNetworks(t *testing.T) {
	for _, p := range deep() {
		d := rnn.NewData(p, 5, p.Batch, "normal")
		got := own(d, honestly)
		beside, _ := ReferenceNear(d, got)
		if whole, err := Compare(p, got, beside); err != nil || whole.OK() {
			t.Errorf("%v: rounding is not amplified: %v, %v", p, whole, err)
		}
		dev, found, err := CompareAgain(d, got)
		if err != nil || !dev.OK() || found.TooMany() {
			t.Errorf("%v: %v, %+v, %v", p, dev, found, err)
		}
		for i, w := range followed(d, got) {
			is, was := w.tolerance(p, 0), beside[i].tolerance(p, 0)
			if state := strings.HasPrefix(w.Name, "h_l"); is > was || was > Tolerance(p, w.Gradient, 0) || state && is > was/4 {
				t.Errorf("%v: %s has a tolerance of %v, and had %v", p, w.Name, is, was)
			}
		}
	}
}

// TestDeepNetworksInPart: a run that shows one layer at its last step alone is judged by the whole network, as before.
func TestDeepNetworksInPart(t *testing.T) {
	p := deep()[0]
	d := rnn.NewData(p, 5, p.Batch, "normal")
	got := own(d, honestly)
	part := &got[slices.IndexFunc(got, func(t Tensor) bool { return t.Name == "h_l30" })]
	part.First, part.Rows, part.Values = p.Steps-1, p.Batch, part.Values[(p.Steps-1)*p.Batch*p.Hidden:]
	if dev, found, err := CompareAgain(d, got); err != nil || dev.OK() {
		t.Errorf("%v: %v, %+v, %v", p, dev, found, err)
	}
}

// TestFaultsInDeepNetworks: a fault in one layer of many is found.
func TestFaultsInDeepNetworks(t *testing.T) {
	for i, p := range deep() {
		layers := []int{0, 1, p.Layers / 2, p.Layers - 1}
		if testing.Short() {
			layers = layers[2+i%2 : 3+i%2]
		}
		for _, l := range layers {
			faultsIn(t, rnn.NewData(p, 5, p.Batch, "normal"), l)
		}
	}
}

// faultsIn has layer l of an answer be wrong in one way after another: a parameter in the forward pass, the gate of a
// unit, the outputs that the answer shows, and gradients.
func faultsIn(t *testing.T, d *rnn.Data, l int) {
	p := d.Problem
	right := own(d, honestly)
	fails := func(what string, got []Tensor) {
		if dev, kinks, err := CompareAgain(d, got); err != nil || dev.OK() {
			t.Errorf("%v: layer %d passes with %s: %v, %+v, %v", p, l, what, dev, kinks, err)
		}
	}
	for _, name := range []string{"weight_ih", "weight_hh", "gain_ih", "bias_ih"} {
		fails("a value of "+name+" off by a hundredth", own(largestOff(d, p.Named(name, l), 0.01), honestly))
	}
	if p.Cell.Rectifier() {
		fails("a closed gate", own(d, func(r *reference) {
			sidesAt(r, l, r)
			r.layers[l].closeLargest(r)
		}))
	}
	for _, name := range []string{"h", "grad_weight_ih", "grad_weight_hh", "grad_gain_ih", "grad_bias_hh"} {
		fails(name+" off by little more than its tolerance", tensorOff(d, right, p.Named(name, l)))
	}
	if p.Skip > 0 && p.Lookahead == 0 {
		wide := p
		wide.Skip *= 2
		other := rnn.DataFor(wide, d.Distinct)
		other.Tensors = d.Tensors
		fails("shortcuts over twice as many layers", own(other, honestly))
	}
}

// largestOff is d with the largest value of a tensor off by a part of itself.
func largestOff(d *rnn.Data, name string, part float32) *rnn.Data {
	out := rnn.DataFor(d.Problem, d.Distinct)
	for _, t := range d.Tensors {
		if t.Name == name {
			t.Values = slices.Clone(t.Values)
			at := 0
			for i, v := range t.Values {
				if v*v > t.Values[at]*t.Values[at] {
					at = i
				}
			}
			t.Values[at] *= 1 + part
		}
		out.Tensors = append(out.Tensors, t)
	}
	return out
}

// tensorOff is a right answer with one tensor off by half more than its tolerance.
func tensorOff(d *rnn.Data, right []Tensor, name string) []Tensor {
	want := followed(d, right)
	i := slices.IndexFunc(right, func(t Tensor) bool { return t.Name == name })
	wrong := slices.Clone(right)
	wrong[i].Values = slices.Clone(want[i].Values)
	for k := range wrong[i].Values {
		wrong[i].Values[k] *= 1 + 1.5*want[i].tolerance(d.Problem, 0)
	}
	return wrong
}

// TestShallowNetworks: networks of few layers are judged as any, by the reference of all layers at once.
func TestShallowNetworks(t *testing.T) {
	for _, c := range []*cell.Cell{cell.RNNReLU, cell.RNNTanh, cell.GRU, cell.LSTM, cell.MinGRU, clippedAt(20)} {
		for _, precision := range []rnn.Precision{rnn.FP32, rnn.TF32, rnn.FP16, rnn.BF16} {
			for _, layers := range []int{1, 8, 16} {
				p := rnn.Problem{Cell: c, Input: 12, Hidden: 16, Layers: layers, Skip: layers / 8 * 4, Norm: rnn.NormBatch, Batch: 4, Steps: 3, Output: 9, Pass: rnn.Train, Precision: precision}
				for seed := range uint64(4) {
					d := rnn.NewData(p, seed, p.Batch, "normal")
					r := newReference(d)
					if follow(r, own(d, honestly)); r.run != nil {
						t.Errorf("%v is judged layer by layer", p)
					}
				}
			}
		}
	}
}
