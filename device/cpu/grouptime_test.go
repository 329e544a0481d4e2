package cpu

import (
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestGroupsByMeetings: where meetings take longer, a step takes longer by as much, and workers form
// more and smaller groups, in which fewer meet. A worker that meets nobody takes as long as before.
func TestGroupsByMeetings(t *testing.T) {
	const workers = 16
	d, err := Open(Options{Threads: workers})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	a := newLayer(t, cell.LSTM, false, 16, 512, 64, 8, []int{0, 0}, nil)
	op := a.s.Nodes[1].Op.(schedule.Persistent)
	with := func(each float64) *planner { // the time of a meeting grows with those who meet
		pl := d.planner
		pl.kernels = simd.Model(simd.AVX512)
		pl.meetings = make([]float64, workers+1)
		for n := range pl.meetings {
			pl.meetings[n] = each * float64(n)
		}
		return &pl
	}
	quick, slow := with(0), with(1000)
	for groups := 1; groups <= workers; groups *= 2 {
		more := stepTime(slow, op, simd.F32, workers, groups, 2<<20) - stepTime(quick, op, simd.F32, workers, groups, 2<<20)
		want := meetTime * 1000 * float64(workers/groups)
		if groups == workers {
			want = 0
		}
		if more < want-1 || more > want+1 {
			t.Errorf("%d groups: meetings add %v ns to a step, want %v", groups, more, want)
		}
	}
	if few, many := cheapest(quick, op, simd.F32, workers, 2<<20), cheapest(slow, op, simd.F32, workers, 2<<20); few > many || many != workers/2 {
		t.Errorf("%d groups where meetings take no time, %d where they take long, want at most %d and %d", few, many, workers/2, workers/2)
	}
}
