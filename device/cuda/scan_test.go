package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// scans returns a scan of c and its gradient over new matrices.
func scans(t *testing.T, c *cell.Cell, steps, batch, hidden int, train bool) (*schedule.Schedule, schedule.Scan, schedule.ScanBackward) {
	return scansIn(t, schedule.FP32, c, steps, batch, hidden, train)
}

// scansIn is the same in a schedule of that precision. In 16 bits, products multiply a state and
// the gradients of inputs, so that these are stored in 16 bits.
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
	if n := len(c.Peeps); n > 0 {
		op.Peep = all(1, n)
	}
	g := schedule.SequenceGrad{DOut: all(rows, 1), DX: all(rows, c.Gradients())}
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

// TestScanMoves holds the bytes in docs/kernels.md to what kernels read and write.
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

// A cutting says how a launch divides a scan, according to its arguments and its kernel's text.
type cutting struct {
	kind                  string // tiles: drawn by blocks; of teams: groups; alone: no groups; rows: with walkers, not counted in blocks
	blocks, threads       int
	width, lanes, chains  int // width: channels per thread
	steps, tail           int // per thread, and in tiles of a team's last turn
	tiles, regular, group int // per chain; regular: those before the last turn
	units, seqs           int // channels per sequence of a chain, and sequences; 0: a chain is lanes vectors side by side
}

// cuts lists the cuttings of the scans among the launches of s.
func cuts(t testing.TB, s *schedule.Schedule, k knob.Params, p driver.Properties) (all []cutting) {
	t.Helper()
	launches, texts, err := cuda.Sources(s, k, p)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range launches {
		if !strings.HasPrefix(l.Name, "scan") {
			continue
		}
		c := cutting{kind: "tiles", blocks: l.Grid[0], threads: l.Block[0], lanes: 1 << l.Args[3], chains: int(l.Args[4]), tiles: int(l.Args[5])}
		_, text, _ := strings.Cut(texts[i], "enum { V = ")
		pattern := "%d, K = %d"
		if l.Cooperative {
			pattern += ", TAIL = %d, N = %d, LANES = %d, THREADS = %d"
			c.kind, c.chains, c.tiles, c.group = "groups", int(l.Args[3]), int(l.Args[4]), int(l.Args[5])
		}
		var values int
		read := []any{&c.width, &c.steps, &c.tail, &values, &c.lanes, &c.threads}
		if _, err := fmt.Sscanf(text, pattern, read[:strings.Count(pattern, "%")]...); err != nil {
			t.Fatal(err)
		}
		_, text, _ = strings.Cut(text, "UNITS = ")
		if _, err := fmt.Sscanf(text, "%d, SEQS = %d", &c.units, &c.seqs); err != nil {
			t.Fatal(err)
		}
		if c.kind == "tiles" && c.units > 0 {
			_, lanes, _ := strings.Cut(text, "LANES = ")
			if _, err := fmt.Sscanf(lanes, "%d", &c.lanes); err != nil {
				t.Fatal(err)
			}
		}
		c.regular = c.tiles
		if strings.Contains(text, "seek_together(g, me") {
			c.kind, c.regular, c.group = "alone", int(l.Args[5]), 1
		}
		if strings.Contains(text, "seek_given(g, me") {
			c.kind, c.blocks = "rows", c.blocks-int(l.Args[5])
		}
		all = append(all, c)
	}
	return all
}

// deep returns the number of threads that share a channel's steps.
func (c cutting) deep() int { return c.threads / c.lanes }

func (c cutting) covers() (steps, channels int) {
	return c.deep() * (c.regular*c.steps + (c.tiles-c.regular)*c.tail), c.chains * c.lanes * c.width
}

// covered checks that the tiles of all passes cover all channels and steps, with none to spare. It
// also checks that enough tiles fill a GPU if there is enough work.
func covered(t *testing.T, of *cell.Cell, steps, batch, hidden int, p driver.Properties) {
	t.Helper()
	for _, train := range []bool{false, true} {
		s, _, _ := scans(t, of, steps, batch, hidden, train)
		launches, _, err := cuda.Sources(s, nil, p)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cuts(t, s, nil, p) {
			fail := func(format string, args ...any) {
				t.Helper()
				t.Errorf("%v %d × %d × %d, training: %v, %s: %s: %+v", of, batch, hidden, steps, train, launches[i].Name, fmt.Sprintf(format, args...), c)
			}
			whole := c.threads&(c.threads-1) == 0 && c.deep()*c.lanes == c.threads
			if c.lanes == 96 { // rows of three warps
				whole = c.threads == c.lanes
			}
			if c.kind == "rows" { // whole warpgroups, of which some threads idle
				whole = c.threads%128 == 0 && c.deep()*c.lanes > c.threads/3
			}
			if c.threads < 64 || !whole { // two warps at least, see leastThreads
				fail("threads in lanes")
			}
			n, channels := c.covers()
			if c.units > 0 { // a chain has some channels of one sequence, or all of several
				if chains := (batch + c.seqs - 1) / c.seqs * ((hidden + c.units - 1) / c.units); c.chains != chains || c.units*c.seqs > c.lanes {
					fail("want %d chains", chains)
				}
				channels = batch * hidden
			}
			if channels < batch*hidden || channels >= batch*hidden+c.width*c.lanes || n < steps || n >= steps+c.deep()*c.steps {
				fail("tiles cover %d channels and %d steps", channels, n)
			}
			if c.kind != "tiles" && (c.blocks > p.SMs || c.blocks > c.tiles*c.chains || c.tail > c.steps || c.kind != "rows" && (c.group < 2) != (c.kind == "alone")) {
				fail("a team")
			}
			if shared := launches[i].Shared; shared > p.Shared {
				fail("%d bytes of shared memory", shared)
			}
			if work := steps * batch * hidden; work >= 1<<24 && (c.blocks < 2*p.SMs && c.kind == "tiles" || 10*c.blocks < 9*p.SMs) {
				fail("few blocks")
			}
		}
	}
}

func TestScanTiles(t *testing.T) {
	for _, size := range [][3]int{
		{1, 1, 1}, {1, 1, 1000}, {2, 7, 33}, {65536, 1, 256}, {65537, 1, 256}, {1024, 64, 256}, {1 << 20, 1, 32}, {1 << 22, 1, 8}, {1 << 20, 1, 1}, {5000, 1, 3}, {16, 256, 1024}, {3, 1, 100000}, {5, 1, 17},
		{8193, 8, 256}, {500, 16, 256}, {70, 1, 256}, {4096, 12, 256}, {1201, 25, 64}, {100001, 1, 128},
	} {
		for _, c := range []*cell.Cell{cell.Linear, cell.SRU, cell.QRNN, cell.LSLSTM} {
			covered(t, c, size[0], size[1], size[2], h200())
		}
	}
}

func FuzzScanTiles(f *testing.F) {
	f.Add(uint32(65537), uint16(1), uint16(256), byte(132), true)
	f.Add(uint32(200), uint16(8), uint16(256), byte(108), false)
	f.Add(uint32(4099), uint16(33), uint16(36), byte(78), true)
	f.Fuzz(func(t *testing.T, steps uint32, batch, hidden uint16, sms byte, hopper bool) {
		p := h200()
		if p.SMs = 1 + int(sms); !hopper {
			p.Capability, p.Hopper, p.Shared = 80, false, 164<<10
		}
		for _, c := range []*cell.Cell{cell.Linear, cell.GILR, cell.LSLSTM.Core} {
			covered(t, c, 1+int(steps%(1<<22)), 1+int(batch%256), 1+int(hidden%2048), p)
		}
	})
}

// TestScanGroups holds a recurrence to its meaning, in the second run, whose team is so large that
// it has groups.
func TestScanGroups(t *testing.T) {
	compiler, driver := emulation(t, 41)
	d := cuda.New(driver, compiler, "")
	defer d.Close()
	const steps, hidden = 9001, 32
	s, op, _ := scans(t, cell.Linear, steps, 1, hidden, false)
	launches, _, err := cuda.Sources(s, nil, driver.Properties())
	if err != nil {
		t.Fatal(err)
	}
	if team, group := launches[0].Grid[0], int(launches[0].Args[5]); team != 41 || group < 2 || group >= team {
		t.Fatalf("a team of %d, tiles in groups of %d", team, group)
	}
	holds(t, d, s, op, nil, nil)
}

// TestScanSanitized: on an H200, scripts/gpu-sanitize runs scans of every kind whose blocks have
// several tiles.
func TestScanSanitized(t *testing.T) {
	for _, test := range []struct {
		cell                         *cell.Cell
		batch, hidden, steps, thread int
		kind                         string // of the forward pass
	}{
		{cell.GILR, 40, 128, 113, 1, "tiles"},
		{cell.SRU, 1, 32, 9504, 2, "groups"},
		{cell.SRU, 1, 192, 1408, 2, "alone"},
		{cell.SRU, 1, 8, 38016, 3, "alone"},   // four threads look back for each value
		{cell.GILR, 32, 128, 200, 3, "alone"}, // one chain per block
	} {
		for _, train := range []bool{false, true} {
			s, _, _ := scans(t, test.cell, test.steps, test.batch, test.hidden, train)
			for i, c := range cuts(t, s, knob.Params{"scansteps": test.thread}, h200()) {
				if i == 0 && c.kind != test.kind || c.tiles*c.chains <= 2*c.blocks {
					t.Errorf("%v, %d × %d × %d, training: %v, scan %d: %+v", test.cell, test.batch, test.hidden, test.steps, train, i, c)
				}
			}
		}
	}
}

// TestScanTurns: the busiest block of a team has little more than a fair share of the work.
func TestScanTurns(t *testing.T) {
	for _, hidden := range []int{8, 32, 128, 256} {
		for _, of := range []*cell.Cell{cell.Linear, cell.SRU, cell.LSLSTM.Core} {
			for _, steps := range []int{1 << 24 / hidden, 1<<24/hidden + 1, 3 << 20 / hidden} {
				s, _, _ := scans(t, of, steps, 1, hidden, true)
				for _, c := range cuts(t, s, nil, h200()) {
					turns := (c.chains*c.tiles + c.blocks - 1) / c.blocks
					most, fair := c.deep()*((turns-1)*c.steps+c.tail), float64(steps)*float64(c.chains)/float64(c.blocks)
					if over := float64(most)/fair - 1; c.kind == "tiles" || over > 0.15 || steps*hidden >= 1<<24 && over > 0.06 {
						t.Errorf("%v %d × %d: %d steps in %d turns, %.1f %% more than a fair share: %+v", of, steps, hidden, most, turns, 100*over, c)
					}
				}
			}
		}
	}
}

// TestScanBoxes: boxes have at most 256 rows. Still, few channels of several sequences have tiles
// about as long as many channels.
func TestScanBoxes(t *testing.T) {
	for _, size := range [][2]int{{2, 4}, {4, 4}, {2, 8}, {2, 16}, {4, 64}} {
		s, _, _ := scans(t, cell.Linear, 1<<20, size[0], size[1], false)
		for _, c := range cuts(t, s, nil, h200()) {
			if c.kind != "tiles" && c.steps < 24 {
				t.Errorf("%d × %d: %+v", size[0], size[1], c)
			}
		}
	}
}

// TestScanKinds: the kind of each pass of a linear recurrence on an H200: a team with groups or
// without, of how many blocks, or tiles that blocks draw.
func TestScanKinds(t *testing.T) {
	for _, test := range []struct {
		batch, hidden, steps         int
		inference, forward, backward string
	}{
		// One sequence. There are no groups if a block looks back over few tiles. A block has tiles
		// of one chain if that leaves few multiprocessors idle.
		{1, 8, 1 << 21, "alone 132", "alone 132", "groups 132"},
		{1, 32, 1 << 19, "groups 132", "groups 132", "groups 132"},
		{1, 64, 1 << 18, "groups 132", "groups 132", "groups 132"},
		{1, 128, 1 << 20, "alone 132", "alone 132", "groups 132"},
		{1, 160, 1 << 16, "alone 130", "alone 130", "groups 132"},
		{1, 192, 1 << 16, "alone 132", "alone 132", "groups 132"},
		{1, 224, 1 << 16, "groups 132", "groups 132", "groups 132"},
		{1, 256, 1 << 16, "alone 128", "alone 128", "groups 132"},
		{1, 256, 1 << 18, "alone 128", "groups 132", "groups 132"},
		{1, 288, 1 << 16, "groups 132", "groups 132", "groups 132"},
		{1, 512, 1 << 14, "alone 128", "alone 128", "groups 132"},
		// Few steps, and unaligned rows.
		{1, 256, 200, "alone 104", "alone 104", "tiles"},
		{1, 256, 60, "tiles", "tiles", "tiles"},
		{1, 224, 600, "groups 132", "groups 132", "groups 132"},
		{1, 224, 500, "tiles", "tiles", "tiles"},
		{1, 30, 4096, "groups 132", "groups 132", "groups 132"},
		{1, 30, 2000, "groups 132", "groups 132", "groups 132"},
		{1, 30, 500, "tiles", "tiles", "tiles"},
		{3, 77, 100003, "groups 132", "groups 132", "groups 132"},
		{2, 5, 1 << 21, "groups 132", "groups 132", "groups 132"},
		{5, 100, 30011, "alone 132", "groups 132", "groups 132"},
		{7, 333, 2999, "alone 132", "rows 126", "tiles"},
		{4096, 3, 50, "tiles", "tiles", "tiles"},
		{1, 1, 1 << 23, "alone 132", "alone 132", "groups 132"},
		// More chains, up to as many as blocks.
		{8, 256, 8192, "alone 128", "alone 128", "groups 132"},
		{25, 64, 8192, "groups 132", "groups 132", "groups 132"},
		{8, 250, 8192, "alone 128", "alone 128", "groups 132"},
		{12, 256, 4096, "alone 132", "tiles", "tiles"},
		{16, 256, 1000, "alone 128", "alone 128", "tiles"},
		{16, 256, 4096, "alone 128", "tiles", "tiles"},
		{16, 256, 8192, "tiles", "tiles", "tiles"},
		{17, 256, 1000, "tiles", "tiles", "tiles"},
	} {
		for _, train := range []bool{false, true} {
			want := []string{test.inference}
			if train {
				want = []string{test.forward, test.backward}
			}
			s, _, _ := scans(t, cell.Linear, test.steps, test.batch, test.hidden, train)
			for i, c := range cuts(t, s, nil, h200()) {
				got := c.kind
				if got != "tiles" {
					got = fmt.Sprint(c.kind, " ", c.blocks)
				}
				if got != want[i] {
					t.Errorf("%d × %d × %d, training: %v, scan %d: %s, want %s", test.batch, test.hidden, test.steps, train, i, got, want[i])
				}
			}
		}
	}
}

// TestScanTexts: scans of a program share a kernel only if they are divided and written alike. One
// of these two writes a part of a matrix's columns, so threads write it; the copy engine writes
// whole matrices.
func TestScanTexts(t *testing.T) {
	type more struct{ saved, state int } // further vectors of a matrix
	for _, test := range []struct {
		cell   *cell.Cell
		hidden int
		more   [2]more
	}{
		{cell.GILR, 32, [2]more{{}, {saved: 1}}},
		{cell.Linear, 8, [2]more{{saved: 1}, {state: 1}}}, // both stage as many bytes
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
type older struct{ driver.Driver }

func (o older) Properties() driver.Properties {
	p := o.Driver.Properties()
	p.Capability, p.Hopper = 80, false
	return p
}

// TestScanTeams holds the results of teams, in forward and backward passes, to those of single
// blocks. The copy engine copies tiles in one stretch or in boxes, of one sequence and of several;
// or a warp copies them.
func TestScanTeams(t *testing.T) {
	type form struct {
		name  string
		sms   int
		old   bool
		kinds [2]string // forward and backward
	}
	blocks, copies := form{name: "blocks", sms: 1, old: true, kinds: [2]string{"tiles", "tiles"}}, form{name: "a warp's copies", sms: 5, old: true, kinds: [2]string{"groups", "groups"}}
	small, alone := form{name: "a small team", sms: 5, old: false, kinds: [2]string{"alone", "groups"}}, form{name: "a team without groups", sms: 26, old: false, kinds: [2]string{"alone", "groups"}}
	groups, own := form{name: "groups", sms: 47, old: false, kinds: [2]string{"groups", "groups"}}, form{name: "a chain for each block", sms: 26, old: false, kinds: [2]string{"alone", "tiles"}}
	odd := form{name: "rows that begin anywhere", sms: 5, old: false, kinds: [2]string{"alone", "groups"}}
	for i, test := range []struct {
		cell      *cell.Cell
		size      [3]int
		forms     []form
		precision schedule.Precision
	}{
		{cell.Linear, [3]int{5003, 1, 32}, []form{small, groups, copies}, schedule.FP32},
		{cell.Linear, [3]int{17001, 1, 8}, []form{alone}, schedule.FP32},
		{cell.Linear, [3]int{2001, 4, 8}, []form{small}, schedule.FP32},
		{cell.Linear, [3]int{2051, 3, 7}, []form{odd}, schedule.FP32},
		{cell.GILR, [3]int{5003, 1, 32}, []form{alone, groups}, schedule.FP32},
		{cell.SRU, [3]int{3000, 1, 24}, []form{small}, schedule.FP32},
		{cell.QRNN, [3]int{5003, 1, 32}, []form{groups}, schedule.FP32},
		{cell.LSLSTM.Core, [3]int{5003, 1, 32}, []form{small, groups}, schedule.FP32},
		{cell.GILR, [3]int{1201, 1, 128}, []form{alone}, schedule.FP32},
		{cell.Linear, [3]int{2003, 3, 32}, []form{groups}, schedule.FP32},
		{cell.GILR, [3]int{301, 26, 32}, []form{own}, schedule.FP32},
		{cell.SRU, [3]int{8001, 1, 8}, []form{alone}, schedule.FP32},
		{cell.LSLSTM.Core, [3]int{611, 13, 32}, []form{alone}, schedule.FP32},
		{cell.LSLSTM.Core, [3]int{1503, 1, 16}, []form{small}, schedule.FP32},
		{cell.GILR, [3]int{2003, 1, 32}, []form{small}, schedule.BF16},
		{cell.LSLSTM.Core, [3]int{2003, 1, 32}, []form{alone}, schedule.BF16},
		{cell.SRU, [3]int{1603, 1, 32}, []form{small, groups}, schedule.BF16},
		{cell.GILR, [3]int{2057, 1, 5}, []form{odd}, schedule.FP32},
		{cell.QRNN, [3]int{5001, 1, 3}, []form{odd}, schedule.FP32},
		{cell.GILR, [3]int{2057, 1, 5}, []form{odd, copies}, schedule.BF16},
	} {
		if testing.Short() && i%10 != 9 {
			continue
		}
		var want [][]float32
		within := 1e-4
		if test.precision == schedule.BF16 {
			within = 1.0 / 128
		}
		for _, f := range append([]form{blocks}, test.forms...) {
			compiler, emulated := emulation(t, f.sms)
			var on driver.Driver = emulated
			if f.old {
				on = older{emulated}
			}
			d := cuda.New(on, compiler, "")
			got := left(t, d, on.Properties(), test.precision, test.cell, test.size, f.kinds)
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

// TestScanInference holds inference of teams, which paces its copies and has other tiles, to the
// results in training: for teams with and without groups.
func TestScanInference(t *testing.T) {
	type scan struct {
		cell *cell.Cell
		sms  int
		size [3]int // steps, batch, hidden
		kind string
	}
	for _, test := range sample([]scan{
		{cell: cell.SRU, sms: 26, size: [3]int{8001, 1, 8}, kind: "alone"},
		{cell: cell.SRU, sms: 146, size: [3]int{40001, 1, 8}, kind: "groups"},
		{cell: cell.GILR, sms: 41, size: [3]int{9001, 1, 31}, kind: "groups"},
		{cell: cell.GILR, sms: 26, size: [3]int{5003, 1, 32}, kind: "alone"},
		{cell: cell.Linear, sms: 5, size: [3]int{5003, 1, 32}, kind: "alone"},
		{cell: cell.SRU, sms: 5, size: [3]int{4001, 1, 8}, kind: "alone"},
		{cell: cell.GILR, sms: 33, size: [3]int{3001, 1, 256}, kind: "alone"},
		{cell: cell.LSLSTM.Core, sms: 33, size: [3]int{2003, 1, 192}, kind: "alone"},
		{cell: cell.QRNN, sms: 33, size: [3]int{2003, 4, 64}, kind: "alone"},
		{cell: cell.Linear, sms: 33, size: [3]int{2003, 16, 16}, kind: "alone"},
		{cell: cell.Linear, sms: 33, size: [3]int{8001, 2, 4}, kind: "alone"},
	}, 6) {
		compiler, driver := emulation(t, test.sms)
		d := cuda.New(driver, compiler, "")
		s, _, _ := scans(t, test.cell, test.size[0], test.size[1], test.size[2], false)
		if c := cuts(t, s, nil, driver.Properties())[0]; c.kind != test.kind {
			t.Fatalf("%v: %+v", test, c)
		}
		same(t, d, test.cell, test.size[0], test.size[1], test.size[2])
		d.Close()
	}
}

// random writes numbers of at most 0.5 to matrices, except empty ones. With such a factor and a
// bias, states do not grow.
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

// left returns the results of a scan for training and of its gradient, of such kinds, in the second
// run.
func left(t *testing.T, d *cuda.Device, p driver.Properties, precision schedule.Precision, of *cell.Cell, size [3]int, kinds [2]string) (all [][]float32) {
	t.Helper()
	s, op, back := scansIn(t, precision, of, size[0], size[1], size[2], true)
	for i, c := range cuts(t, s, nil, p) {
		if c.kind != kinds[i] {
			t.Fatalf("%v %v, scan %d is not of %s: %+v", of, size, i, kinds[i], c)
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

// TestScanBurden: many chains have last tiles that are full, or nearly. Few chains have large
// tiles, such that a multiprocessor has memory for as many blocks as it should run.
func TestScanBurden(t *testing.T) {
	for _, test := range []struct {
		cell                   *cell.Cell
		steps, batch           int
		shared                 int // KiB per multiprocessor
		chunk, resident, tiles int
	}{
		{cell.Linear, 1024, 64, 227, 8, 3, 8}, {cell.Linear, 1025, 64, 227, 6, 3, 11}, {cell.Linear, 64, 1024, 227, 8, 3, 1}, {cell.GILR, 1025, 64, 227, 6, 3, 11},
		{cell.Linear, 4096, 16, 227, 14, 2, 19}, {cell.SRU, 4096, 16, 227, 7, 2, 37}, {cell.GILR, 4096, 16, 227, 10, 3, 26},
		{cell.GILR, 8192, 8, 227, 14, 2, 37}, {cell.Linear, 200, 8, 227, 6, 3, 3},
		{cell.Linear, 4096, 16, 99, 10, 2, 26}, {cell.Linear, 1024, 64, 99, 6, 3, 11},
	} {
		s, _, _ := scans(t, test.cell, test.steps, test.batch, 256, false)
		p := h200()
		p.Shared, p.Capability = test.shared<<10, 80 // with a copy engine, 64 and 128 chains would run on a team
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

// TestScanExtremes: activations are right for all numbers and for NaN, computed in pairs and
// singly.
func TestScanExtremes(t *testing.T) {
	compiler, driver := emulation(t, 3)
	d := cuda.New(driver, compiler, "")
	defer d.Close()
	extremes(t, d)
}

// extremes holds a layer to its meaning with gates near their limits or NaN: in inference, where
// they are computed in pairs, and in training, where they are computed singly.
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

// TestScanWalkers holds recurrences of few channels, with one or several walker blocks, to their
// meaning, in the second run.
func TestScanWalkers(t *testing.T) {
	compiler, driver := emulation(t, 29)
	d := cuda.New(driver, compiler, "")
	defer d.Close()
	for _, size := range [][2]int{{1500, 3}, {1500, 260}} {
		steps, hidden := size[0], size[1]
		s, op, _ := scans(t, cell.Linear, steps, 1, hidden, false)
		launches, _, err := cuda.Sources(s, nil, driver.Properties())
		if err != nil {
			t.Fatal(err)
		}
		if walkers := int(launches[0].Args[6]); (walkers > 1) != (hidden > 128) || walkers == 0 {
			t.Fatalf("%d walkers for %d channels", walkers, hidden)
		}
		holds(t, d, s, op, nil, nil)
	}
}

// TestScanSteps: a thread has as many steps as a knob says, in tiles and in teams, also numbers
// that teams of few channels do not choose themselves.
func TestScanSteps(t *testing.T) {
	compiler, driver := emulation(t, 29)
	d := cuda.New(driver, compiler, "")
	defer d.Close()
	for _, test := range []struct{ steps, hidden, most int }{{9, 33, 5}, {700, 260, 5}, {5003, 32, 5}, {11200, 8, 8}} {
		for _, n := range sample([]int{test.most, 3, 1}, 3) {
			s, op, _ := scans(t, cell.Linear, test.steps, 1, test.hidden, false)
			_, texts, err := cuda.Sources(s, knob.Params{"scansteps": n}, driver.Properties())
			if err != nil || !strings.Contains(texts[0], fmt.Sprintf(" K = %d,", n)) {
				t.Fatalf("%d×%d: not %d steps: %v", test.steps, test.hidden, n, err)
			}
			holds(t, d, s, op, nil, knob.Params{"scansteps": n})
		}
	}
}

// holds compares the results of a linear scan, and of its gradient unless that is nil, with their
// meaning, in the second run.
func holds(t *testing.T, d device.Device, s *schedule.Schedule, op schedule.Scan, back *schedule.ScanBackward, k knob.Params) {
	t.Helper()
	prog, err := d.Compile(s, k)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	rng := rand.New(rand.NewPCG(3, 4))
	fill := func(v schedule.View, values []float32) []float32 {
		for i := range values {
			values[i] = 2*rng.Float32() - 1
		}
		if err := prog.Write(v.M, values[:v.M.Elements()]); err != nil {
			t.Fatal(err)
		}
		return values
	}
	read := func(v schedule.View) []float32 {
		values := make([]float32, v.M.Elements())
		if err := prog.Read(v.M, values); err != nil {
			t.Fatal(err)
		}
		return values
	}
	hidden, wide := op.Hidden(), op.Batch()*op.Hidden()
	x := fill(op.X, make([]float32, op.X.M.Elements()))
	first := fill(op.State[0], make([]float32, op.State[0].M.Elements()))[:wide]
	if err := prog.Write(op.BX.M, make([]float32, 2*hidden)); err != nil {
		t.Fatal(err)
	}
	var dout, last []float32
	if back != nil {
		dout = fill(back.DOut, make([]float32, back.DOut.M.Elements()))
	}
	for range 2 {
		if back != nil { // a run overwrites the last state's gradient with the first one's
			last = fill(back.Carry[0], make([]float32, wide))
		}
		if _, err := prog.Run(1); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, i, u int, got float32, want, within float64) {
		t.Helper()
		if !(math.Abs(float64(got)-want) <= within) {
			t.Fatalf("%d × %d × %d, %s, step %d, unit %d: %v, want %v", op.Batch(), hidden, op.Steps, what, i, u, got, want)
		}
	}
	at := func(i, u, gate int) int { return ((i*wide+u)/hidden*2+gate)*hidden + u%hidden }
	states, want := read(op.State[0]), make([]float64, (op.Steps+1)*wide)
	for u := range wide {
		want[u] = float64(first[u])
	}
	for i := range op.Steps {
		for u := range wide {
			h := &want[(i+1)*wide+u]
			*h = float64(x[at(i, u, 0)])*want[i*wide+u] + float64(x[at(i, u, 1)])
			check("a state", i, u, states[(i+1)*wide+u], *h, 1e-5)
		}
	}
	if back == nil {
		return
	}
	dx, carry := read(back.DX), read(back.Carry[0])
	for u := range wide {
		d := float64(last[u])
		for i := op.Steps - 1; i >= 0; i-- {
			d += float64(dout[i*wide+u])
			check("a factor's gradient", i, u, dx[at(i, u, 0)], d*want[i*wide+u], 1e-5*(1+math.Abs(d*want[i*wide+u])))
			check("an input's gradient", i, u, dx[at(i, u, 1)], d, 1e-5)
			d *= float64(x[at(i, u, 0)])
		}
		check("the first state's gradient", 0, u, carry[u], d, 1e-5)
	}
}

// TestScanWords: words of a scan's blocks stay in the L2 cache. Little else shows this than the
// time of a poll.
func TestScanWords(t *testing.T) {
	passing := regexp.MustCompile(`\b(get|put)_words?\(`)
	for _, size := range [][3]int{{65536, 1, 256}, {1 << 20, 1, 32}, {1024, 64, 256}, {3000, 1, 30}} {
		for _, train := range []bool{false, true} {
			s, _, _ := scans(t, cell.GILR, size[0], size[1], size[2], train)
			launches, texts, err := cuda.Sources(s, nil, h200())
			if err != nil {
				t.Fatal(err)
			}
			for i, l := range launches {
				if !strings.HasPrefix(l.Name, "scan") {
					continue
				}
				if found := passing.FindString(texts[i]); found != "" {
					t.Errorf("%s of %v, train %v: words of %s) need not stay in the L2", l.Name, size, train, found)
				}
				if !strings.Contains(texts[i], "put_staying(") {
					t.Errorf("%s of %v, train %v shows no words", l.Name, size, train)
				}
			}
		}
	}
}
