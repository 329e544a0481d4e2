package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// crowded returns a planner of so many workers in clusters of eight.
func crowded(t *testing.T, workers int) *planner {
	pl := plan(t, workers)
	pl.crew = newCrew(workers, eights)
	return pl
}

// eights returns the sizes of clusters of eight for n workers.
func eights(n int) []int {
	sizes := slices.Repeat([]int{8}, n/8)
	if n%8 > 0 {
		sizes = append(sizes, n%8)
	}
	return sizes
}

// TestMovesGrowSlowly: with more workers, meetings by groups take longer, but far less than in
// proportion.
func TestMovesGrowSlowly(t *testing.T) {
	for _, test := range []struct {
		clusters []int
		want     float64
	}{{[]int{2}, 1}, {[]int{3}, 1.5}, {[]int{4}, 2}, {[]int{8}, 4}, {[]int{16}, 5}, {[]int{8, 8}, 6}, {slices.Repeat([]int{8}, 8), 12}} {
		n := 0
		for _, c := range test.clusters {
			n += c
		}
		if got := moves(test.clusters, n); got != test.want {
			t.Errorf("clusters %v: %v, want %v", test.clusters, got, test.want)
		}
	}
	if moves([]int{1}, 1) != 0 || moves(nil, 0) != 0 {
		t.Error("the time of a meeting of one worker is not 0")
	}
}

// TestSmallOperationsTakeFewWorkers: of 64 workers only those take part for which it pays, and more
// do in larger operations. Of four workers all take part.
func TestSmallOperationsTakeFewWorkers(t *testing.T) {
	many, few := crowded(t, 64), crowded(t, 4)
	last := 0
	for cost := int64(forkFLOPs); cost < 1e10; cost *= 2 {
		n := many.paying(cost, 64)
		if n < last || n > 64 {
			t.Errorf("%d workers for %d operations, %d for half of them", n, cost, last)
		}
		if last = n; few.paying(cost, 4) != 4 {
			t.Errorf("%d of 4 workers for %d operations", few.paying(cost, 4), cost)
		}
		if all := many.paying(cost, 64); float64(cost)/float64(all)+many.handovers[all] > float64(cost) {
			t.Errorf("%d workers take longer for %d operations than one", all, cost)
		}
	}
	if last != 64 {
		t.Errorf("%d workers for the largest operation", last)
	}
	if n := plan(t, 64).paying(forkFLOPs, 64); n != 64 {
		t.Errorf("with unknown costs of hand-overs, %d workers take part", n)
	}
	for _, test := range []struct {
		hidden, least, most int
	}{{64, 2, 4}, {256, 8, 16}, {1024, 32, 64}, {4096, 64, 64}} {
		a := newLayer(t, cell.LSTM, false, 16, test.hidden, 1, 8, []int{0, 0}, nil)
		op := a.s.Nodes[1].Op.(schedule.Persistent)
		if n := many.payingBands(costPerStep(op), test.hidden, 64); n < test.least || n > test.most {
			t.Errorf("%d bands of %d units", n, test.hidden)
		}
	}
	if n := many.payingBands(1e9, 20*line, 12); n != 10 { // with 10 bands, as with 12, the largest has two strips
		t.Errorf("%d bands of 20 strips for 12 workers", n)
	}
}

// counts are the numbers of workers with which layers are tested.
func counts() []int {
	if testing.Short() {
		return []int{5, 16, 64}
	}
	return []int{2, 3, 5, 7, 8, 12, 16, 24, 48, 64}
}

// TestManyWorkersAgree: a layer gives the same results on any number of workers as on one, forward
// and backward, with one sequence and with several. There are more workers than processors, so
// hand-overs happen at any moment.
func TestManyWorkersAgree(t *testing.T) {
	one, err := Open(Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	type shape struct {
		cell   *cell.Cell
		train  bool
		hidden int
		batch  int
	}
	shapes := []shape{{cell.LSTM, false, 133, 1}, {cell.GRU, true, 131, 5}}
	if !testing.Short() {
		shapes = append(shapes, shape{cell.LSTM, true, 277, 3}, shape{cell.RNNTanh, false, 400, 1}, shape{cell.GRU, false, 97, 70})
	}
	for _, n := range counts() {
		d, err := Open(Options{Threads: n})
		if err != nil {
			t.Fatal(err)
		}
		d.crew = newCrew(n, eights)
		for _, sh := range shapes {
			a := newLayer(t, sh.cell, sh.train, 7, sh.hidden, sh.batch, 19, []int{0, 0}, nil)
			want, _ := a.run(t, one, nil)
			for _, k := range []knob.Params{nil, {"sequences": 1}} {
				if sh.batch == 1 && k != nil {
					continue
				}
				got, _ := a.run(t, d, k)
				agree(t, got, want)
				if t.Failed() {
					t.Fatalf("%v, %d workers, %v", sh, n, k)
				}
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// agree checks that all values are almost the same.
func agree(t *testing.T, got, want [][]float32) {
	t.Helper()
	for i := range want {
		for j, x := range want[i] {
			if diff := float64(got[i][j] - x); !(diff <= 1e-4 && diff >= -1e-4) {
				t.Errorf("matrix %d, element %d: %v, want %v", i, j, got[i][j], x)
				return
			}
		}
	}
}

// TestLateHelpersAreNotOvertaken runs many operations of which most take few workers, so that the
// other workers fall behind by as much as the leader allows.
func TestLateHelpersAreNotOvertaken(t *testing.T) {
	const members, orders = 12, 400
	p := crowd(t, members)
	var team teamState
	team.gather([]int{5, 7})
	takers := []int{2, 3, 0, 2, 7}
	sums := make([]counter, members)
	if err := p.do(func(w int) {
		s := &scratch{}
		if w > 0 {
			for order := uint64(1); ; order++ {
				p.await(&team.order, order)
				n := team.at[order%round]
				if n != nil {
					team.do(n, w, s)
				}
				team.done[team.word[w]].Store(order)
				if n == nil {
					return
				}
			}
		}
		for i := range orders {
			n := &node{work: adder(sums), pieces: 1, takers: takers[i%len(takers)]}
			order := team.hand(p, n)
			team.do(n, 0, s)
			team.await(p, order, team.members(n))
		}
		team.hand(p, nil)
	}); err != nil {
		t.Fatal(err)
	}
	want := make([]uint64, members)
	for i := range orders {
		n := takers[i%len(takers)]
		if n == 0 {
			n = members
		}
		for w := range n {
			want[w]++
		}
	}
	for w := range sums {
		if got := sums[w].Load(); got != want[w] {
			t.Errorf("worker %d took part in %d operations, want %d", w, got, want[w])
		}
	}
}

// An adder counts the operations that each worker takes part in.
type adder []counter

func (a adder) share(part, _ int, _ *scratch) { a[part].Add(1) }

// TestScansAreEvenlyShared draws random scans. With any number of workers, the busiest one has
// little more than the mean.
func TestScansAreEvenlyShared(t *testing.T) {
	rng := rand.New(rand.NewPCG(34, 5))
	size := func(most float64) int { return int(math.Exp(rng.Float64() * math.Log(most))) }
	for _, workers := range []int{2, 3, 5, 6, 7, 12, 16, 24, 48, 64} {
		pl := crowded(t, workers)
		for range 100 {
			steps, batch, hidden := 64+size(5000), size(70), size(2000)
			w := pl.newScan(&schedule.Sequence{Cell: cell.Linear, Steps: steps, State: []schedule.View{{M: &schedule.Matrix{Rows: (steps + 1) * batch, Cols: hidden}, Rows: (steps + 1) * batch, Cols: hidden}}}, false, fused.Inference, fused.Compose)
			w.settle(workers, 1+rng.IntN(workers), nil)
			if w.batch != batch || w.hidden != hidden {
				t.Fatalf("a scan of %d × %d", w.batch, w.hidden)
			}
			n := groups(w.most, w.cut)
			most := 0
			for part := range n {
				c := w.piece(part, n)
				most = max(most, c.rows*c.units)
			}
			if ratio := float64(most*n) / float64(batch*hidden); ratio > 1.25 && w.most/n < w.most {
				t.Errorf("%d of %d workers, %d sequences of %d units: the busiest has %.2f times the mean", w.most, workers, batch, hidden, ratio)
			}
		}
	}
}
