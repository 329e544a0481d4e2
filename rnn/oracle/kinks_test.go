package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
)

// clippedAt is the rectifier whose output is at most so much.
func clippedAt(most float64) *cell.Cell {
	c, err := equations.Parse("clipped.cell", "clipped", fmt.Sprintf("h' = min(relu(W x + R h + b), %g)", most))
	if err != nil {
		panic(err)
	}
	return c
}

// atKink is a network in which the first few units' inputs of ReLU are sums of ±1/2 that cancel.
func atKink(precision rnn.Precision, few int) *rnn.Data {
	p := rnn.Problem{Cell: cell.RNNReLU, Input: 1, Hidden: 64, Layers: 1, Batch: 1, Steps: 1, Pass: rnn.Train, Precision: precision}
	d := rnn.NewData(p, 1, 1, "normal")
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
		precision rnn.Precision
		below     float32
		ok        bool
	}{{rnn.FP32, 0x1p-24, true}, {rnn.FP32, 0x1p-20, false}, {rnn.BF16, 0x1p-8, true}, {rnn.BF16, 0x1p-5, false}, {rnn.FP16, 0x1p-11, true}, {rnn.FP16, 0x1p-8, false}} {
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
			want.Near, want.Shown, want.Other = 1, 1, 1
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
	for _, precision := range []rnn.Precision{rnn.BF16, rnn.FP16} {
		for _, p := range []rnn.Problem{{Input: 40, Hidden: 50, Layers: 3}, {Input: 1, Hidden: 70, Layers: 1}, {Input: 9, Hidden: 20, Layers: 2, OneHot: true},
			{Input: 40, Hidden: 50, Layers: 3, Norm: rnn.NormBatch}, {Input: 40, Hidden: 50, Layers: 3, Cell: clippedAt(0.5)}, {Input: 9, Hidden: 20, Layers: 2, OneHot: true, Norm: rnn.NormBatch}} {
			p.Batch, p.Steps, p.Pass, p.Precision, p.Output = 3, 20, rnn.Train, precision, 4
			if p.Cell == nil {
				p.Cell = cell.RNNReLU
			}
			d := rnn.NewData(p, 3, 3, "normal")
			exact, rounded := newReference(d), newReference(stored(d, precision))
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
func stored(d *rnn.Data, p rnn.Precision) *rnn.Data {
	out := d.Off(0, 0)
	for _, t := range out.Tensors {
		for i, v := range t.Values {
			fraction, exponent := math.Frexp(float64(v))
			if t.Name != "target" && (t.Name != "x" || !d.Problem.OneHot) {
				t.Values[i] = float32(math.Ldexp(math.RoundToEven(fraction/p.Epsilon())*p.Epsilon(), exponent))
			}
		}
	}
	return out
}

// TestKinkedCells: each cell whose gradient jumps is one whose kinks are found.
func TestKinkedCells(t *testing.T) {
	for _, c := range append(cell.All(), clippedAt(20)) {
		if _, found := c.Kink(); c.Kinked() != found {
			t.Errorf("%v: kinked %v, but kinks of it are found %v: see kinks.go", c, c.Kinked(), found)
		}
	}
}

// TestAnswersAtClips is TestAnswersAtKinks for the kink where an output is clipped, which no state shows.
func TestAnswersAtClips(t *testing.T) {
	at := func(z float32) *rnn.Data {
		d := atKink(rnn.FP32, 0)
		p := d.Problem
		p.Cell = clippedAt(20)
		clipped := rnn.DataFor(p, 1)
		clipped.Tensors = d.Tensors
		d.Get("bias_ih_l0")[0] = z - 0.5
		return clipped
	}
	for _, test := range []struct {
		below float32
		ok    bool
	}{{0x1p-18, true}, {0x1p-10, false}} {
		d := at(20 - test.below)
		got := Reference(at(20 + 0x1p-18))
		dev, found, err := CompareAgain(d, got)
		if err != nil || dev.OK() != test.ok {
			t.Errorf("unit at 20 - %v: %v, %v", test.below, dev, err)
		}
		if want := (Kinks{Units: 64}); test.ok && (found.Near != 1 || found.Other != 1) || !test.ok && found != want {
			t.Errorf("unit at 20 - %v: found %+v", test.below, found)
		}
		if strict, _ := Compare(d.Problem, got, Reference(d)); strict.OK() {
			t.Errorf("unit at 20 - %v: the reference itself does not see the clip", test.below)
		}
	}
}

// TestTooManyKinks: most units lie within rounding of 0. Then no gradient but the reference's is right, unless
// the answer shows the units' sides.
func TestTooManyKinks(t *testing.T) {
	for _, shown := range []bool{false, true} {
		d, near := atKink(rnn.FP32, 60), atKink(rnn.FP32, 60)
		near.Get("bias_ih_l0")[0] += 0x1p-24
		got := Reference(near)
		want := Kinks{Units: 64, Near: 60, Shown: 60, Other: 1}
		if !shown {
			h := &got[0]
			h.First, h.Rows, h.Values = d.Problem.Steps, 0, nil
			want = Kinks{Units: 64, Near: 60}
		}
		dev, found, err := CompareAgain(d, got)
		if err != nil || dev.OK() != shown || found.TooMany() == shown || found != want {
			t.Errorf("shown %v: %v, %+v, %v", shown, dev, found, err)
		}
	}
}

// TestMostNear: up to 5 % of the units may be near a kink, besides what chance gives in a small network.
func TestMostNear(t *testing.T) {
	for _, k := range []struct {
		units, near int
		many        bool
	}{{10000, 500, false}, {10000, 568, false}, {10000, 569, true}, {1000000, 51000, true}, {20, 5, false}, {20, 6, true}, {0, 1, false}} {
		if got := (Kinks{Units: k.units, Near: k.near}).TooMany(); got != k.many {
			t.Errorf("%d of %d units: too many: %v", k.near, k.units, got)
		}
	}
}

// TestAnswersAtKinksOfGates is TestAnswersAtKinks for a kink within a cell.
func TestAnswersAtKinksOfGates(t *testing.T) {
	at := func(precision rnn.Precision, z float32) *rnn.Data {
		p := rnn.Problem{Cell: cell.MinGRU, Input: 1, Hidden: 64, Layers: 1, Batch: 1, Steps: 1, Pass: rnn.Train, Precision: precision}
		d := rnn.NewData(p, 1, 1, "normal")
		clear(d.Get("x"))
		bias := d.Get("bias_ih_l0")
		for u := range p.Hidden {
			bias[p.Hidden+u] = 0.5
		}
		bias[p.Hidden] = z
		d.Get("dy")[0] = 2
		return d
	}
	for _, test := range []struct {
		below float32
		ok    bool
	}{{0x1p-40, true}, {0x1p-10, false}} {
		d := at(rnn.FP32, -test.below)
		got := Reference(at(rnn.FP32, 0x1p-40))
		if test.ok { // z is its bias alone, and rounds by no more than a part of that
			d = at(rnn.FP32, 0)
		}
		dev, found, err := CompareAgain(d, got)
		if err != nil || dev.OK() != test.ok {
			t.Errorf("unit at -%v: %v, %v", test.below, dev, err)
		}
		want := Kinks{Units: 64}
		if test.ok {
			want.Near, want.Other = 1, 1
		}
		if found != want {
			t.Errorf("unit at -%v: found %+v, want %+v", test.below, found, want)
		}
		if strict, _ := Compare(d.Problem, got, Reference(d)); strict.OK() {
			t.Errorf("unit at -%v: the reference itself does not see the kink", test.below)
		}
	}
}

// TestSidesOfGatesAreFound takes answers that have some gates within rounding of the kink on the other
// side. All of them are found by their marks in the gradients, in two layers.
func TestSidesOfGatesAreFound(t *testing.T) {
	flipped, strict := 0, 0
	for seed := range uint64(6) {
		p := rnn.Problem{Cell: cell.MinGRU, Input: 9, Hidden: 20, Layers: 2, Batch: 3, Steps: 12, Pass: rnn.Train, Precision: rnn.FP16, OneHot: seed == 5}
		if seed%2 == 0 {
			p.Norm = rnn.NormBatch
		}
		d := rnn.NewData(p, seed, 3, "normal")
		r := newReference(d)
		r.forward()
		r.findKinks()
		rng := rand.New(rand.NewPCG(seed, 1))
		for l := range r.layers {
			for _, i := range r.layers[l].near {
				if rng.IntN(2) == 0 {
					r.layers[l].setSide(i, r.layers[l].side[i] <= 0)
					flipped++
				}
			}
		}
		r.backwardFrom(r.above())
		got := r.answer()
		dev, found, err := CompareAgain(d, got)
		if err != nil || !dev.OK() {
			t.Errorf("%d of %d gates: %v, %v", found.Other, found.Near, dev, err)
		}
		if one, _ := Compare(p, got, Reference(d)); !one.OK() {
			strict++
		}
	}
	if flipped < 3 || strict < 1 {
		t.Errorf("%d gates changed sides, and %d answers were wrong by that", flipped, strict)
	}
}

// TestGateVariances is TestRoundingOfReLU for such gates.
func TestGateVariances(t *testing.T) {
	for _, precision := range []rnn.Precision{rnn.BF16, rnn.FP16} {
		p := rnn.Problem{Cell: cell.MinGRU, Input: 40, Hidden: 50, Layers: 3, Batch: 3, Steps: 20, Pass: rnn.Train, Precision: precision}
		d := rnn.NewData(p, 3, 3, "normal")
		exact, rounded := newReference(d), newReference(stored(d, precision))
		exact.forward()
		rounded.forward()
		near := exact.findKinks()
		moved := 0
		for l := range exact.layers {
			known := map[int]bool{}
			for _, i := range exact.layers[l].near {
				known[i] = true
			}
			for i := range p.Hidden * exact.rows {
				if (exact.input(&exact.layers[l], i) > 0) == (rounded.input(&rounded.layers[l], i) > 0) {
					continue
				}
				if moved++; !known[i] {
					t.Errorf("%v: layer %d unit %d changes sides and is not near", p, l, i)
				}
			}
		}
		if moved == 0 && precision == rnn.BF16 || near.Near > 100*max(1, moved) || near.TooMany() {
			t.Errorf("%v: %d units change sides, near are %+v", p, moved, near)
		}
	}
}
