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
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// scans are a scan of c and its gradient over fresh matrices.
func scans(t *testing.T, c *cell.Cell, steps, batch, hidden int, train bool) (*schedule.Schedule, schedule.Scan, schedule.ScanBackward) {
	return scansIn(t, schedule.FP32, c, steps, batch, hidden, train)
}

// scansIn are those in a schedule of that precision; if it is of 16 bits, products multiply a state and the
// gradients of inputs, so that these are stored in as many.
func scansIn(t *testing.T, precision schedule.Precision, c *cell.Cell, steps, batch, hidden int, train bool) (*schedule.Schedule, schedule.Scan, schedule.ScanBackward) {
	b := schedule.NewBuilder(1)
	b.SetPrecision(precision)
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
	if precision == schedule.BF16 {
		b.Do(0, schedule.Gemm{A: op.State[0], B: b.Matrix("w", hidden, 1).All(), C: b.Matrix("m", rows+batch, 1).All()})
		b.Do(0, schedule.Gemm{A: g.DX, B: b.Matrix("w", gates*hidden, 1).All(), C: b.Matrix("m", rows, 1).All()})
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
	p := h200()
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
					if group, period := int(l.Args[5]), int(l.Args[6]); l.Grid[0] > tiles*chains || group < 2 || period*l.Grid[0]%chains != 0 {
						t.Errorf("%v %v: %d blocks, each %d turns, for %d chains of %d tiles in groups of %d", c, size, l.Grid[0], period, chains, tiles, group)
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
	if team, group := launches[0].Grid[0], int(launches[0].Args[5]); team != 29 || group < 2 || group >= team {
		t.Fatalf("a team of %d, tiles in groups of %d", team, group)
	}
	holds(t, d, s, op, nil)
}

// TestScanFewest: on an H200 all passes of one sequence of 32 channels are a team's from the steps on that
// scripts/gpu-sanitize runs, and not from fewer; of 192 channels it runs a team whose blocks look at each tile,
// of 8 channels one in which four threads look for each value, in training as well, and of 32 sequences of 128 tiles of which blocks have several.
func TestScanFewest(t *testing.T) {
	const fewest = 9504
	teams := func(steps int, train bool) (teams int) {
		s, _, _ := scans(t, cell.SRU, steps, 1, 32, train)
		launches, _, err := cuda.Sources(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range launches {
			if l.Cooperative {
				teams++
			}
		}
		return teams
	}
	for hidden, steps := range map[int]int{192: 1408, 8: 38016} {
		for _, train := range []bool{false, hidden == 8} {
			s, _, _ := scans(t, cell.SRU, steps, 1, hidden, train)
			if launches, texts, err := cuda.Sources(s, nil, h200()); err != nil || !launches[0].Cooperative || !strings.Contains(texts[0], "PARTS = 4") {
				t.Errorf("%d channels, training: %v: no team whose blocks look at each tile: %v", hidden, train, err)
			}
		}
	}
	for _, train := range []bool{false, true} {
		s, _, _ := scans(t, cell.GILR, 113, 32, 128, train)
		launches, _, err := cuda.Sources(s, knob.Params{"scansteps": 1}, h200())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range launches {
			if tiles := int(l.Args[4] * l.Args[5]); tiles <= 2*l.Grid[0] {
				t.Errorf("32 sequences: %d tiles for %d blocks", tiles, l.Grid[0])
			}
		}
	}
	if forward, train, before := teams(fewest, false), teams(fewest, true), teams(fewest-1, false); forward != 1 || train != 2 || before != 0 {
		t.Errorf("%d steps: %d teams, in training %d; with a step less %d", fewest, forward, train, before)
	}
}

// TestScanTurns: the member of a team that has the most to do has little more than a fair share.
func TestScanTurns(t *testing.T) {
	for _, hidden := range []int{8, 32, 128, 256} {
		for _, c := range []*cell.Cell{cell.Linear, cell.SRU, cell.LSLSTM.Core} {
			for _, steps := range []int{1 << 24 / hidden, 1<<24/hidden + 1, 3 << 20 / hidden} {
				s, _, _ := scans(t, c, steps, 1, hidden, true)
				launches, texts, err := cuda.Sources(s, nil, h200())
				if err != nil {
					t.Fatal(err)
				}
				for i, l := range launches {
					if !l.Cooperative {
						t.Fatalf("%v %d × %d: no team", c, steps, hidden)
					}
					var width, chunk, values, lanes, threads int
					_, after, _ := strings.Cut(texts[i], "enum { V = ")
					if _, err := fmt.Sscanf(after, "%d, K = %d, N = %d, LANES = %d, THREADS = %d", &width, &chunk, &values, &lanes, &threads); err != nil {
						t.Fatal(err)
					}
					chains, tiles := int(l.Args[3]), int(l.Args[4])
					turns := (chains*tiles + l.Grid[0] - 1) / l.Grid[0]
					most, fair := turns*threads/lanes*chunk, float64(steps)*float64(chains)/float64(l.Grid[0])
					if over := float64(most)/fair - 1; over > 0.15 || steps*hidden >= 1<<24 && over > 0.06 {
						t.Errorf("%v %d × %d: %d steps in %d turns of %d, %.1f %% more than a fair share", c, steps, hidden, most, turns, threads/lanes*chunk, 100*over)
					}
				}
			}
		}
	}
}

// TestScanAlone: inference of few channels has no groups on an H200 where a block looks at few tiles, of one chain
// if that leaves few multiprocessors idle; with what is kept for a gradient none is, and chains have many blocks.
func TestScanAlone(t *testing.T) {
	for _, test := range []struct {
		hidden, blocks  int
		alone, training bool
	}{
		{8, 132, true, true}, {32, 132, false, false}, {64, 132, false, false}, {96, 132, false, false}, {128, 132, true, true}, {160, 130, true, false},
		{192, 132, true, false}, {224, 132, false, false}, {256, 128, true, false}, {288, 132, false, false}, {320, 130, true, false}, {384, 132, true, false},
		{512, 128, true, false},
	} {
		for _, train := range []bool{false, true} {
			s, _, _ := scans(t, cell.Linear, 1<<24/test.hidden, 1, test.hidden, train)
			launches, texts, err := cuda.Sources(s, nil, h200())
			if err != nil {
				t.Fatal(err)
			}
			blocks, alone := launches[0].Grid[0], strings.Contains(texts[0], "PARTS = 4")
			if train && (blocks != 132 || alone != test.training) || !train && (blocks != test.blocks || alone != test.alone) {
				t.Errorf("%d channels, training: %v: %d blocks, without groups: %v", test.hidden, train, blocks, alone)
			}
			if !launches[0].Cooperative {
				t.Errorf("%d channels: no team", test.hidden)
			}
			if train && strings.Contains(texts[1], "PARTS = 4") {
				t.Errorf("%d channels: a gradient without groups", test.hidden)
			}
		}
	}
}

// TestScanTexts: scans of a program share a kernel only if they are cut and written alike. What one of two writes is columns
// of a matrix that has more, so that it leaves another way: by threads, what is whole by the copy engine.
func TestScanTexts(t *testing.T) {
	type more struct{ saved, state int } // vectors that a matrix has besides
	for _, test := range []struct {
		cell   *cell.Cell
		hidden int
		more   [2]more
	}{
		{cell.GILR, 32, [2]more{{}, {saved: 1}}},
		{cell.Linear, 8, [2]more{{saved: 1}, {state: 1}}}, // as many bytes are staged of either
	} {
		b := schedule.NewBuilder(1)
		c, hidden := test.cell, test.hidden
		for _, more := range test.more {
			const steps = 100000
			m := func(rows, vectors, more int) schedule.View {
				v := b.Matrix("m", rows, (vectors+more)*hidden).All()
				v.Cols = vectors * hidden
				return v
			}
			b.Do(0, schedule.Scan{Sequence: schedule.Sequence{
				Cell: c, Train: true, Steps: steps, X: m(steps, len(c.Gates), 0), BX: m(1, len(c.Gates), 0),
				Saved: m(steps, c.Saved, more.saved), State: []schedule.View{m(steps+1, 1, more.state)},
			}})
		}
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		launches, texts, err := cuda.Sources(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		if len(launches) != 2 || !launches[0].Cooperative || !launches[1].Cooperative {
			t.Fatalf("%v: %d launches, not two teams", c, len(launches))
		}
		for i, more := range test.more {
			// A state of 32 channels fills lines, which threads write.
			for matrix, whole := range map[string]bool{"all_saved": more.saved == 0, "state0": more.state == 0 && hidden < 32} {
				if strings.Contains(texts[i], "write_bulk("+matrix) != whole {
					t.Errorf("%v, scan %d: the engine writes %s: %v", c, i, matrix, !whole)
				}
			}
		}
	}
}

// older is a driver of a GPU without a copy engine.
type older struct{ cuda.Driver }

func (o older) Properties() cuda.Properties {
	p := o.Driver.Properties()
	p.Capability, p.Hopper = 80, false
	return p
}

// TestScanTeams holds what teams leave, of forward and of backward passes, to what single blocks
// leave: of tiles that the copy engine brings in one stretch or in boxes, of one sequence
// and of several, and of those that a warp copies.
func TestScanTeams(t *testing.T) {
	type form struct {
		name string
		sms  int
		old  bool
	}
	blocks, small, copies := form{"blocks", 3, false}, form{"a small team", 5, false}, form{"a warp's copies", 5, true}
	alone, groups, fewer := form{"a team without groups", 26, false}, form{"groups", 41, false}, form{"groups", 26, false}
	for i, test := range []struct {
		cell      *cell.Cell
		size      [3]int
		forms     []form
		precision schedule.Precision
	}{
		{cell.Linear, [3]int{5003, 1, 32}, []form{small, groups, copies}, schedule.FP32},
		{cell.Linear, [3]int{17001, 1, 8}, []form{alone}, schedule.FP32},
		{cell.Linear, [3]int{2001, 4, 8}, []form{small}, schedule.FP32},
		{cell.Linear, [3]int{1501, 3, 7}, []form{small}, schedule.FP32},
		{cell.GILR, [3]int{5003, 1, 32}, []form{alone, groups}, schedule.FP32},
		{cell.SRU, [3]int{3000, 1, 24}, []form{small}, schedule.FP32},
		{cell.QRNN, [3]int{5003, 1, 32}, []form{alone, groups}, schedule.FP32},
		{cell.LSLSTM.Core, [3]int{5003, 1, 32}, []form{small}, schedule.FP32},
		{cell.GILR, [3]int{1201, 1, 128}, []form{fewer}, schedule.FP32},
		{cell.Linear, [3]int{2003, 3, 32}, []form{fewer}, schedule.FP32},
		{cell.SRU, [3]int{8001, 1, 8}, []form{alone}, schedule.FP32},
		{cell.LSLSTM.Core, [3]int{1503, 1, 16}, []form{small}, schedule.FP32},
		{cell.GILR, [3]int{2003, 1, 32}, []form{small}, schedule.BF16},
		{cell.LSLSTM.Core, [3]int{2003, 1, 32}, []form{alone}, schedule.BF16},
		{cell.SRU, [3]int{1603, 1, 32}, []form{small}, schedule.BF16},
		{cell.GILR, [3]int{2007, 1, 5}, []form{small}, schedule.FP32},
		{cell.QRNN, [3]int{5001, 1, 3}, []form{small}, schedule.FP32},
		{cell.GILR, [3]int{2007, 1, 5}, []form{small, copies}, schedule.BF16},
	} {
		if testing.Short() && i%2 > 0 {
			continue
		}
		var want [][]float32
		within := 1e-4
		if test.precision == schedule.BF16 {
			within = 1.0 / 128
		}
		for _, f := range append([]form{blocks}, test.forms...) {
			compiler, driver := emulation(t, f.sms)
			var on cuda.Driver = driver
			if f.old {
				on = older{driver}
			}
			d := cuda.New(on, compiler, "")
			got := left(t, d, on.Properties(), test.precision, test.cell, test.size, f.name != blocks.name, f.name == alone.name)
			d.Close()
			if want == nil {
				want = got
				continue
			}
			for i, m := range got {
				for j, v := range m {
					if w := want[i][j]; !(math.Abs(float64(v-w)) <= within*(1+math.Abs(float64(w)))) {
						t.Fatalf("%s, %v %v: element %d of matrix %d is %v, want %v", f.name, test.cell, test.size, j, i, v, w)
					}
				}
			}
		}
	}
}

// TestScanInference holds inference of teams, which copies at a pace and has other tiles, to what they leave in training:
// of teams that meet in groups and of those whose blocks look at each tile.
func TestScanInference(t *testing.T) {
	for _, test := range []struct {
		cell *cell.Cell
		sms  int
		size [3]int // steps, batch, hidden
		sole bool
	}{
		{cell.SRU, 146, [3]int{40001, 1, 8}, false},
		{cell.SRU, 26, [3]int{8001, 1, 8}, true},
		{cell.GILR, 26, [3]int{60001, 1, 4}, false},
		{cell.GILR, 26, [3]int{5003, 1, 32}, true},
		{cell.Linear, 5, [3]int{5003, 1, 32}, true},
		{cell.SRU, 5, [3]int{4001, 1, 8}, true},
		{cell.GILR, 33, [3]int{3001, 1, 256}, true},
		{cell.LSLSTM.Core, 33, [3]int{2003, 1, 192}, true},
		{cell.QRNN, 33, [3]int{2003, 4, 64}, true},
		{cell.Linear, 33, [3]int{2003, 16, 16}, true},
	} {
		compiler, driver := emulation(t, test.sms)
		d := cuda.New(driver, compiler, "")
		s, _, _ := scans(t, test.cell, test.size[0], test.size[1], test.size[2], false)
		launches, texts, err := cuda.Sources(s, nil, driver.Properties())
		if err != nil {
			t.Fatal(err)
		}
		if sole := strings.Contains(texts[0], "PARTS = 4"); !launches[0].Cooperative || sole != test.sole {
			t.Fatalf("%v: a team: %v, whose blocks look at each tile: %v", test, launches[0].Cooperative, sole)
		}
		same(t, d, test.cell, test.size[0], test.size[1], test.size[2])
		d.Close()
	}
}

// random writes numbers to matrices, those that there are, of half at most: a factor that is one
// of them and a bias does not let states grow.
func random(t *testing.T, prog device.Program, rng *rand.Rand, views ...schedule.View) {
	t.Helper()
	for _, v := range views {
		if v.M == nil {
			continue
		}
		values := make([]float32, v.M.Elements())
		for i := range values {
			values[i] = rng.Float32() - 0.5
		}
		if err := prog.Write(v.M, values); err != nil {
			t.Fatal(err)
		}
	}
}

// left is what a scan for training and its gradient leave, in the second run.
func left(t *testing.T, d *cuda.Device, p cuda.Properties, precision schedule.Precision, c *cell.Cell, size [3]int, team, alone bool) (all [][]float32) {
	t.Helper()
	s, op, back := scansIn(t, precision, c, size[0], size[1], size[2], true)
	launches, texts, err := cuda.Sources(s, nil, p)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range launches {
		if strings.HasPrefix(l.Name, "scan") && l.Cooperative != team {
			t.Fatalf("%v %v: %s has %d blocks, a team: %v", c, size, l.Name, l.Grid[0], !team)
		}
		if without := strings.Contains(texts[i], "PARTS = 4"); without != (alone && l.Name == "scan") {
			t.Fatalf("%v %v: %s of %d blocks is without groups: %v", c, size, l.Name, l.Grid[0], without)
		}
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	rng := rand.New(rand.NewPCG(3, 4))
	random(t, prog, rng, op.X, op.BX, op.R, op.BR, back.DOut)
	random(t, prog, rng, op.State...)
	for range 2 {
		random(t, prog, rng, back.Carry...)
		if _, err := prog.Run(1); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range append(append(op.State, op.Saved, back.DX), back.Carry...) {
		if v.M == nil {
			continue
		}
		one := make([]float32, v.M.Elements())
		if err := prog.Read(v.M, one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestScanBurden: many chains are cut so that their last tiles are full, or nearly, and few ones into large tiles, of
// which a multiprocessor has memory for as many blocks as it should run.
func TestScanBurden(t *testing.T) {
	for _, test := range []struct {
		cell                   *cell.Cell
		steps, batch           int
		shared                 int // KiB of a multiprocessor
		chunk, resident, tiles int
	}{
		{cell.Linear, 1024, 64, 227, 8, 3, 8}, {cell.Linear, 1025, 64, 227, 6, 3, 11}, {cell.Linear, 64, 1024, 227, 8, 3, 1}, {cell.GILR, 1025, 64, 227, 6, 3, 11},
		{cell.Linear, 4096, 16, 227, 14, 2, 19}, {cell.SRU, 4096, 16, 227, 7, 2, 37}, {cell.GILR, 4096, 16, 227, 10, 3, 26},
		{cell.GILR, 8192, 8, 227, 14, 2, 37}, {cell.Linear, 200, 8, 227, 6, 3, 3},
		{cell.Linear, 4096, 16, 99, 10, 2, 26}, {cell.Linear, 1024, 64, 99, 6, 3, 11},
	} {
		s, _, _ := scans(t, test.cell, test.steps, test.batch, 256, false)
		p := h200()
		p.Shared = test.shared << 10
		launches, texts, err := cuda.Sources(s, nil, p)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(" K = %d, N = 4, RESIDENT = %d,", test.chunk, test.resident)
		if tiles := int(launches[0].Args[5]); !strings.Contains(texts[0], want) || tiles != test.tiles || launches[0].Shared*test.resident > p.Shared {
			_, got, _ := strings.Cut(texts[0], "enum { V = 4,")
			t.Errorf("%v, %d × %d, %d KiB: want%s %d tiles, got%.40s %d tiles in %d bytes", test.cell, test.batch, test.steps, test.shared, want, test.tiles, got, tiles, launches[0].Shared)
		}
	}
}

// TestScanExtremes: activations are what they should be of whatever is a number and of what is none, two at a time and one.
func TestScanExtremes(t *testing.T) {
	compiler, driver := emulation(t, 3)
	d := cuda.New(driver, compiler, "")
	defer d.Close()
	extremes(t, d)
}

// extremes holds a layer to its meaning where gates are near their limits or no numbers: in inference, where they are
// computed in pairs, and in training, one by one.
func extremes(t *testing.T, d device.Device) {
	t.Helper()
	values := []float32{0, -1, 1, -20, 20, -45, 45, -200, 200, -1e30, 1e30, float32(math.Inf(-1)), float32(math.Inf(1)), float32(math.NaN())}
	hidden := len(values) * len(values)
	for _, train := range []bool{false, true} {
		s, op, _ := scans(t, cell.GILR, 5, 1, hidden, train)
		if _, texts, err := cuda.Sources(s, nil, h200()); err != nil || strings.Contains(texts[0], "quick_pair<") == train {
			t.Fatalf("training: %v: in pairs: %v, %v", train, !train, err)
		}
		prog, err := d.Compile(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer prog.Close()
		x := make([]float32, op.X.M.Elements())
		for i := range x {
			u, step := i%hidden, i/(2*hidden)
			if u += step; i%(2*hidden) < hidden {
				x[i] = values[u%len(values)]
			} else {
				x[i] = values[u%hidden/len(values)]
			}
		}
		states := make([]float32, op.State[0].M.Elements())
		if err := errors.Join(prog.Write(op.X.M, x), prog.Write(op.BX.M, make([]float32, 2*hidden)), prog.Write(op.State[0].M, states)); err != nil {
			t.Fatal(err)
		}
		if _, err := prog.Run(1); err != nil {
			t.Fatal(err)
		}
		if err := prog.Read(op.State[0].M, states); err != nil {
			t.Fatal(err)
		}
		want := make([]float64, hidden)
		for step := range op.Steps {
			for u := range want {
				gate, in := float64(x[2*step*hidden+u]), float64(x[(2*step+1)*hidden+u])
				g := 1 / (1 + math.Exp(-gate))
				want[u] = g*want[u] + (1-g)*math.Tanh(in)
				got := float64(states[(step+1)*hidden+u])
				if math.IsNaN(want[u]) != math.IsNaN(got) || math.Abs(got-want[u]) > 1e-6 {
					t.Fatalf("training: %v, step %d, gate %v, input %v: %v, want %v", train, step, gate, in, got, want[u])
				}
			}
		}
	}
}

// TestScanWalkers holds recurrences of few channels, through which one block or
// several walk, to their meaning, in the second run.
func TestScanWalkers(t *testing.T) {
	compiler, driver := emulation(t, 29)
	d := cuda.New(driver, compiler, "")
	defer d.Close()
	for _, size := range [][2]int{{5000, 2}, {1500, 260}} {
		steps, hidden := size[0], size[1]
		s, op, _ := scans(t, cell.Linear, steps, 1, hidden, false)
		launches, _, err := cuda.Sources(s, nil, driver.Properties())
		if err != nil {
			t.Fatal(err)
		}
		if walkers := int(launches[0].Args[6]); (walkers > 1) != (hidden > 128) || walkers == 0 {
			t.Fatalf("%d walkers for %d channels", walkers, hidden)
		}
		holds(t, d, s, op, nil)
	}
}

// TestScanSteps: a thread has as many steps as a knob says, in tiles and in teams, also those that teams of few channels
// do not have by themselves.
func TestScanSteps(t *testing.T) {
	compiler, driver := emulation(t, 29)
	d := cuda.New(driver, compiler, "")
	defer d.Close()
	for _, test := range []struct{ steps, hidden, most int }{{9, 33, 5}, {700, 260, 5}, {5003, 32, 5}, {11200, 8, 8}} {
		for _, n := range []int{1, 3, test.most} {
			s, op, _ := scans(t, cell.Linear, test.steps, 1, test.hidden, false)
			_, texts, err := cuda.Sources(s, knob.Params{"scansteps": n}, driver.Properties())
			if err != nil || !strings.Contains(texts[0], fmt.Sprintf(" K = %d,", n)) {
				t.Fatalf("%d×%d: not %d steps: %v", test.steps, test.hidden, n, err)
			}
			holds(t, d, s, op, knob.Params{"scansteps": n})
		}
	}
}

// holds compares a linear scan's states with what they mean, in the second run.
func holds(t *testing.T, d device.Device, s *schedule.Schedule, op schedule.Scan, k knob.Params) {
	t.Helper()
	prog, err := d.Compile(s, k)
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
