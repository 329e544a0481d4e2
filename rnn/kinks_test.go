package rnn

import (
	"math"
	"testing"

	"rnnbench/rnn/cell"
)

// atKink is a network in which the first few units' inputs of ReLU are sums of ±1/2 that cancel.
func atKink(precision Precision, few int) *Data {
	p := Problem{Cell: cell.RNNReLU, Input: 1, Hidden: 64, Layers: 1, Batch: 1, Steps: 1, Pass: Train, Precision: precision}
	d := NewData(p, 1, 1, "normal")
	for _, name := range []string{"x", "h0_l0"} {
		clear(d.Get(name))
	}
	for u := range p.Hidden {
		d.Get("bias_ih_l0")[u] = 0.5
		if d.Get("bias_hh_l0")[u] = 0.5; u < few {
			d.Get("bias_hh_l0")[u] = -0.5
		}
	}
	return d
}

// TestAnswersAtKinks takes the answer of a network with a unit just above ReLU's kink, where the
// reference has it below. How far below decides whether the other gradient is right; the state
// itself is within its tolerance.
func TestAnswersAtKinks(t *testing.T) {
	for _, test := range []struct {
		precision Precision
		below     float32
		ok        bool
	}{{FP32, 0x1p-24, true}, {FP32, 0x1p-20, false}, {BF16, 0x1p-8, true}, {BF16, 0x1p-5, false}, {FP16, 0x1p-11, true}, {FP16, 0x1p-8, false}} {
		d, above := atKink(test.precision, 1), atKink(test.precision, 1)
		d.Get("bias_ih_l0")[0] -= test.below
		above.Get("bias_ih_l0")[0] += 0x1p-24
		got := Reference(above)
		dev, found, err := CompareAgain(d, got)
		if err != nil || dev.OK() != test.ok {
			t.Errorf("%v: unit at -%v: %v, %v", test.precision, test.below, dev, err)
		}
		want := Kinks{Units: 64}
		if test.ok {
			want.Near, want.Other = 1, 1
		}
		if found != want || FindKinks(d) != (Kinks{Units: 64, Near: want.Near}) {
			t.Errorf("%v: unit at -%v: found %+v, want %+v", test.precision, test.below, found, want)
		}
		if strict, _ := Compare(d.Problem, got, Reference(d)); strict.OK() {
			t.Errorf("%v: unit at -%v: the reference itself does not see the kink", test.precision, test.below)
		}
	}
}

// TestRoundingOfReLU rounds what a step reads to 16 bits. No input of ReLU moves further than the bound says, and
// the bound is not far beyond what they move.
func TestRoundingOfReLU(t *testing.T) {
	for _, precision := range []Precision{BF16, FP16} {
		for _, p := range []Problem{{Input: 40, Hidden: 50, Layers: 3}, {Input: 1, Hidden: 70, Layers: 1}, {Input: 9, Hidden: 20, Layers: 2, OneHot: true}} {
			p.Cell, p.Batch, p.Steps, p.Pass, p.Precision = cell.RNNReLU, 3, 20, Train, precision
			p.Output = 4
			d := NewData(p, 3, 3, "normal")
			exact, rounded := newReference(d), newReference(d.stored(precision))
			exact.forward()
			rounded.forward()
			var below []float64
			worst, square := 0.0, 0.0
			for l := range exact.layers {
				var all []float64
				all, below = exact.variances(&exact.layers[l], below)
				for i, v := range all {
					moved := math.Abs(exact.input(&exact.layers[l], i)-rounded.input(&rounded.layers[l], i)) / math.Sqrt(v)
					worst, square = max(worst, moved), square+moved*moved/float64(len(all)*p.Layers)
				}
			}
			if worst > deviations || math.Sqrt(square) < 0.1 {
				t.Errorf("%v: inputs move by %.2g and at most %.2g deviations", p, math.Sqrt(square), worst)
			}
		}
	}
}

// stored is d with all values rounded to the precision's bits.
func (d *Data) stored(p Precision) *Data {
	out := d.Off(0, 0)
	for _, t := range out.tensors {
		for i, v := range t.values {
			fraction, exponent := math.Frexp(float64(v))
			if t.name != "target" && (t.name != "x" || !d.Problem.OneHot) {
				t.values[i] = float32(math.Ldexp(math.RoundToEven(fraction/p.Epsilon())*p.Epsilon(), exponent))
			}
		}
	}
	return out
}

// TestKinkedCells: each cell whose gradient jumps is one whose kinks are found.
func TestKinkedCells(t *testing.T) {
	for _, c := range cell.All() {
		if _, found := c.Kink(); c.Kinked() != found {
			t.Errorf("%v: kinked %v, but kinks of it are found %v: see kinks.go", c, c.Kinked(), found)
		}
	}
}

// TestTooManyKinks: where most units lie within rounding of 0, no gradient but the reference's is right.
func TestTooManyKinks(t *testing.T) {
	d, near := atKink(FP32, 60), atKink(FP32, 60)
	near.Get("bias_ih_l0")[0] += 0x1p-24
	dev, found, err := CompareAgain(d, Reference(near))
	if err != nil || dev.OK() || !found.TooMany() || found.Near != 60 || found.Other != 0 {
		t.Errorf("%v, %+v, %v", dev, found, err)
	}
}
