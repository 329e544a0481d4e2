package devicetest

import (
	"errors"
	"math"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn/equations"
	"rnnbench/rnn/schedule"
)

// choices runs the cell of a min and a max on pairs of numbers that are equal, far apart, infinite or no number. A
// value is that of one operand, bit by bit, and its gradient goes to that operand. Where the operands are equal, or the
// second is no number, that is the first.
func choices(t *testing.T, d device.Device) {
	c, err := equations.Parse("choices.cell", "choices", "state h, c\ngate a = W x + b\ngate d = W x + b\nh' = min(a, d)\nc' = max(a, d)")
	if err != nil {
		t.Fatal(err)
	}
	inf := float32(math.Inf(1))
	numbers := []float32{0, 1, math.Nextafter32(1, 2), -1, 1e-30, 1e30, -1e30, math.MaxFloat32, -math.MaxFloat32, inf, -inf, float32(math.NaN())}
	n := len(numbers) * len(numbers)
	b := schedule.NewBuilder(1)
	x, none, zero := b.Matrix("x", 1, 2*n), b.Matrix("none", 1, 2*n), b.Matrix("zero", 1, n)
	least, most, saved := b.Matrix("least", 1, n), b.Matrix("most", 1, n), b.Matrix("saved", 1, c.Saved*n)
	ofLeast, ofMost, dx := b.Matrix("gradient of least", 1, n), b.Matrix("gradient of most", 1, n), b.Matrix("dx", 1, 2*n)
	before, next := []schedule.View{zero.All(), zero.All()}, []schedule.View{least.All(), most.All()}
	b.Do(0, schedule.Cell{Cell: c, Train: true, X: x.All(), BX: none.All(), Prev: before, Next: next, Saved: saved.All()})
	b.Do(0, schedule.CellBackward{Cell: c, Prev: before, Next: next, Saved: saved.All(), DOut: zero.All(),
		DNext: []schedule.View{ofLeast.All(), ofMost.All()}, DX: dx.All(), DPrev: make([]schedule.View, 2)})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	start := make([][]float32, len(s.Matrices))
	for i, m := range s.Matrices {
		start[i] = make([]float32, m.Elements())
	}
	wantX := make([]float32, 2*n)
	var want [2][]float32
	for i := range n {
		a, d := numbers[i%len(numbers)], numbers[i/len(numbers)]
		start[x.ID][i], start[x.ID][n+i] = a, d
		start[ofLeast.ID][i], start[ofMost.ID][i] = 3, 5
		for k, second := range []bool{d < a, d > a} {
			chosen, at := a, i
			if second {
				chosen, at = d, n+i
			}
			want[k] = append(want[k], chosen)
			wantX[at] += []float32{3, 5}[k]
		}
	}
	got, err := results(p, s, start)
	if err != nil {
		t.Fatal(errors.Join(err, errors.New(d.Info().Key)))
	}
	for i := range n {
		values, gradients := [2]float32{got[least.ID][i], got[most.ID][i]}, [2]float32{got[dx.ID][i], got[dx.ID][n+i]}
		same := func(a, b float32) bool { return a == b || a != a && b != b }
		if !same(values[0], want[0][i]) || !same(values[1], want[1][i]) || gradients != [2]float32{wantX[i], wantX[n+i]} {
			t.Errorf("%s: min and max of %v and %v are %v with gradients %v, want %v and %v with %v and %v", d.Info().Key,
				start[x.ID][i], start[x.ID][n+i], values, gradients, want[0][i], want[1][i], wantX[i], wantX[n+i])
		}
	}
}
