package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// thereAndBack returns a layer and its gradient, as persistent operations.
func thereAndBack(t *testing.T, c *cell.Cell, hidden, batch, steps int) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(1)
	all := func(name string, rows, cols int) schedule.View { return b.Matrix(name, rows, cols).All() }
	rows, gates := steps*batch, len(c.Gates)
	seq := schedule.Sequence{Cell: c, Train: true, Steps: steps, X: all("x", rows, gates*hidden), BX: all("bx", 1, gates*hidden), BR: all("br", 1, c.Recurrent*hidden)}
	g := schedule.SequenceGrad{DOut: all("dout", rows, hidden), DX: all("dx", rows, gates*hidden)}
	for range c.States {
		seq.State, g.Carry = append(seq.State, all("state", rows+batch, hidden)), append(g.Carry, all("carry", batch, hidden))
	}
	if c.Saved > 0 {
		seq.Saved = all("saved", rows, c.Saved*hidden)
	}
	if c.SplitGrad {
		g.DR = all("dr", rows, c.Recurrent*hidden)
	}
	weights := all("R", c.Recurrent*hidden, hidden)
	back, forth := b.Packed("back", c.Recurrent*hidden, hidden).All(), []schedule.View(nil)
	b.Prepare(schedule.Pack{Src: weights, Dst: back})
	for i := range c.Recurrent {
		p := b.Packed("forth", hidden, hidden).All()
		b.Prepare(schedule.Pack{Src: weights.Band(i*hidden, hidden), Dst: p, Trans: true})
		forth = append(forth, p)
	}
	b.Do(0, schedule.Persistent{Sequence: seq, R: forth})
	b.Do(0, schedule.PersistentBackward{Sequence: seq, SequenceGrad: g, R: back})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWeightsBeyondL2AreReadInTurn: if a worker's own cache does not hold the weights, a step of
// few sequences reads them in parts, every other step from the end. Results are almost the same.
func TestWeightsBeyondL2AreReadInTurn(t *testing.T) {
	for _, c := range []*cell.Cell{cell.RNNReLU, cell.GRU, cell.LSTM} {
		for _, threads := range []int{1, 2} {
			for _, batch := range []int{1, 3} {
				inTurnOrNot(t, c, threads, batch)
			}
		}
	}
}

// inTurnOrNot compares a layer whose weights exceed a small L2 with the same layer and a large L2.
func inTurnOrNot(t *testing.T, c *cell.Cell, threads, batch int) {
	t.Helper()
	const hidden = 201
	s := thereAndBack(t, c, hidden, batch, 5)
	k := knob.Params{}
	if threads > 1 && batch > 1 { // workers share units
		k["sequences"] = 1
	}
	var want [][]float32
	for _, l2 := range []int{64 << 20, 20 << 10} {
		d, err := Open(Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		d.gemm = gemm.New(d.kernels, l2)
		b := band{program: &program{device: d, format: simd.F32}, batch: batch, hidden: hidden}
		if n := b.parts(c.Recurrent, hidden, hidden, batch); (n > 1) != (l2 < 1<<20) {
			t.Errorf("%v: %d parts with %d KiB of L2", c, n, l2>>10)
		}
		w := persistent{band: b, weights: make([][]float32, c.Recurrent)}
		if d.kernels.Level() >= simd.AVX512 && w.calls(hidden) != (l2 > 1<<20) {
			t.Errorf("%v: one call runs all steps with %d KiB of L2", c, l2>>10)
		}
		got := once(t, d, s, k)
		if want == nil {
			want = got
		}
		for i := range got {
			for j, v := range got[i] {
				if diff := math.Abs(float64(v - want[i][j])); !(diff <= 1e-5) {
					t.Fatalf("%v, %d workers, %s: %v, and %v with a large L2", c, threads, s.Matrices[i].Name, v, want[i][j])
				}
			}
		}
	}
}

// once runs s on d with random values and returns all matrices.
func once(t *testing.T, d *Device, s *schedule.Schedule, k knob.Params) (all [][]float32) {
	t.Helper()
	p, err := d.Compile(s, k)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, m := range s.Matrices {
		values := make([]float32, m.Elements())
		for i := range values {
			values[i] = (2*rng.Float32() - 1) / 8
		}
		if !m.Private() {
			if err := p.Write(m, values); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(1); err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Matrices {
		values := make([]float32, m.Elements())
		if !m.Private() {
			if err := p.Read(m, values); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, values)
	}
	return all
}
