package fused

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// TestRecurrenceComputesProgram compares recurrences, of one band and of several side by side, with
// their programs and products in double precision. It also checks the product that they compute
// meanwhile.
func TestRecurrenceComputesProgram(t *testing.T) {
	for l := simd.AVX2; l <= simd.Detect().Base(); l++ {
		t.Run(l.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			for _, e := range catalog.Recurrences() {
				for _, n := range []int{1, 2, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 70, 100} {
					for bands := 1; bands <= min(3, (n+15)/16); bands++ {
						compareRecurrence(t, l, e, NewRecurrence(l, e.Cell, e.Pass, n), n, bands, 1+rng.IntN(5), rng)
					}
					compareRecurrence(t, l, e, interpretedRecurrence(l, e.Cell, e.Program, n), n, 1, 1+rng.IntN(5), rng)
				}
			}
		})
	}
}

func compareRecurrence(t *testing.T, l simd.Level, e catalog.Entry, k *Recurrence, n, bands, steps int, rng *rand.Rand) {
	t.Helper()
	const margin = 5
	c := e.Cell
	refs := k.Vectors()
	stride := n + margin
	draw := func(n int, scale float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(scale * rng.NormFloat64())
		}
		return v
	}
	states := make([][]float32, len(c.States)) // a row before each step, and one after the last
	for i := range states {
		states[i] = draw((steps+1)*stride, .5)
		for j, x := range states[i] {
			states[i][j] = float32(c.Start(i, float64(x)))
		}
	}
	v := make([]Vector, len(refs))
	want := make([][]float64, len(refs))
	for i, r := range refs {
		switch {
		case r.Kind == cell.Prev:
			v[i] = Vector{Data: states[r.Index], Step: stride}
		case r.Kind == cell.Next:
			v[i] = Vector{Data: states[r.Index], From: stride, Step: stride}
		case r.Kind.Broadcast():
			v[i] = Vector{Data: draw(n, .5)}
		default:
			v[i] = Vector{Data: draw(steps*stride, 1), Step: stride}
		}
	}
	wide := make([][]float64, len(states))
	for i, s := range states {
		for _, x := range s {
			wide[i] = append(wide[i], float64(x))
		}
	}
	for i, r := range refs {
		if r.Kind == cell.Prev || r.Kind == cell.Next {
			want[i] = wide[r.Index]
			continue
		}
		for _, x := range v[i].Data {
			want[i] = append(want[i], float64(x))
		}
	}
	strips := (n + simd.StripWidth - 1) / simd.StripWidth
	weights := make([][]float32, c.Recurrent)
	for g := range weights {
		weights[g] = draw(strips*n*simd.StripWidth, 1/math.Sqrt(float64(n)))
	}

	in := newFormed(n, 1+rng.IntN(2*n), 1+rng.IntN(3), draw)
	before := rng.IntN(steps) // steps before those that compute the product
	counters := make([]*atomic.Uint64, bands)
	for b := range counters {
		counters[b] = new(atomic.Uint64)
		counters[b].Store(7)
	}
	var wg sync.WaitGroup
	for b := range bands {
		span := func(b int) Span {
			from := strips * b / bands * simd.StripWidth
			return Span{from, min(n, strips*(b+1)/bands*simd.StripWidth) - from}
		}
		band := Band{Span: span(b), Done: counters[b], Pairs: rng.IntN(2) == 0}
		for o := range bands {
			if o != b {
				band.Others = append(band.Others, span(o))
			}
		}
		own := Products{State: Vector{Data: states[c.Through], Step: stride}, Depth: n}
		for _, w := range weights {
			own.Weights = append(own.Weights, w[band.From*n:])
		}
		at := make([]Vector, len(v))
		for i := range v {
			at[i] = v[i]
			at[i].From += band.From
		}
		s := NewSteps(len(refs), bands, PartLen(c.Recurrent, n))
		for i := range s.Part {
			s.Part[i] = float32(math.NaN())
		}
		wg.Go(func() {
			k.Start(s, at, &own, &band, steps)
			come := func() {
				for _, c := range counters {
					for int(c.Load()) < s.Turn {
						runtime.Gosched()
					}
				}
			}
			finish := func() {
				for !k.Run(s) {
					come()
					k.Resume(s)
				}
			}
			come()
			k.Form(s, before, nil, 0, 0)
			finish()
			if Forms(l) && !k.Alone() {
				k.Form(s, steps-before, in.tiles(band.Span), in.depth, in.stride)
			} else {
				k.Form(s, steps-before, nil, 0, 0)
			}
			finish()
		})
	}
	wg.Wait()
	if Forms(l) && !k.Alone() {
		in.check(t)
	}

	for s := range steps {
		before := append([]float64(nil), wide[c.Through][s*stride:][:n]...)
		for u := range n {
			values := map[cell.Ref]*float64{}
			for g, w := range weights {
				sum := 0.
				for j, h := range before {
					sum += h * float64(w[u/simd.StripWidth*n*simd.StripWidth+j*simd.StripWidth+u%simd.StripWidth])
				}
				values[cell.Ref{Kind: cell.R, Index: g}] = &sum
			}
			for i, r := range refs {
				if r.Kind != cell.R {
					values[r] = &want[i][v[i].From+s*v[i].Step+u]
				}
			}
			e.Program.Eval(func(r cell.Ref) *float64 {
				if values[r] == nil {
					values[r] = new(float64)
				}
				return values[r]
			})
		}
	}
	// Products of n terms, and operations within 2.5 ulp. Errors grow from step to step.
	bound := 0x1p-23 * (float64(n) + 2.5*float64(len(e.Program))) * math.Pow(2, float64(steps))
	for i, r := range refs {
		for j, x := range v[i].Data {
			if d := math.Abs(float64(x) - want[i][j]); r.Kind != cell.R && !(d <= bound) {
				t.Fatalf("%v %v n %d bands %d steps %d: %v[%d] = %v, want %v", l, e.Key(), n, bands, steps, r, j, x, want[i][j])
			}
		}
	}
	for b, c := range counters {
		if c.Load() != 8+uint64(steps) && !k.Alone() {
			t.Fatalf("%v %v: band %d has counted %d steps of %d", l, e.Key(), b, c.Load()-8, steps)
		}
	}
}

// A formed is a product that steps compute.
type formed struct {
	depth, stride, units int
	inputs, weights, out []float32
}

// newFormed returns a product of so many units and tiles of rows.
func newFormed(units, depth, tiles int, draw func(int, float64) []float32) *formed {
	const margin = simd.StripWidth
	f := &formed{depth: depth, stride: units + margin, units: units}
	f.inputs = draw(tiles*depth*TileRows, 1)
	f.weights = draw((units+simd.StripWidth-1)/simd.StripWidth*depth*simd.StripWidth, 1/math.Sqrt(float64(depth)))
	f.out = make([]float32, tiles*TileRows*f.stride)
	return f
}

// tiles returns the tiles of a band.
func (f *formed) tiles(band Span) []Tile {
	var all []Tile
	for at := band.From; at < band.From+band.N; at += simd.StripWidth {
		for row := 0; row*f.stride < len(f.out); row += TileRows {
			all = append(all, NewTile(f.weights[at*f.depth:], f.inputs[row*f.depth:], f.out[row*f.stride+at:], Span{N: min(simd.StripWidth, band.From+band.N-at)}))
		}
	}
	return all
}

// check compares the product with double precision, and checks that its surroundings are still 0.
func (f *formed) check(t *testing.T) {
	t.Helper()
	for i, got := range f.out {
		row, u, want := i/f.stride, i%f.stride, 0.
		for k := 0; u < f.units && k < f.depth; k++ {
			want += float64(f.inputs[(row/TileRows*f.depth+k)*TileRows+row%TileRows]) * float64(f.weights[(u/simd.StripWidth*f.depth+k)*simd.StripWidth+u%simd.StripWidth])
		}
		if !(math.Abs(float64(got)-want) <= 0x1p-20*math.Sqrt(float64(f.depth))) || u >= f.units && got != 0 {
			t.Fatalf("%d×%d by %d: row %d, unit %d: %v, want %v", len(f.out)/f.stride, f.units, f.depth, row, u, got, want)
		}
	}
}
