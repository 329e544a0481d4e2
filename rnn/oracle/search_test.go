package oracle

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// kinkedProblems are large enough for their gradients to tell which units were on which side.
func kinkedProblems() []rnn.Problem {
	base := rnn.Problem{Cell: cell.RNNReLU, Input: 30, Hidden: 32, Layers: 3, Batch: 4, Steps: 14, Pass: rnn.Train, Precision: rnn.BF16}
	symbols, history, head, normal, clipped, ahead := base, base, base, base, base, base
	normal.Norm, normal.Output, normal.Layers = rnn.NormBatch, 20, 2
	symbols.OneHot, symbols.Input, symbols.Layers, symbols.Output = true, 12, 2, 20
	history.Precision, history.History = rnn.FP16, 6
	head.Output, head.Layers = 20, 1
	clipped.Cell, clipped.Output = clippedAt(0.5), 20
	ahead.Lookahead, ahead.Skip, ahead.Layers = 4, 1, 2
	return []rnn.Problem{base, symbols, history, head, normal, clipped, ahead}
}

// vendors is an answer that shows the states of inner layers only after the last step, as a
// library's does. move may change the sides of units.
func vendors(d *rnn.Data, move func(r *reference)) []Tensor {
	r := newReference(d)
	r.forward()
	r.findKinks()
	move(r)
	r.backward()
	answer := r.answer()
	p := d.Problem
	for i := range answer {
		t := &answer[i]
		if t.PerSequence {
			t.Values = rnn.Repeat(t.Values, t.Cols, d.Distinct, p.Batch)
			t.Rows = len(t.Values) / t.Cols
		}
		if strings.HasPrefix(t.Name, "h_l") && t.Name != fmt.Sprintf("h_l%d", p.Layers-1) {
			t.First, t.Rows = p.Frames()-1, p.Batch
			t.Values = t.Values[len(t.Values)-p.Batch*t.Cols:]
		}
	}
	return answer
}

// anySide puts a third of the units near the kink on the other side.
func anySide(r *reference) {
	rng := rand.New(rand.NewPCG(1, 2))
	for l := range r.layers {
		y := &r.layers[l]
		for _, i := range y.near {
			if rng.IntN(3) == 0 {
				y.setSide(i, y.side[i] <= 0)
			}
		}
	}
}

// TestSidesAreFound: the sides of units near the kink are found by the gradients, though no state shows them.
func TestSidesAreFound(t *testing.T) {
	for _, p := range kinkedProblems() {
		for _, distinct := range []int{3, 4} {
			d := rnn.NewData(p, 5, distinct, "normal")
			answer := vendors(d, anySide)
			if dev, err := Compare(p, answer, Reference(d)); err != nil || dev.OK() {
				t.Errorf("%v: the other sides change nothing: %v, %v", p, dev, err)
			}
			dev, found, err := CompareAgain(d, answer)
			if err != nil || !dev.OK() || found.Other == 0 || found.Other > found.Near {
				t.Errorf("%v, %d distinct: %v, %+v, %v", p, distinct, dev, found, err)
			}
			t.Logf("%v: %v, %+v", p, dev, found)
		}
	}
}

// TestMove: a unit that the search changed at a wrong step changes at the right one in a single move, and
// stays as it is where no move is left.
func TestMove(t *testing.T) {
	p := kinkedProblems()[0]
	d := rnn.NewData(p, 5, 4, "normal")
	layer, from, to := -1, 0, 0
	answer := vendors(d, func(r *reference) {
		for l := range r.layers {
			steps := map[int]int{} // of each unit, where it is near the kink
			for _, i := range r.layers[l].near {
				if first, twice := steps[i%p.Hidden]; twice {
					layer, from, to = l, first, i
				}
				steps[i%p.Hidden] = i
			}
		}
		if layer >= 0 {
			(&search{reference: r}).flip([]flip{{layer: layer, unit: to}})
		}
	})
	if layer < 0 {
		t.Fatal("no unit is near its kink at two steps")
	}
	for _, tries := range []int{0, searchRounds} {
		r := newReference(d)
		r.forward()
		r.findKinks()
		s := &search{reference: r, above: r.above(), answer: answer}
		s.flip([]flip{{layer: layer, unit: from}})
		r.backwardFrom(s.above)
		before, left := s.residual(), tries
		after := s.move(before, &left)
		y := &r.layers[layer]
		moved := y.side[to] > 0 != (r.sideValue(y, to) > 0) && y.side[from] > 0 == (r.sideValue(y, from) > 0)
		if moved != (tries > 0) {
			t.Errorf("%d tries: moved %v", tries, moved)
		}
		if tries > 0 && (after == nil || after.square() > 0 || before.square() == 0) {
			t.Errorf("of a residual of %v, the move leaves some", before.square())
		}
	}
}

// TestFaultsBesideKinks: no search for sides explains a wrong gate or a largest gradient left out.
// Nor does it explain one tensor of gradients that is off by little more than the tolerance.
func TestFaultsBesideKinks(t *testing.T) {
	for i, p := range kinkedProblems() {
		if p.Layers = 2; i > 0 && p.Norm == "" && p.Lookahead == 0 && p.Cell == cell.RNNReLU {
			continue
		}
		d := rnn.NewData(p, 5, 3, "normal")
		for l := range p.Layers {
			wrong := vendors(d, func(r *reference) {
				anySide(r)
				r.layers[l].closeLargest(r)
			})
			if dev, found, err := CompareAgain(d, wrong); err != nil || dev.OK() {
				t.Errorf("%v: a wrong gate in layer %d passes: %v, %+v, %v", p, l, dev, found, err)
			}
		}
		answer := vendors(d, anySide)
		near, _ := ReferenceNear(d, answer)
		for i, want := range near {
			if !want.Gradient || len(want.Values) <= 16 {
				continue
			}
			for name, spoil := range map[string]func(v []float64, largest int){
				"scaled": func(v []float64, _ int) {
					for k := range v {
						v[k] *= 1 + 1.5*want.tolerance(p, 0)
					}
				},
				"the largest left out": func(v []float64, largest int) { v[largest] = 0 },
			} {
				wrong := vendors(d, anySide)
				largest := 0
				for k, v := range wrong[i].Values {
					if v*v > wrong[i].Values[largest]*wrong[i].Values[largest] {
						largest = k
					}
				}
				spoil(wrong[i].Values, largest)
				if dev, found, err := CompareAgain(d, wrong); err != nil || dev.OK() {
					t.Errorf("%v: %s %s passes: %v, %+v, %v", p, want.Name, name, dev, found, err)
				}
			}
		}
	}
}

// closeLargest closes the unit with the largest gradient among those far from the kink.
func (y *refLayer) closeLargest(r *reference) {
	r.backward()
	most := -1
	for i, d := range y.reach {
		if r.input(y, i) > 0.1 && (most < 0 || d*d > y.reach[most]*y.reach[most]) {
			most = i
		}
	}
	y.setSide(most, false)
}
