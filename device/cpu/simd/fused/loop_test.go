package fused

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// everyLoop returns the programs of all linear recurrences, and of some whose scans are serial.
func everyLoop() []named {
	var all []named
	for _, c := range append([]*cell.Cell{cell.Linear}, catalog.Linear(cell.All())...) {
		for pass := Inference; pass <= ComposeBackward; pass++ {
			all = append(all, named{c, pass, catalog.OfScan(c, pass)})
		}
	}
	for _, c := range append([]*cell.Cell{cell.RGLRU}, catalog.Diagonals()...) {
		for pass := Inference; pass <= Backward; pass++ {
			all = append(all, named{c, pass, catalog.OfScan(c, pass)})
		}
	}
	return all
}

// TestLoopComputesProgram compares loops, and the interpreter, with the program run row by row in
// double precision. States stay in place from step to step. Results follow each other with gaps,
// forward and backward in memory.
func TestLoopComputesProgram(t *testing.T) {
	for l := simd.Generic; l <= simd.Detect().Base(); l++ {
		t.Run(l.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			for _, p := range append(everyLoop(), named{everything(), Inference, everything().Inference}) {
				for _, n := range []int{1, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 48, 70} {
					compareLoop(t, l, p, n, 1+rng.IntN(max(3, 40/n)), 1+rng.IntN(4), rng)
				}
			}
		})
	}
}

func compareLoop(t *testing.T, l simd.Level, p named, n, rows, steps int, rng *rand.Rand) {
	t.Helper()
	k := NewLoop(l, p.cell, p.pass)
	refs := k.Vectors()
	index := map[cell.Ref]int{}
	v := make([]Vector, len(refs))
	want := make([][]float64, len(refs))
	packed := k.Packs(n) > 1 && rng.IntN(3) > 0
	stream, lines := !packed && rng.IntN(2) == 0, (n+15)/16*16
	for i, r := range refs {
		index[r] = i
		gap := rng.IntN(5)
		if packed && !Apart(r.Kind) {
			gap = 0
		}
		if Bypasses(r.Kind) && stream {
			gap = lines - n
		}
		stride := n + gap
		switch {
		case r.Kind.Broadcast():
			v[i] = Vector{Data: make([]float32, n), From: 0, Row: 0, Step: 0}
		case r.Kind == cell.Prev || r.Kind == cell.DNext || r.Kind == cell.DPeep || r.Kind == cell.Factor:
			v[i] = Vector{Data: make([]float32, stride*rows), From: 0, Row: stride, Step: -stride * (rows - 1)}
		case rng.IntN(2) == 0:
			v[i] = Vector{Data: make([]float32, stride*rows*steps+16), From: 0, Row: stride, Step: stride}
		default: // from the last step to the first
			v[i] = Vector{Data: make([]float32, stride*rows*steps+16), From: stride * rows * (steps - 1), Row: stride, Step: -stride * (2*rows - 1)}
		}
		v[i].Ahead, v[i].Pace, v[i].Beside = rng.IntN(1000)-500, rng.IntN(5), rng.IntN(100)
		for Bypasses(r.Kind) && stream && !v[i].Aligned() {
			v[i].From++
		}
		for j := range v[i].Data {
			v[i].Data[j] = p.draw(r, rng.NormFloat64())
			want[i] = append(want[i], float64(v[i].Data[j]))
		}
	}
	if packed {
		several := slices.Clone(v)
		for i, r := range refs {
			if r.Kind.Broadcast() {
				several[i].Data = slices.Repeat(v[i].Data, k.Packs(n))
			}
		}
		k.RunPacked(several, make([]uintptr, len(v)), make([]Pack, 2), n, rows, steps)
	} else {
		k.Run(v, make([]uintptr, len(v)), n, rows, steps, stream)
	}
	largest := 1.0
	for s := range steps {
		for r := range rows {
			for u := range n {
				temps := map[cell.Ref]*float64{}
				at := func(ref cell.Ref) *float64 {
					if i, ok := index[ref]; ok {
						w := &v[i]
						return &want[i][w.From+s*(w.Step+(rows-1)*w.Row)+r*w.Row+u]
					}
					if temps[ref] == nil {
						temps[ref] = new(float64)
					}
					return temps[ref]
				}
				for _, in := range p.p {
					cell.Program{in}.Eval(at)
					largest = max(largest, math.Abs(*at(in.Out)))
				}
			}
		}
	}
	bound := 2.5 * 0x1p-23 * float64(len(p.p)*steps) * largest * largest
	for i, r := range refs {
		for j, x := range v[i].Data {
			if d := math.Abs(float64(x) - want[i][j]); !(d <= bound) {
				t.Fatalf("%v %v n %d rows %d steps %d packed %v stream %v: %v[%d] = %v, want %v", l, p, n, rows, steps, packed, stream, r, j, x, want[i][j])
			}
		}
	}
}

// TestLoopRefusesRowsOutside: a row outside the data causes a panic.
func TestLoopRefusesRowsOutside(t *testing.T) {
	k := NewLoop(simd.Detect(), cell.GILR, Inference)
	v := make([]Vector, len(k.Vectors()))
	for i := range v {
		v[i] = Vector{Data: make([]float32, 64), From: 0, Row: 8, Step: 8}
	}
	v[2].Step = -9
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	k.Run(v, make([]uintptr, len(v)), 8, 2, 4, false)
}

// TestPackedRefusesRowsApart: gaps between states of sequences in one vector cause a panic.
func TestPackedRefusesRowsApart(t *testing.T) {
	k := NewLoop(simd.Detect(), cell.GILR, Inference)
	v := make([]Vector, len(k.Vectors()))
	for i := range v {
		v[i] = Vector{Data: make([]float32, 64), From: 0, Row: 4, Step: 4}
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	k.RunPacked(v, make([]uintptr, len(v)), make([]Pack, 2), 3, 2, 4)
}
