package cpu

import (
	"errors"
	"math"
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestGroupsAgree: results are almost the same for any number of groups, forward and in training.
// The groups have different numbers of sequences, and the bands different numbers of units.
func TestGroupsAgree(t *testing.T) {
	for _, c := range []*cell.Cell{cell.GRU, cell.LSTM} {
		for _, train := range []bool{false, true} {
			for _, precision := range []schedule.Precision{schedule.FP32, schedule.BF16} {
				a := newLayer(t, c, train, 5, 75, 7, 19, []int{0, 0}, nil)
				a.s.Precision = precision
				tolerance := 1e-5
				if precision == schedule.BF16 { // sums in another order may round to neighbouring values
					tolerance = 0x1p-8
				}
				var want [][]float32
				for _, way := range []struct{ threads, groups int }{{1, 0}, {4, 2}, {6, 3}, {6, 2}} {
					d, err := Open(Options{Threads: way.threads})
					if err != nil {
						t.Fatal(err)
					}
					defer d.Close()
					var k knob.Params
					if way.threads > 1 {
						k = knob.Params{"crews": way.groups, "teams": 1}
					}
					got, _ := a.run(t, d, k)
					if want == nil {
						want = got
						continue
					}
					for i := range got {
						for j, x := range got[i] {
							if diff := math.Abs(float64(x - want[i][j])); !(diff <= tolerance*(1+math.Abs(float64(x)))) {
								t.Fatalf("%v, training %v, %v, %+v: %v, and %v by one worker", c, train, precision, way, x, want[i][j])
							}
						}
					}
				}
			}
		}
	}
}

// TestGroupsByCost: the number of groups minimises the predicted time of a step. Few workers, small
// layers and few sequences form one group.
func TestGroupsByCost(t *testing.T) {
	for _, test := range []struct {
		level           simd.Level
		f               simd.Format
		workers         int
		hidden, batch   int
		least, greatest int
	}{
		{simd.AMX, simd.BF16, 16, 512, 64, 2, 4},
		{simd.AMX, simd.BF16, 16, 512, 16, 1, 2},  // one tile of sequences
		{simd.AMX, simd.BF16, 16, 2048, 64, 1, 1}, // L2 holds the weights of a band only if all workers have one
		{simd.AMX, simd.BF16, 2, 512, 64, 1, 1},
		{simd.AVX512, simd.F32, 16, 512, 64, 2, 8},
		{simd.AVX512, simd.F32, 16, 512, 1, 1, 1},
		{simd.AVX2, simd.F32, 6, 400, 3, 1, 3},
	} {
		d, err := Open(Options{Threads: test.workers})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		a := newLayer(t, cell.LSTM, false, 16, test.hidden, test.batch, 8, []int{0, 0}, nil)
		pl := d.planner
		pl.kernels = simd.Model(test.level)
		op := a.s.Nodes[1].Op.(schedule.Persistent)
		if n := cheapest(&pl, op, test.f, test.workers, 2<<20); n < test.least || n > test.greatest || test.workers%n > 0 {
			t.Errorf("%+v: %d groups", test, n)
		}
	}
}

// TestGroupsDeclined: a number of groups that the workers or sequences cannot form is declined.
func TestGroupsDeclined(t *testing.T) {
	d, err := Open(Options{Threads: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	a := newLayer(t, cell.LSTM, false, 5, 64, 3, 19, []int{0, 0}, nil)
	for _, k := range []knob.Params{{"crews": 3}, {"crews": 4}, {"crews": 2, "bands": 2}, {"crews": 2, "sequences": 1}} {
		if _, err := d.Compile(a.s, k); !errors.Is(err, schedule.ErrKnob) {
			t.Errorf("%v: %v", k, err)
		}
	}
}
