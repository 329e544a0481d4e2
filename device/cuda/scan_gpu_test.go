package cuda_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// scanSizes are batch, channels and steps: those of other libraries' tables,
// lengths beside powers of two, and few channels over a million steps.
var scanSizes = [][3]int{
	{1, 256, 65536}, {16, 256, 4096}, {64, 256, 1024}, {8, 1536, 16384}, {1, 32, 1 << 20}, {1, 8, 1 << 22},
	{1, 256, 65537}, {16, 256, 4095}, {64, 256, 1025}, {1, 256, 65535}, {1, 32, 1<<20 + 1}, {1, 8, 1<<22 - 1},
}

// TestGPUScanTeams holds recurrences of few channels to their meaning, and their gradients: in
// groups and without, and with as many chains as blocks. It holds inference of other cells to the
// passes that keep values for a gradient.
func TestGPUScanTeams(t *testing.T) {
	d := openGPU(t, time.Minute)
	for _, test := range []struct {
		size   [3]int // steps, batch, hidden
		train  bool
		others []*cell.Cell
	}{
		{[3]int{65537, 1, 256}, true, nil}, {[3]int{16385, 1, 256}, true, []*cell.Cell{cell.GILR, cell.SRU, cell.QRNN}}, {[3]int{70, 1, 256}, false, nil},
		{[3]int{50001, 1, 128}, true, []*cell.Cell{cell.GILR}}, {[3]int{100001, 1, 32}, true, []*cell.Cell{cell.GILR, cell.SRU}},
		{[3]int{1<<19 - 1, 1, 8}, true, []*cell.Cell{cell.GILR, cell.SRU, cell.QRNN}}, {[3]int{100000, 1, 3}, false, []*cell.Cell{cell.QRNN}},
		{[3]int{2049, 8, 256}, true, []*cell.Cell{cell.GILR, cell.SRU}}, {[3]int{2011, 6, 256}, false, nil}, {[3]int{1201, 25, 64}, true, nil},
		{[3]int{331, 16, 256}, true, []*cell.Cell{cell.GILR, cell.QRNN}}, {[3]int{999, 128, 32}, false, nil}, {[3]int{1511, 12, 256}, false, []*cell.Cell{cell.SRU}},
	} {
		s, op, _ := scans(t, cell.Linear, test.size[0], test.size[1], test.size[2], false)
		holds(t, d, s, op, nil, nil)
		if test.train {
			s, op, back := scans(t, cell.Linear, test.size[0], test.size[1], test.size[2], true)
			holds(t, d, s, op, &back, nil)
		}
		for _, c := range test.others {
			same(t, d, c, test.size[0], test.size[1], test.size[2])
		}
	}
}

// TestGPUScanExtremes is TestScanExtremes on a GPU, whose exponentials are its own.
func TestGPUScanExtremes(t *testing.T) { extremes(t, openGPU(t, time.Minute)) }

// same compares the states of inference with those that are kept for a gradient, in the second run.
func same(t *testing.T, d device.Device, c *cell.Cell, steps, batch, hidden int) {
	t.Helper()
	var states [2][]float32
	for i, train := range []bool{false, true} {
		s, op, _ := scans(t, c, steps, batch, hidden, train)
		prog, err := d.Compile(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer prog.Close()
		rng := rand.New(rand.NewPCG(3, 4))
		random(t, prog, rng, append([]schedule.View{op.X, op.BX, op.R, op.BR}, op.State...)...)
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

// BenchmarkGPUScan times linear recurrences on the first GPU. It reports the bytes per second that
// they must read and write, alternating with a copy of as many bytes. Each iteration is a sample,
// and it reports medians.
func BenchmarkGPUScan(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, c := range []*cell.Cell{cell.Linear, cell.GILR, cell.SRU, cell.LSLSTM.Core} {
		for _, size := range scanSizes {
			for _, pass := range []string{"inference", "forward", "backward"} {
				b.Run(fmt.Sprintf("%s/%s/%dx%dx%d", c.Name, pass, size[0], size[1], size[2]), func(b *testing.B) {
					rates(b, d, scanning(b, c, pass, size), size, nil)
				})
			}
		}
	}
}

// oddSizes are batch, channels and steps of unaligned rows: few channels, rows of several tiles,
// many sequences of few channels, and more chains than multiprocessors.
var oddSizes = [][3]int{
	{3, 77, 100003}, {2, 5, 2097151}, {5, 100, 30011}, {7, 333, 2999}, {1, 1, 8388607}, {1, 37, 400009}, {1, 229, 65521},
	{4096, 3, 1201}, {33, 501, 1009}, {129, 1023, 127}, {17, 19, 40009}, {129, 11, 8009}, {401, 51, 1003},
}

// BenchmarkGPUScanOdd times recurrences of sizes that are no multiples of a vector.
func BenchmarkGPUScanOdd(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, c := range []*cell.Cell{cell.Linear, cell.GILR, cell.SRU} {
		for _, size := range oddSizes {
			for _, pass := range []string{"inference", "forward", "backward"} {
				b.Run(fmt.Sprintf("%s/%s/%dx%dx%d", c.Name, pass, size[0], size[1], size[2]), func(b *testing.B) {
					rates(b, d, scanning(b, c, pass, size), size, nil)
				})
			}
		}
	}
}

// smallSizes are of scans that fit the chip.
var smallSizes = [][3]int{{1, 256, 128}, {16, 256, 64}, {64, 256, 100}, {64, 512, 32}, {3, 77, 301}, {1, 8, 4096}, {8, 64, 512}, {33, 101, 50}}

// BenchmarkGPUScanSmall times scans that fit the chip, which mostly wait for a kernel's start and
// for memory.
func BenchmarkGPUScanSmall(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, size := range smallSizes {
		for _, pass := range []string{"inference", "backward"} {
			b.Run(fmt.Sprintf("linear/%s/%dx%dx%d", pass, size[0], size[1], size[2]), func(b *testing.B) {
				rates(b, d, scanning(b, cell.Linear, pass, size), size, nil)
			})
		}
	}
}

// BenchmarkGPUScanSteps compares numbers of steps per thread.
func BenchmarkGPUScanSteps(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, size := range scanSizes[:6] {
		for _, steps := range []int{0, 2, 3, 4, 5, 6, 8} {
			for _, pass := range []string{"inference", "backward"} {
				b.Run(fmt.Sprintf("steps=%d/%s/%dx%dx%d", steps, pass, size[0], size[1], size[2]), func(b *testing.B) {
					rates(b, d, scanning(b, cell.Linear, pass, size), size, knob.Params{"scansteps": steps})
				})
			}
		}
	}
}

// rates reports the rate of s, one scan of that size, with knobs k, and that of a copy.
func rates(b *testing.B, d device.Device, s *schedule.Schedule, size [3]int, k knob.Params) {
	bytes := float64(cuda.Moved(s.Nodes[0].Op)) * float64(size[0]) * float64(size[1]) * float64(size[2])
	copied := copying(b, int64(bytes))
	runs := min(4096, max(2, int(8e9/bytes)))
	var seconds [2][]float64
	var progs [2]device.Program
	for i, one := range []*schedule.Schedule{s, copied} {
		with := knob.Params{"graph": 1}
		if i == 0 {
			maps.Copy(with, k)
		}
		var err error
		progs[i], err = d.Compile(one, with)
		if errors.Is(err, schedule.ErrUnsupported) {
			b.Skip(err)
		}
		if err != nil {
			b.Fatal(err)
		}
		defer progs[i].Close()
		if err := progs[i].Prepare(); err != nil {
			b.Fatal(err)
		}
		if _, err := progs[i].Run(1); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		for i, prog := range progs {
			sample, err := prog.Run(runs)
			if err != nil {
				b.Fatal(err)
			}
			seconds[i] = append(seconds[i], sample.Device.Seconds()/float64(runs))
		}
	}
	for i := range seconds {
		slices.Sort(seconds[i])
	}
	t, c := seconds[0][len(seconds[0])/2], seconds[1][len(seconds[1])/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(t*1e6, "µs")
	b.ReportMetric(bytes/t/1e9, "GB/s")
	b.ReportMetric(bytes/c/1e9, "copy-GB/s")
	b.ReportMetric(100*c/t, "%")
}

// scanning returns one pass of a scan of batch, channels and steps over random rows. Before a
// backward pass, it runs the forward pass.
func scanning(t testing.TB, c *cell.Cell, pass string, size [3]int) *schedule.Schedule {
	return scanningTimes(t, c, pass, size, schedule.FP32, 1)
}

// scanningTimes is that pass several times, one after the other. In 16 bits, products before it
// make the states and the gradients of inputs 16-bit matrices.
func scanningTimes(t testing.TB, c *cell.Cell, pass string, size [3]int, precision schedule.Precision, times int) *schedule.Schedule {
	batch, hidden, steps := size[0], size[1], size[2]
	b := schedule.NewBuilder(1)
	b.SetPrecision(precision)
	rng := rand.New(rand.NewPCG(1, 2))
	full := func(rows, cols int) schedule.View {
		v := b.Matrix("m", rows, cols).All()
		one := b.Matrix("row", 1, cols).All()
		// Random numbers made from zeros: sums of bits that differ from column to column.
		b.Prepare(schedule.Map{Op: cell.Zero, Out: one})
		for range 8 {
			from := rng.IntN(cols)
			n := 1 + rng.IntN(cols-from)
			b.Prepare(schedule.Map{Op: cell.OneMinus, Out: one.Columns(from, n), A: one.Columns(from, n)})
			b.Prepare(schedule.Map{Op: cell.Sigmoid, Out: one, A: one})
		}
		b.Prepare(schedule.Map{Op: cell.Copy, Out: v, A: one})
		return v
	}
	rows, gates := steps*batch, len(c.Gates)
	op := schedule.Scan{Sequence: schedule.Sequence{Cell: c, Train: pass != "inference", Steps: steps, X: full(rows, gates*hidden), BX: full(1, gates*hidden)}}
	if op.Train {
		op.Saved = b.Matrix("saved", rows, c.Saved*hidden).All()
	}
	if n := c.Recurrent; n > 0 {
		op.R, op.BR = full(rows, n*hidden), full(1, n*hidden)
	}
	for range c.States {
		op.State = append(op.State, b.Matrix("state", rows+batch, hidden).All())
	}
	multiplied := func(v schedule.View) {
		if precision != schedule.FP32 {
			weights := b.Packed("packed", hidden, 1).All()
			b.Prepare(schedule.Pack{Src: full(1, hidden), Dst: weights, Trans: true})
			b.Prepare(schedule.Gemm{A: v, B: weights, C: b.Matrix("product", v.Rows, 1).All()})
		}
	}
	multiplied(op.State[0])
	if pass == "backward" {
		b.Prepare(op)
		g := schedule.SequenceGrad{DOut: full(rows, hidden), DX: b.Matrix("dx", rows, gates*hidden).All()}
		for range c.States {
			g.Carry = append(g.Carry, full(batch, hidden))
		}
		multiplied(g.DX.Columns(0, hidden))
		for range times {
			b.Do(0, schedule.ScanBackward{Sequence: op.Sequence, SequenceGrad: g})
		}
	} else {
		for range times {
			b.Do(0, op)
		}
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// copying is a copy that reads and writes so many bytes.
func copying(t testing.TB, bytes int64) *schedule.Schedule { return scanCopies(t, bytes, 1) }
