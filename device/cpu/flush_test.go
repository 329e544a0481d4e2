package cpu

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestDenormalNumbersAreZeros checks that every worker treats denormal numbers as zeros, if the
// build has assembly. Other threads of the program must not.
func TestDenormalNumbersAreZeros(t *testing.T) {
	if !flushes {
		t.Skip("this build has no assembly")
	}
	const tiny = float32(0x1p-130)
	d, err := Open(Options{Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b := schedule.NewBuilder(1)
	in, out := b.Matrix("in", 90, 700), b.Matrix("out", 90, 700) // enough for all workers
	b.Do(0, schedule.Map{Op: cell.Add, Out: out.All(), A: in.All(), B: in.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	made, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	if p := made.(*program); p.awake != 3 {
		t.Fatalf("%d workers run a large operation", p.awake)
	}
	values := slices.Repeat([]float32{tiny, 0x1p-126}, in.Elements()/2)
	if err := made.Write(in, values); err != nil {
		t.Fatal(err)
	}
	if _, err := made.Run(1); err != nil {
		t.Fatal(err)
	}
	if err := made.Read(out, values); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(values); i += 2 {
		if values[i] != 0 || values[i+1] != 0x1p-125 {
			t.Fatalf("element %d: %g and %g", i, values[i], values[i+1])
		}
	}
	sum := tiny
	for range 20 {
		runtime.Gosched()
		if sum = tiny + values[0]; sum != tiny {
			t.Fatalf("%g + %g is %g here", tiny, values[0], sum)
		}
	}
}

// TestHalvesOnWorkers multiplies weights in fp16 on a worker, which takes denormal floats for zeros.
// No half may be lost: neither subnormal ones, nor any in products with large or small values.
func TestHalvesOnWorkers(t *testing.T) {
	const k = 7
	for l := simd.Generic; l <= simd.Detect(); l++ {
		d, err := Open(Options{Threads: 1, Level: &l})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for _, scale := range []float32{1, 1e-3, 0x1p-20, 0x1p-24} { // of weights: 2⁻²⁴ is the least half
			for _, x := range []float32{1, 1e15, 1e30, 1e-15} {
				for rows := 1; rows <= d.kernels.MaxRows(); rows++ {
					for strips := 1; strips <= d.kernels.MaxStrips(rows); strips++ {
						n := strips * simd.StripWidth
						weights, packed := make([]float32, k*n), make([]float32, k*n/2)
						for i := range weights {
							weights[i] = scale * float32(1+i%5)
						}
						a, c := slices.Repeat([]float32{x}, rows*k), make([]float32, rows*n)
						if err := d.pool.do(func(int) {
							d.kernels.Narrow(packed, weights, simd.F16)
							d.kernels.Widen(weights, packed, simd.F16)
							d.kernels.Tile(&simd.Tile{
								A: a, ARow: k, ACol: 1, B: packed, Ahead: packed, BStrip: k * simd.StripWidth / 2, BStep: simd.StripWidth / 2,
								C: c, CRow: n, K: k, Rows: rows, Strips: strips, Last: simd.StripWidth, Format: simd.F16,
							})
						}); err != nil {
							t.Fatal(err)
						}
						for i, got := range c {
							s, j := i%n/simd.StripWidth, i%simd.StripWidth
							want := 0.0
							for row := range k {
								at := weights[(s*k+row)*simd.StripWidth+j]
								if least := float32(1+((s*k+row)*simd.StripWidth+j)%5) * scale; math.Abs(float64(at/least-1)) > 1e-3 && scale > 1e-6 {
									t.Fatalf("%v: the weight %g is stored as %g", l, least, at)
								}
								want += float64(x) * float64(at)
							}
							if math.Abs(float64(got)/want-1) > 1e-6 {
								t.Fatalf("%v, %d rows, %d strips, weights of %g and values of %g: %g, want %g", l, rows, strips, scale, x, got, want)
							}
						}
					}
				}
			}
		}
	}
}
