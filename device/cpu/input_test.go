package cpu

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// openWide opens a device whose steps can compute input products.
func openWide(t *testing.T, threads int) *Device {
	t.Helper()
	d, err := Open(Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if d.kernels.Level() < simd.AVX512 {
		t.Skip("needs the registers of AVX-512")
	}
	return d
}

// A layer is an input product and the persistent operation after it.
type layer struct {
	s    *schedule.Schedule
	seen []*schedule.Matrix // matrices that they write
}

// newLayer lays out a layer of so many steps after its input product, on the given streams.
func newLayer(t *testing.T, c *cell.Cell, train bool, input, hidden, batch, steps int, streams []int, change func(*schedule.Gemm)) layer {
	t.Helper()
	b := schedule.NewBuilder(2)
	all := func(name string, rows, cols int) schedule.View { return b.Matrix(name, rows, cols).All() }
	pack := func(v schedule.View) schedule.View {
		p := b.Packed("packed", v.Cols, v.Rows).All()
		b.Prepare(schedule.Pack{Src: v, Dst: p, Trans: true})
		return p
	}
	rows, gates := steps*batch, len(c.Gates)
	op := schedule.Persistent{Sequence: schedule.Sequence{
		Cell: c, Train: train, Steps: steps, X: all("x", rows, gates*hidden), BX: all("bx", 1, gates*hidden), BR: all("br", 1, c.Recurrent*hidden),
	}}
	if len(c.Peeps) > 0 {
		op.Peep = all("p", 1, len(c.Peeps)*hidden)
	}
	out := layer{seen: []*schedule.Matrix{op.X.M}}
	for range c.States {
		op.State = append(op.State, all("state", rows+batch, hidden))
		out.seen = append(out.seen, op.State[len(op.State)-1].M)
	}
	if train && c.Saved > 0 {
		op.Saved = all("saved", rows, c.Saved*hidden)
		out.seen = append(out.seen, op.Saved.M)
	}
	r := b.Matrix("R", c.Recurrent*hidden, hidden)
	for g := range c.Recurrent {
		op.R = append(op.R, pack(r.Band(g*hidden, hidden)))
	}
	g := schedule.Gemm{A: all("in", rows, input), B: pack(all("W", gates*hidden, input)), C: op.X}
	if change != nil {
		change(&g)
	}
	b.Do(streams[0], g)
	b.Do(streams[1], op)
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	out.s = s
	return out
}

// run returns what two runs of a layer write with the given knobs, and whether its steps compute
// the product.
func (a *layer) run(t *testing.T, d *Device, k knob.Params) (out [][]float32, formed bool) {
	t.Helper()
	prog := a.compile(t, d, k)
	defer prog.Close()
	out = a.twice(t, prog)
	for _, n := range prog.nodes {
		if w, ok := n.work.(*persistent); ok {
			formed = formed || w.input != nil
		}
	}
	return out, formed
}

func (a *layer) compile(t *testing.T, d *Device, k knob.Params) *program {
	t.Helper()
	prog, err := d.Compile(a.s, k)
	if err != nil {
		t.Fatal(err)
	}
	return prog.(*program)
}

// twice returns what two runs of a program write.
func (a *layer) twice(t *testing.T, prog *program) (out [][]float32) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, m := range a.s.Matrices {
		if !m.Private() {
			v := make([]float32, m.Elements())
			for i := range v {
				v[i] = float32(rng.NormFloat64() / math.Sqrt(float64(m.Cols)))
			}
			if err := prog.Write(m, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := prog.Prepare(); err != nil {
		t.Fatal(err)
	}
	if _, err := prog.Run(2); err != nil {
		t.Fatal(err)
	}
	for _, m := range a.seen {
		v := make([]float32, m.Elements())
		if err := prog.Read(m, v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// TestFormedInputEqualsProductAhead: a layer gives the same results whether its steps compute the
// input product of later steps, or the whole product comes first.
func TestFormedInputEqualsProductAhead(t *testing.T) {
	for threads := 1; threads <= 3; threads++ {
		d := openWide(t, threads)
		for i, test := range []struct {
			c                    *cell.Cell
			input, hidden, steps int
			ahead                int
		}{
			{cell.RNNTanh, 64, 64, 64, 16}, {cell.RNNTanh, 1, 37, 33, 16}, {cell.RNNReLU, 130, 48, 47, 16},
			{cell.GRU, 48, 48, 100, 16}, {cell.GRU, 61, 53, 131, 64}, {cell.GRU, 3, 128, 40, 16},
			{cell.LSTM, 96, 96, 100, 64}, {cell.LSTM, 2, 1, 64, 16}, {cell.LSTM, 300, 35, 49, 16},
			{cell.LSTMPeephole, 70, 70, 48, 16}, {cell.LSTM, 17, 80, 63, 16},
		} {
			train := i%2 == 0
			name := fmt.Sprintf("%d threads, %v of %d units, input %d, %d steps, train %v", threads, test.c, test.hidden, test.input, test.steps, train)
			a := newLayer(t, test.c, train, test.input, test.hidden, 1, test.steps, []int{0, 0}, nil)
			want, formed := a.run(t, d, knob.Params{"ahead": test.steps})
			if formed {
				t.Errorf("%s: the product is not ahead", name)
			}
			for bands := range min(threads, ceil(test.hidden, line)) + 1 { // 0: as by default
				k := knob.Params{"ahead": test.ahead}
				if threads > 1 {
					k["bands"], k["teams"] = bands, 1
				}
				got, formed := a.run(t, d, k)
				if !formed {
					t.Errorf("%s, %d bands: the product is ahead", name, bands)
				}
				for m := range want {
					for i, w := range want[m] {
						if math.Abs(float64(got[m][i]-w)) > 1e-4 {
							t.Fatalf("%s, %d bands: %s[%d] = %v, want %v", name, bands, a.seen[m].Name, i, got[m][i], w)
						}
					}
				}
			}
		}
	}
}

// TestHelpersFormInput: a layer gives the same results whether workers without a band compute its
// input product, or the whole product comes first. It runs the assembly of each level.
func TestHelpersFormInput(t *testing.T) {
	for l := simd.AVX2; l <= simd.Detect().Base(); l++ {
		for threads := 1; threads <= 3; threads++ {
			d, err := Open(Options{Threads: threads, Level: &l})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.LSTMPeephole} {
				hidden, steps := 20+11*i, 90+i
				name := fmt.Sprintf("%v, %d threads, %v of %d units", l, threads, c, hidden)
				a := newLayer(t, c, i%2 == 0, 7+i, hidden, 1, steps, []int{0, 0}, nil)
				k := knob.Params{"ahead": 16}
				if threads > 1 {
					k["bands"], k["teams"] = min(threads-1, ceil(hidden, line)), 1
				} else if l < simd.AVX512 {
					if _, err := d.Compile(a.s, k); err == nil {
						t.Errorf("%s: there is no other worker, but the knob is not declined", name)
					}
					continue
				}
				want, _ := a.run(t, d, knob.Params{"ahead": steps})
				got, formed := a.run(t, d, k)
				if !formed {
					t.Errorf("%s: the product is ahead", name)
				}
				for m := range want {
					for i, w := range want[m] {
						if math.Abs(float64(got[m][i]-w)) > 1e-4 {
							t.Fatalf("%s: %s[%d] = %v, want %v", name, a.seen[m].Name, i, got[m][i], w)
						}
					}
				}
			}
		}
	}
}

// TestInputIsFormedWhereItPays: steps compute the input product exactly if they can and if it pays.
func TestInputIsFormedWhereItPays(t *testing.T) {
	d := openWide(t, 2)
	// An lstm with so many units: the nearest cache holds half of its weights, but not all of them.
	halves := line
	for 4*4*halves*halves <= nearest() {
		halves += line
	}
	for _, test := range []struct {
		name                 string
		hidden, batch, steps int
		streams              []int
		change               func(*schedule.Gemm)
		knobs                knob.Params
		formed               bool
	}{
		{
			name:    "weights beyond the nearest cache",
			hidden:  256,
			batch:   1,
			steps:   64,
			streams: []int{0, 0},
			formed:  true,
		},
		{
			name:    "weights in it, and a worker without units",
			hidden:  32,
			batch:   1,
			steps:   64,
			streams: []int{0, 0},
			knobs:   knob.Params{"teams": 1},
			formed:  true,
		},
		{
			name:    "weights in both workers' nearest caches",
			hidden:  halves,
			batch:   1,
			steps:   64,
			streams: []int{0, 0},
			knobs:   knob.Params{"teams": 1},
		},
		{
			name:    "two sequences",
			hidden:  256,
			batch:   2,
			steps:   64,
			streams: []int{0, 0},
		},
		{
			name:    "few steps",
			hidden:  256,
			batch:   1,
			steps:   31,
			streams: []int{0, 0},
		},
		{
			name:    "two streams in program order",
			hidden:  256,
			batch:   1,
			steps:   64,
			streams: []int{1, 0},
			knobs:   knob.Params{"teams": 1},
			formed:  true,
		},
		{
			name:    "two streams side by side",
			hidden:  256,
			batch:   1,
			steps:   64,
			streams: []int{1, 0},
			knobs:   knob.Params{"teams": 2},
		},
		{
			name:    "added to what is there",
			hidden:  256,
			batch:   1,
			steps:   64,
			streams: []int{0, 0},
			change:  func(g *schedule.Gemm) { g.Accumulate = true },
		},
	} {
		a := newLayer(t, cell.LSTM, false, 64, test.hidden, test.batch, test.steps, test.streams, test.change)
		if _, formed := a.run(t, d, test.knobs); formed != test.formed {
			t.Errorf("%s: formed %v, want %v", test.name, formed, test.formed)
		}
	}
}

// TestProgramRunsAgainAfterFormingFails: if a worker fails while it computes an input product, the
// run of all workers ends, and the program's next run gives the usual results.
func TestProgramRunsAgainAfterFormingFails(t *testing.T) {
	for _, test := range []struct {
		threads int
		bands   int
	}{{2, 1}, {2, 2}, {3, 1}, {3, 2}, {3, 3}} {
		d := openWide(t, test.threads)
		a := newLayer(t, cell.GRU, true, 40, 64, 1, 100, []int{0, 0}, nil)
		prog := a.compile(t, d, knob.Params{"ahead": 16, "bands": test.bands, "teams": 1})
		defer prog.Close()
		want := a.twice(t, prog)
		var in *input
		for _, n := range prog.nodes {
			if w, ok := n.work.(*persistent); ok {
				in = w.input
			}
		}
		if in == nil || in.helped != (test.bands < test.threads) {
			t.Fatalf("%d bands of %d workers: the wrong workers compute the product", test.bands, test.threads)
		}
		whole := in.in.data
		in.in.data = whole[:50*in.in.step] // fifty of a hundred steps
		if _, err := prog.Run(2); err == nil || !strings.Contains(err.Error(), "out of range") {
			t.Errorf("%d bands of %d workers: %v", test.bands, test.threads, err)
		}
		in.in.data = whole
		if got := a.twice(t, prog); !reflect.DeepEqual(got, want) {
			t.Errorf("%d bands of %d workers: another result after a failure", test.bands, test.threads)
		}
	}
}

// TestFormingHasMemory: scratch memory for input products is reserved if steps can compute them.
func TestFormingHasMemory(t *testing.T) {
	a := newLayer(t, cell.LSTM, false, 100, 256, 1, 64, []int{0, 0}, nil)
	for l := simd.Generic; l <= simd.Detect().Base(); l++ {
		d, err := Open(Options{Threads: 2, Level: &l})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if n := d.needs(a.s, simd.F32, nil); n.inputs > 0 != (l >= simd.AVX512) || n.tiles > 0 != (n.inputs > 0) {
			t.Errorf("%v: %+v", l, n)
		}
	}
}

// TestBlocksThatFormNothingAreDeclined: sizes of blocks with which no product can be computed are
// declined.
func TestBlocksThatFormNothingAreDeclined(t *testing.T) {
	d := openWide(t, 2)
	a := newLayer(t, cell.GRU, false, 16, 16, 1, 70, []int{1, 0}, nil)
	for _, test := range []struct {
		knobs knob.Params
		taken bool
	}{
		{knob.Params{"ahead": 16, "teams": 1}, true},
		{knob.Params{"ahead": 16, "teams": 2}, false},
		{knob.Params{"ahead": 64, "teams": 1}, false}, // the first block has 64 steps and six more, which is all 70
		{knob.Params{"ahead": 70, "teams": 2}, true},
	} {
		prog, err := d.Compile(a.s, test.knobs)
		if test.taken && err != nil || !test.taken && !errors.Is(err, schedule.ErrUnsupported) {
			t.Errorf("%v: %v", test.knobs, err)
		}
		if err == nil {
			if err := prog.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
