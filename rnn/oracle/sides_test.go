package oracle

import (
	"cmp"
	"slices"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// crowded are problems of which more than 5 % of the units lie within rounding of a kink.
func crowded() []rnn.Problem {
	base := rnn.Problem{Cell: cell.RNNReLU, Input: 20, Hidden: 24, Layers: 4, Skip: 2, Norm: rnn.NormBatch, Batch: 3, Steps: 12, Output: 9, Pass: rnn.Train, Precision: rnn.BF16}
	clipped, ahead, both, half := base, base, base, base
	clipped.Cell = clippedAt(1)
	ahead.Lookahead, ahead.Transcript = 3, 3
	both.Direction, both.Skip = rnn.BothWays, 0
	half.Precision, half.Layers, half.Skip = rnn.FP16, 12, 3
	return []rnn.Problem{base, clipped, ahead, both, half}
}

// own is the answer of an honest technique that shows all states, once spoil has changed its forward pass.
func own(d *rnn.Data, spoil func(r *reference)) []Tensor {
	r := newReference(narrowed(d))
	r.lossy = &rounding{precision: d.Problem.Precision}
	r.forward()
	spoil(r)
	r.backward()
	return r.answer()
}

func honestly(*reference) {}

// TestManySides: an answer that shows the states has its own sides, of however many units.
func TestManySides(t *testing.T) {
	for _, p := range crowded() {
		d := rnn.NewData(p, 5, 3, "normal")
		got := own(d, honestly)
		strict, err := Compare(p, got, Reference(d))
		if err != nil || strict.OK() {
			t.Errorf("%v: no side matters: %v, %v", p, strict, err)
		}
		dev, found, err := CompareAgain(d, got)
		if err != nil || !dev.OK() || found.TooMany() || found.Other == 0 || !(Kinks{Units: found.Units, Near: found.Near}).TooMany() {
			t.Errorf("%v: %v, %+v, %v", p, dev, found, err)
		}
		t.Logf("%v: %v, %+v", p, dev, found)
	}
}

// TestFaultsAmongManySides: where many units are near a kink, wrong gradients are found all the same.
func TestFaultsAmongManySides(t *testing.T) {
	for i, p := range crowded() {
		d, l := rnn.NewData(p, 5, 3, "normal"), i*3%p.Reads()
		for name, spoil := range map[string]func(r *reference, y *refLayer){
			"the gate of a unit far from its kink": func(r *reference, y *refLayer) {
				sidesAt(r, l, r)
				y.closeLargest(r)
			},
			"the gates of units at their kinks": func(r *reference, y *refLayer) {
				sidesAt(r, l, r)
				all := nearest(r, y)
				for _, i := range all[:len(all)/20] {
					y.setSide(i, y.side[i] <= 0)
				}
			},
		} {
			wrong := own(d, func(r *reference) { spoil(r, &r.layers[l]) })
			if dev, found, err := CompareAgain(d, wrong); err != nil || dev.OK() {
				t.Errorf("%v: wrong in layer %d, %s pass: %v, %+v, %v", p, l, name, dev, found, err)
			}
		}
	}
	scaledGradients(t, rnn.NewData(crowded()[0], 5, 3, "normal"))
}

// nearest lists the units of a layer, those nearest to a kink first.
func nearest(r *reference, y *refLayer) []int {
	all := make([]int, len(y.side))
	for i := range all {
		all[i] = i
	}
	slices.SortFunc(all, func(a, b int) int {
		return cmp.Compare(toKink(r.p.Cell, r.input(y, a)), toKink(r.p.Cell, r.input(y, b)))
	})
	return all
}

// scaledGradients has each tensor of gradients off by little more than its tolerance.
func scaledGradients(t *testing.T, d *rnn.Data) {
	p := d.Problem
	answer := own(d, honestly)
	near, _ := ReferenceNear(d, answer)
	for i, want := range near {
		if !want.Gradient || len(want.Values) <= 16 {
			continue
		}
		wrong := slices.Clone(answer)
		wrong[i].Values = slices.Clone(want.Values)
		for k := range wrong[i].Values {
			wrong[i].Values[k] *= 1 + 1.5*want.tolerance(p, 0)
		}
		if dev, found, err := CompareAgain(d, wrong); err != nil || dev.OK() {
			t.Errorf("%v: a scaled %s passes: %v, %+v, %v", p, want.Name, dev, found, err)
		}
	}
}

// TestSidesBeyondRounding: in deep networks the bounds of rounding errors of inputs are wide. A state that shows the
// other side of a kink is wrong all the same, if it would have to be off by more than its tolerance.
func TestSidesBeyondRounding(t *testing.T) {
	p := crowded()[4]
	d, l, moved := rnn.NewData(p, 5, 3, "normal"), p.Layers-1, 0
	exact := newReference(d)
	exact.forward()
	exact.findKinks()
	wrong := own(d, func(r *reference) {
		y := &r.layers[l]
		for _, i := range exact.layers[l].near {
			if exact.input(&exact.layers[l], i) < -stateError(exact, l, 0) {
				y.state[0][y.after*p.Hidden+i] = 0x1p-100
				moved++
			}
		}
	})
	if dev, found, err := CompareAgain(d, wrong); err != nil || dev.OK() || moved == 0 {
		t.Errorf("%v: %d units on a wrong side pass: %v, %+v, %v", p, moved, dev, found, err)
	}
}

// TestDeepNormalised: of 24 layers with batch normalisation, an honest answer passes, and a gradient that is off by a
// thousandth does not.
func TestDeepNormalised(t *testing.T) {
	p := crowded()[0]
	p.Precision, p.Layers, p.Skip = rnn.FP32, 24, 4
	d := rnn.NewData(p, 5, 3, "normal")
	answer := own(d, honestly)
	if dev, found, err := CompareAgain(d, answer); err != nil || !dev.OK() {
		t.Errorf("%v: an honest answer fails: %v, %+v, %v", p, dev, found, err)
	}
	for i := 0; i < len(answer); i += 7 {
		if !answer[i].Gradient || len(answer[i].Values) <= 16 {
			continue
		}
		wrong := slices.Clone(answer)
		wrong[i].Values = slices.Clone(answer[i].Values)
		for k := range wrong[i].Values {
			wrong[i].Values[k] *= 1.001
		}
		if dev, _, err := CompareAgain(d, wrong); err != nil || dev.OK() {
			t.Errorf("%v: %s passes though off by a thousandth: %v, %v", p, answer[i].Name, dev, err)
		}
	}
}
