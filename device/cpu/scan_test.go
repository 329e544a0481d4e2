package cpu_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A recurrence is h = a∘h + x over matrices of its own, forward and backward.
type recurrence struct {
	steps, batch, hidden   int
	s                      *schedule.Schedule
	x, h, dh, saved, dx, c *schedule.Matrix
}

func newRecurrence(t testing.TB, steps, batch, hidden int, train bool) *recurrence {
	b := schedule.NewBuilder(1)
	rows := steps * batch
	r := &recurrence{steps: steps, batch: batch, hidden: hidden,
		x: b.Matrix("x", rows, 2*hidden), h: b.Matrix("h", rows+batch, hidden),
	}
	seq := schedule.Sequence{Cell: cell.Linear, Train: train, Steps: steps, X: r.x.All(), BX: b.Matrix("bias", 1, 2*hidden).All(), State: []schedule.View{r.h.All()}}
	if train {
		r.saved = b.Matrix("saved", rows, hidden)
		r.dh, r.dx, r.c = b.Matrix("dh", rows, hidden), b.Matrix("dx", rows, 2*hidden), b.Matrix("carry", batch, hidden)
		seq.Saved = r.saved.All()
		b.Do(0, schedule.Scan{Sequence: seq})
		b.Do(0, schedule.ScanBackward{Sequence: seq, SequenceGrad: schedule.SequenceGrad{DOut: r.dh.All(), Carry: []schedule.View{r.c.All()}, DX: r.dx.All()}})
	} else {
		b.Do(0, schedule.Scan{Sequence: seq})
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	r.s = s
	return r
}

// TestScanSharedEveryWayIsRight computes h = a∘h + x and its four gradients (2.2) over many steps,
// with every way of sharing the work.
func TestScanSharedEveryWayIsRight(t *testing.T) {
	sizes := [][3]int{{4099, 1, 17}, {1, 1, 1}, {37, 3, 48}, {130, 2, 5}, {301, 13, 1}, {67, 29, 2}, {5, 900, 1}, {3, 50, 700}}
	for _, threads := range []int{1, 2, 4} {
		d, err := cpu.Open(cpu.Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for _, size := range sizes {
			r := newRecurrence(t, size[0], size[1], size[2], true)
			settings := []knob.Params{nil}
			if threads > 1 {
				settings = nil
				for split := range threads + 1 {
					for _, chunk := range []int{0, 1, 7, 64} {
						settings = append(settings, knob.Params{"scansplit": split, "scanchunk": min(chunk, size[0])})
					}
				}
			}
			for _, k := range settings {
				t.Run(fmt.Sprintf("threads=%d/%v/%v", threads, size, k), func(t *testing.T) { r.check(t, d, k) })
			}
		}
	}
}

// TestPreparedScanTakesAllWorkers: all workers share a scan in Prepare, whatever teams they form in
// runs.
func TestPreparedScanTakesAllWorkers(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const steps, hidden = 4099, 16
	b := schedule.NewBuilder(2)
	x, h := b.Matrix("x", steps, 2*hidden), b.Matrix("h", steps+1, hidden)
	b.Prepare(schedule.Scan{Sequence: schedule.Sequence{Cell: cell.Linear, Steps: steps, X: x.All(), BX: b.Matrix("bias", 1, 2*hidden).All(), State: []schedule.View{h.All()}}})
	out := b.Matrix("out", steps+1, hidden).All()
	b.Do(0, schedule.Map{Op: cell.Copy, Out: out, A: h.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	for _, teams := range []int{1, 2} {
		prog, err := d.Compile(s, knob.Params{"teams": teams})
		if err != nil {
			t.Fatal(err)
		}
		in, got := make([]float32, x.Elements()), make([]float32, h.Elements())
		for i := range in {
			in[i] = 0.5
		}
		if err := errors.Join(prog.Write(x, in), prog.Prepare(), prog.Read(h, got), prog.Close()); err != nil {
			t.Fatal(err)
		}
		for i, v := range got[hidden:] {
			if want := 1 - math.Pow(0.5, float64(1+i/hidden)); math.Abs(float64(v)-want) > 1e-6 {
				t.Fatalf("%d teams: h[%d] is %v, want %v", teams, i, v, want)
			}
		}
	}
}

func (r *recurrence) check(t *testing.T, d *cpu.Device, k knob.Params) {
	prog, err := d.Compile(r.s, k)
	if errors.Is(err, schedule.ErrUnsupported) && k["scansplit"] <= 1 && k["scanchunk"] > 0 { // time is not split
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	n, rows := r.batch*r.hidden, r.steps*r.batch
	a, x, dh := make([]float64, rows*r.hidden), make([]float64, rows*r.hidden), make([]float64, rows*r.hidden)
	both, h, dout, carry := make([]float32, 2*len(a)), make([]float32, len(a)+n), make([]float32, len(a)), make([]float32, n)
	for i := range a {
		row, u := i/r.hidden, i%r.hidden
		both[2*row*r.hidden+u], both[(2*row+1)*r.hidden+u], dout[i] = rng.Float32(), 2*rng.Float32()-1, 2*rng.Float32()-1
		a[i], x[i], dh[i] = float64(both[2*row*r.hidden+u]), float64(both[(2*row+1)*r.hidden+u]), float64(dout[i])
	}
	want, grad := make([]float64, len(h)), make([]float64, n)
	for i := range n {
		h[i], carry[i] = rng.Float32(), rng.Float32()
		want[i], grad[i] = float64(h[i]), float64(carry[i])
	}
	for m, v := range map[*schedule.Matrix][]float32{r.x: both, r.h: h, r.dh: dout, r.c: carry} {
		if err := prog.Write(m, v); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := prog.Run(1); err != nil {
		t.Fatal(err)
	}
	compare := func(m *schedule.Matrix, want func(i int) float64) {
		t.Helper()
		got := make([]float32, m.Elements())
		if err := prog.Read(m, got); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			// |a| < 1/2 on average: errors of a few steps add up, and older ones fade.
			if diff := math.Abs(float64(v) - want(i)); !(diff <= 64*0x1p-24*max(1, math.Abs(want(i)))) {
				t.Fatalf("%s[%d] is %v, want %v", m.Name, i, v, want(i))
			}
		}
	}
	for i := range a {
		want[i+n] = a[i]*want[i] + x[i]
	}
	compare(r.h, func(i int) float64 { return want[i] })
	da, dx := make([]float64, len(a)), make([]float64, len(a))
	for i := len(a) - 1; i >= 0; i-- {
		dx[i] = dh[i] + grad[i%n]
		da[i] = dx[i] * want[i]
		grad[i%n] = a[i] * dx[i]
	}
	compare(r.dx, func(i int) float64 {
		row, u := i/(2*r.hidden), i%(2*r.hidden)
		if u < r.hidden {
			return da[row*r.hidden+u]
		}
		return dx[row*r.hidden+u-r.hidden]
	})
	compare(r.c, func(i int) float64 { return grad[i] })
}
