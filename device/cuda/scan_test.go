package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// scans are a scan of c and its gradient over fresh matrices.
func scans(t *testing.T, c *cell.Cell, steps, batch, hidden int, train bool) (*schedule.Schedule, schedule.Scan, schedule.ScanBackward) {
	b := schedule.NewBuilder(1)
	all := func(rows, vectors int) schedule.View {
		if vectors == 0 {
			return schedule.View{}
		}
		return b.Matrix("m", rows, vectors*hidden).All()
	}
	rows, gates := steps*batch, len(c.Gates)
	op := schedule.Scan{Sequence: schedule.Sequence{Cell: c, Train: train, Steps: steps, X: all(rows, gates), BX: all(1, gates)}}
	op.R, op.BR = all(rows, c.Recurrent), all(1, c.Recurrent)
	if train {
		op.Saved = all(rows, c.Saved)
	}
	g := schedule.SequenceGrad{DOut: all(rows, 1), DX: all(rows, gates)}
	for range c.States {
		op.State, g.Carry = append(op.State, all(rows+batch, 1)), append(g.Carry, all(batch, 1))
	}
	back := schedule.ScanBackward{Sequence: op.Sequence, SequenceGrad: g}
	b.Do(0, op)
	if train {
		b.Do(0, back)
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s, op, back
}

// TestScanMoves holds the bytes of docs/scan.md to what kernels read and write.
func TestScanMoves(t *testing.T) {
	for _, want := range []struct {
		cell                         *cell.Cell
		inference, forward, backward int
	}{
		{cell.Linear, 12, 16, 20}, {cell.GILR, 12, 20, 24}, {cell.SRU, 24, 40, 40}, {cell.QRNN, 20, 32, 32},
		{cell.LSLSTM.Surrogate, 12, 20, 24}, {cell.LSLSTM.Core, 40, 56, 40},
	} {
		_, inference, _ := scans(t, want.cell, 2, 1, 4, false)
		_, forward, backward := scans(t, want.cell, 2, 1, 4, true)
		if i, f, b := cuda.Moved(inference), cuda.Moved(forward), cuda.Moved(backward); i != want.inference || f != want.forward || b != want.backward {
			t.Errorf("%v moves %d, %d and %d bytes, want %d, %d and %d", want.cell, i, f, b, want.inference, want.forward, want.backward)
		}
	}
}

// TestScanTiles checks that tiles cover all channels and steps, and that there
// are enough of them to fill a GPU where there is enough to do.
func TestScanTiles(t *testing.T) {
	p := cuda.Properties{SMs: 132, Shared: 227 << 10, Capability: 90}
	for _, size := range [][3]int{
		{1, 1, 1}, {1, 1, 1000}, {2, 7, 33}, {65536, 1, 256}, {65537, 1, 256}, {1024, 64, 256}, {1 << 20, 1, 32}, {1 << 22, 1, 8}, {1 << 20, 1, 1}, {5000, 1, 3}, {16, 256, 1024}, {3, 1, 100000}, {5, 1, 17},
	} {
		for _, c := range []*cell.Cell{cell.Linear, cell.SRU, cell.QRNN, cell.LSLSTM} {
			s, _, _ := scans(t, c, size[0], size[1], size[2], true)
			launches, texts, err := cuda.Sources(s, nil, p)
			if err != nil {
				t.Fatal(err)
			}
			for i, l := range launches {
				var width, chunk, values int
				_, after, _ := strings.Cut(texts[i], "enum { V = ")
				if _, err := fmt.Sscanf("V = "+after, "V = %d, K = %d, N = %d", &width, &chunk, &values); err != nil {
					t.Fatal(err)
				}
				threads, lanes, chains, tiles := l.Block[0], 1<<l.Args[3], int(l.Args[4]), int(l.Args[5])
				if l.Cooperative {
					if _, err := fmt.Sscanf(after[strings.Index(after, "LANES"):], "LANES = %d, THREADS = %d", &lanes, &threads); err != nil {
						t.Fatal(err)
					}
					chains, tiles = int(l.Args[3]), int(l.Args[4])
					if members := int(l.Args[5]); members > tiles || l.Grid[0] != members*chains {
						t.Errorf("%v %v: %d blocks in teams of %d for %d chains of %d tiles", c, size, l.Grid[0], members, chains, tiles)
					}
				}
				deep := threads / lanes
				channels, steps := chains*lanes*width, tiles*deep*chunk
				if threads < 64 || threads&(threads-1) != 0 || deep*lanes != threads { // two warps at least, see leastThreads
					t.Errorf("%v %v: %d threads in %d lanes", c, size, threads, lanes)
				}
				if channels < size[1]*size[2] || channels >= size[1]*size[2]+width*lanes || steps < size[0] || steps >= size[0]+deep*chunk {
					t.Errorf("%v %v: tiles cover %d channels and %d steps", c, size, channels, steps)
				}
				if l.Shared > p.Shared {
					t.Errorf("%v %v: %d bytes of shared memory", c, size, l.Shared)
				}
				if work := size[0] * size[1] * size[2]; work >= 1<<24 && (l.Grid[0] < 2*p.SMs && !l.Cooperative || 10*l.Grid[0] < 9*p.SMs) {
					t.Errorf("%v %v: %d blocks", c, size, l.Grid[0])
				}
			}
		}
	}
}

// TestScanGroups holds a recurrence whose team is so large that it meets in groups
// to its meaning, in the second run.
func TestScanGroups(t *testing.T) {
	compiler, driver := emulation(t, 29)
	d := cuda.New(driver, compiler, "")
	defer d.Close()
	const steps, hidden = 60000, 2
	s, op, _ := scans(t, cell.Linear, steps, 1, hidden, false)
	launches, _, err := cuda.Sources(s, nil, driver.Properties())
	if err != nil {
		t.Fatal(err)
	}
	if team, group := launches[0].Args[5], launches[0].Args[6]; team != 29 || group < 2 || group >= team {
		t.Fatalf("a team of %d in groups of %d", team, group)
	}
	holds(t, d, s, op)
}

// TestScanCrews holds inference of few channels, over several eras, to the passes that
// keep values for a gradient, which no crews do.
func TestScanCrews(t *testing.T) {
	compiler, driver := emulation(t, 8)
	d := cuda.New(driver, compiler, "")
	defer d.Close()
	for c, size := range map[*cell.Cell][2]int{cell.GILR: {20000, 3}, cell.SRU: {3001, 40}, cell.QRNN: {5003, 24}} {
		s, _, _ := scans(t, c, size[0], 1, size[1], false)
		_, texts, err := cuda.Sources(s, nil, driver.Properties())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(texts[0], "LOADERS = ") {
			t.Errorf("%v over %d steps and %d channels: no crew", c, size[0], size[1])
		}
		same(t, d, c, size[0], size[1])
	}
}

// same compares the states of inference with those that are kept for a gradient, in
// the second run.
func same(t *testing.T, d device.Device, c *cell.Cell, steps, hidden int) {
	t.Helper()
	var states [2][]float32
	for i, train := range []bool{false, true} {
		s, op, _ := scans(t, c, steps, 1, hidden, train)
		prog, err := d.Compile(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer prog.Close()
		rng := rand.New(rand.NewPCG(3, 4))
		for _, v := range append([]schedule.View{op.X, op.BX, op.R, op.BR}, op.State...) {
			if v.M == nil {
				continue
			}
			values := make([]float32, v.M.Elements())
			for i := range values {
				values[i] = 2*rng.Float32() - 1
			}
			if err := prog.Write(v.M, values); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, err := prog.Run(1); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range op.State {
			one := make([]float32, v.M.Elements())
			if err := prog.Read(v.M, one); err != nil {
				t.Fatal(err)
			}
			states[i] = append(states[i], one...)
		}
	}
	for i, got := range states[0] {
		if want := states[1][i]; !(math.Abs(float64(got-want)) <= 1e-5) {
			t.Fatalf("%v: state %d is %v, want %v", c, i, got, want)
		}
	}
}

// TestScanWalkers holds recurrences of few channels, through which one block or
// several walk, to their meaning, in the second run.
func TestScanWalkers(t *testing.T) {
	compiler, driver := emulation(t, 29)
	d := cuda.New(driver, compiler, "")
	defer d.Close()
	for _, size := range [][2]int{{5000, 2}, {700, 260}} {
		steps, hidden := size[0], size[1]
		s, op, _ := scans(t, cell.Linear, steps, 1, hidden, false)
		launches, _, err := cuda.Sources(s, nil, driver.Properties())
		if err != nil {
			t.Fatal(err)
		}
		if walkers := int(launches[0].Args[6]); (walkers > 1) != (hidden > 128) || walkers == 0 {
			t.Fatalf("%d walkers for %d channels", walkers, hidden)
		}
		holds(t, d, s, op)
	}
}

// holds compares a linear scan's states with what they mean, in the second run.
func holds(t *testing.T, d *cuda.Device, s *schedule.Schedule, op schedule.Scan) {
	t.Helper()
	prog, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	rng := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, op.X.M.Elements())
	for i := range x {
		x[i] = 2*rng.Float32() - 1
	}
	hidden := op.Hidden()
	states, want := make([]float32, op.State[0].M.Elements()), make([]float64, hidden)
	for u := range want {
		want[u] = 0.5 - float64(u%2)
		states[u] = float32(want[u])
	}
	if err := errors.Join(prog.Write(op.X.M, x), prog.Write(op.BX.M, make([]float32, 2*hidden)), prog.Write(op.State[0].M, states)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := prog.Run(1); err != nil {
			t.Fatal(err)
		}
	}
	if err := prog.Read(op.State[0].M, states); err != nil {
		t.Fatal(err)
	}
	for i := range op.Steps {
		for u := range want {
			want[u] = float64(x[i*2*hidden+u])*want[u] + float64(x[i*2*hidden+hidden+u])
			if got := states[(i+1)*hidden+u]; math.Abs(float64(got)-want[u]) > 1e-5 {
				t.Fatalf("step %d, unit %d: %v, want %v", i, u, got, want[u])
			}
		}
	}
}
