package rnn

import (
	"math/rand/v2"
	"testing"

	"rnnbench/rnn/cell"
)

// TestAnswersAtKinksOfGates is TestAnswersAtKinks for a kink within a cell.
func TestAnswersAtKinksOfGates(t *testing.T) {
	at := func(precision Precision, z float32) *Data {
		p := Problem{Cell: cell.MinGRU, Input: 1, Hidden: 64, Layers: 1, Batch: 1, Steps: 1, Pass: Train, Precision: precision}
		d := NewData(p, 1, 1, "normal")
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
		d := at(FP32, -test.below)
		got := Reference(at(FP32, 0x1p-40))
		if test.ok { // z is its bias alone, and rounds by no more than a part of that
			d = at(FP32, 0)
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
		p := Problem{Cell: cell.MinGRU, Input: 9, Hidden: 20, Layers: 2, Batch: 3, Steps: 12, Pass: Train, Precision: FP16, OneHot: seed == 5}
		d := NewData(p, seed, 3, "normal")
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
	for _, precision := range []Precision{BF16, FP16} {
		p := Problem{Cell: cell.MinGRU, Input: 40, Hidden: 50, Layers: 3, Batch: 3, Steps: 20, Pass: Train, Precision: precision}
		d := NewData(p, 3, 3, "normal")
		exact, rounded := newReference(d), newReference(d.stored(precision))
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
		if moved == 0 && precision == BF16 || near.Near > 100*max(1, moved) || near.TooMany() {
			t.Errorf("%v: %d units change sides, near are %+v", p, moved, near)
		}
	}
}
