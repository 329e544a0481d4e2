package schedule

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"rnnbench/rnn/cell"
)

// FuzzDerive checks the derived waits of random schedules by Verify.
func FuzzDerive(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		s := random(seed)
		derive(s)
		if err := Verify(s); err != nil {
			t.Fatal(err)
		}
	})
}

func random(seed uint64) *Schedule {
	rng := rand.New(rand.NewPCG(seed, 2))
	b := NewBuilder(1 + rng.IntN(5))
	var ms []*Matrix
	for range 3 {
		ms = append(ms, b.Matrix("m", 8, 8))
	}
	whole := rng.IntN(2) == 0 // whole rows only, aligned, as most real views are
	view := func() View {
		v := View{M: ms[rng.IntN(len(ms))], Row: rng.IntN(8), Col: rng.IntN(8)}
		v.Rows, v.Cols = 1+rng.IntN(8-v.Row), 1+rng.IntN(8-v.Col)
		if whole {
			v = v.M.Band(v.Row&^1, 2)
		}
		return v
	}
	for range 1 + rng.IntN(60) {
		b.s.Nodes = append(b.s.Nodes, Node{Op: Gemm{A: view(), B: view(), C: view()}, Stream: rng.IntN(b.s.Streams)})
	}
	return &b.s
}

// TestVerifyCatches drops derived waits one by one: Verify must object to
// nearly every one, or it would prove nothing and the derivation would be
// wasteful.
func TestVerifyCatches(t *testing.T) {
	waits, spare := 0, 0
	for seed := range uint64(1000) {
		s := random(seed)
		derive(s)
		for i := range s.Nodes {
			saved := s.Nodes[i].Wait
			for k := range saved {
				waits++
				s.Nodes[i].Wait = append(append([]int(nil), saved[:k]...), saved[k+1:]...)
				if Verify(s) == nil {
					spare++
				}
			}
			s.Nodes[i].Wait = saved
		}
	}
	if waits < 1000 || spare*20 > waits {
		t.Errorf("%d of %d waits could be left out unnoticed", spare, waits)
	}
}

// wave is a schedule of the shape of Appleyard's wave: layers × steps cells,
// each an input product, a recurrent product and an addition.
func wave(streams, layers, steps int) *Builder {
	b := NewBuilder(streams)
	const batch, hidden = 4, 8
	var w, x, r, h []*Matrix
	for range layers + 1 {
		w = append(w, b.Matrix("w", hidden, hidden))
		x = append(x, b.Matrix("x", steps*batch, hidden))
		r = append(r, b.Matrix("r", batch, hidden))
		h = append(h, b.Matrix("h", (steps+1)*batch, hidden))
	}
	for d := range steps + layers {
		for l := range layers {
			t := d - l
			if t < 0 || t >= steps {
				continue
			}
			at := x[l].Band(t*batch, batch)
			b.Do(2*l, Gemm{A: h[l].Band((t+1)*batch, batch), B: w[l].All(), C: at})
			b.Do(2*l+1, Gemm{A: h[l+1].Band(t*batch, batch), B: w[l].All(), C: r[l].All()})
			b.Do(2*l+1, Map{Op: cell.Add, Out: h[l+1].Band((t+1)*batch, batch), A: at, B: r[l].All()})
		}
	}
	return b
}

func TestWaveIsOrdered(t *testing.T) {
	s, err := wave(4, 3, 20).Schedule()
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(s); err != nil {
		t.Fatal(err)
	}
	sum := s.Summarize()
	if want := 2*(20+3-1) + 0; sum.Chain < want { // a product and an addition per wave
		t.Errorf("the longest chain has %d operations, want at least %d", sum.Chain, want)
	}
	if sum.Critical <= 0 || sum.Critical >= sum.FLOPs {
		t.Errorf("critical path of %d FLOPs among %d", sum.Critical, sum.FLOPs)
	}
}

func BenchmarkDerive(b *testing.B) {
	build := wave(4, 4, 6000) // 72,000 operations
	for b.Loop() {
		start := time.Now()
		for i := range build.s.Nodes {
			build.s.Nodes[i].Wait = nil
		}
		if _, err := build.Schedule(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(len(build.s.Nodes)), "ns/node")
	}
}

// stack is a small Vendor over fresh matrices.
func stack(b *Builder) Vendor {
	all := func(rows, cols int) View { return b.Matrix("s", rows, cols).All() }
	return Vendor{
		Stack: Stack{
			Cell: cell.RNNTanh, Steps: 3, X: all(6, 5), Y: all(6, 4), First: []View{all(2, 4)},
			W: []View{all(4, 5)}, R: []View{all(4, 4)}, BX: []View{all(1, 4)}, BR: []View{all(1, 4)},
		},
		Last: []View{all(2, 4)},
	}
}

func TestBuilderAcceptsStack(t *testing.T) {
	b := NewBuilder(1)
	op := stack(b)
	b.Do(0, op)
	if _, err := b.Schedule(); err != nil {
		t.Error(err)
	}
	if want := int64(6 * (2*(4*5+4*4) + 4*int(cell.RNNTanh.Inference.FLOPs()))); op.FLOPs() != want {
		t.Errorf("%d operations, want %d", op.FLOPs(), want)
	}
}

// bothWays is stack with each of two layers running both ways.
func bothWays(b *Builder) Vendor {
	all := func(rows, cols int) View { return b.Matrix("s", rows, cols).All() }
	op := Vendor{
		Stack: Stack{Cell: cell.RNNTanh, Both: true, Steps: 3, X: all(6, 5), Y: all(6, 8), First: []View{all(8, 4)}},
		Last:  []View{all(8, 4)},
	}
	for _, width := range []int{5, 5, 8, 8} {
		op.W, op.R = append(op.W, all(4, width)), append(op.R, all(4, 4))
		op.BX, op.BR = append(op.BX, all(1, 4)), append(op.BR, all(1, 4))
	}
	return op
}

// TestBuilderAcceptsBothWays: layers above the first read the outputs of both ways, and a layer short of one way is refused.
func TestBuilderAcceptsBothWays(t *testing.T) {
	b := NewBuilder(1)
	op := bothWays(b)
	b.Do(0, op)
	if _, err := b.Schedule(); err != nil {
		t.Error(err)
	}
	if op.Layers() != 2 || op.Hidden() != 4 || op.Batch() != 2 {
		t.Errorf("%d layers of %d units, batch %d, want 2 layers of 4 units, batch 2", op.Layers(), op.Hidden(), op.Batch())
	}
	if want := int64(6 * (2*2*(4*5+4*4+4*8+4*4) + 4*4*int(cell.RNNTanh.Inference.FLOPs()))); op.FLOPs() != want {
		t.Errorf("%d operations, want %d", op.FLOPs(), want)
	}
	for name, spoil := range map[string]func(op *Vendor){
		"one way":     func(op *Vendor) { op.Both = false },
		"three runs":  func(op *Vendor) { op.W = op.W[:3] },
		"one's width": func(op *Vendor) { op.W[2] = op.W[0] },
		"states":      func(op *Vendor) { op.First[0] = op.First[0].M.Band(0, 4) },
	} {
		b := NewBuilder(1)
		op := bothWays(b)
		spoil(&op)
		b.Do(0, op)
		if _, err := b.Schedule(); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

// TestBuilderChecksLengths: a stack has a row for each step of each sequence, the longest first.
func TestBuilderChecksLengths(t *testing.T) {
	for name, c := range map[string]struct {
		lengths []int
		ok      bool
	}{
		"two sequences":     {[]int{3, 3}, true},
		"padded":            {[]int{3, 2}, true},
		"too many rows":     {[]int{3}, false},
		"shortest first":    {[]int{2, 3, 1}, false},
		"none of all steps": {[]int{2, 2, 2}, false},
		"a length of 0":     {[]int{3, 3, 0}, false},
		"too long":          {[]int{4, 2}, false},
		"none":              {[]int{}, false},
	} {
		b := NewBuilder(1)
		op := stack(b)
		op.Lengths = c.lengths
		if b.Do(0, op); (b.err == nil) != c.ok {
			t.Errorf("%s: %v", name, b.err)
		}
	}
}

func TestBuilderRejects(t *testing.T) {
	for name, add := range map[string]func(b *Builder, m, p *Matrix){
		"shapes":      func(b *Builder, m, _ *Matrix) { b.Do(0, Gemm{A: m.All(), B: m.Band(0, 2), C: m.All()}) },
		"outside":     func(b *Builder, m, _ *Matrix) { b.Do(0, Map{Op: cell.Copy, Out: m.Band(3, 2), A: m.Band(0, 2)}) },
		"negative":    func(b *Builder, m, _ *Matrix) { b.Do(0, Map{Op: cell.Zero, Out: m.Band(-1, 2)}) },
		"empty":       func(b *Builder, m, _ *Matrix) { b.Do(0, Map{Op: cell.Zero, Out: m.Band(0, 0)}) },
		"packed read": func(b *Builder, m, p *Matrix) { b.Do(0, Map{Op: cell.Copy, Out: m.All(), A: p.All()}) },
		"packed part": func(b *Builder, m, p *Matrix) {
			b.Do(0, Gemm{A: m.Band(0, 2).Columns(0, 2), B: p.Band(0, 2), C: m.Band(0, 2)})
		},
		"packed left":  func(b *Builder, m, p *Matrix) { b.Do(0, Gemm{A: p.All(), B: m.All(), C: m.All()}) },
		"tangled map":  func(b *Builder, m, _ *Matrix) { b.Do(0, Map{Op: cell.Copy, Out: m.Band(0, 2), A: m.Band(1, 2)}) },
		"tangled gemm": func(b *Builder, m, _ *Matrix) { b.Do(0, Gemm{A: m.All(), B: m.All(), C: m.All()}) },
		"not packed":   func(b *Builder, m, _ *Matrix) { b.Do(0, Pack{Src: m.All(), Dst: m.All()}) },
		"cell states":  func(b *Builder, m, _ *Matrix) { b.Do(0, Cell{Cell: cell.LSTM, Next: []View{m.All()}}) },
		"no stack": func(b *Builder, m, _ *Matrix) {
			b.Do(0, Vendor{Stack: Stack{Cell: cell.RNNTanh, X: m.All(), Y: m.All()}})
		},
		"stack of part": func(b *Builder, m, _ *Matrix) {
			s := stack(b)
			s.Y = b.Matrix("wide", 6, 5).All().Columns(0, 4)
			b.Do(0, s)
		},
		"stack that keeps in the open": func(b *Builder, m, _ *Matrix) {
			s := stack(b)
			s.Kept = m.All()
			b.Do(0, s)
		},
		"nothing kept": func(b *Builder, m, _ *Matrix) {
			s := stack(b)
			b.Do(0, VendorBackward{Stack: s.Stack, DY: s.Y, DX: s.X, DFirst: s.Last, DW: s.W, DR: s.R, DBX: s.BX, DBR: s.BR})
		},
		"array of another shape": func(b *Builder, m, _ *Matrix) {
			b.Do(0, Foreign{Program: "rival", In: []Array{{"x", []int{4, 4}, m.All()}}, Out: []Array{{"y", []int{4, 3}, m.All()}}})
		},
		"array of part": func(b *Builder, m, _ *Matrix) {
			b.Do(0, Foreign{Program: "rival", In: []Array{{"x", []int{2, 4}, m.Band(0, 2)}}, Out: []Array{{"y", []int{4, 4}, m.All()}}})
		},
		"kept read": func(b *Builder, m, _ *Matrix) {
			s := stack(b)
			s.Kept = b.Packed("kept", 4, 4).All()
			b.Do(0, s)
			b.Do(0, Gemm{A: m.All(), B: s.Kept, C: m.All(), TransB: true})
		},
	} {
		b := NewBuilder(2)
		m, p := b.Matrix("m", 4, 4), b.Packed("p", 4, 4)
		add(b, m, p)
		if _, err := b.Schedule(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestTooManyOperations: more operations than a schedule has room for are declined, ahead or as
// they come. That is not an error.
func TestTooManyOperations(t *testing.T) {
	b := NewBuilder(1)
	if err := b.Room(MaxNodes); err != nil {
		t.Error(err)
	}
	if err := b.Room(MaxNodes + 1); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	op := Gemm{A: b.Matrix("a", 8, 8).All(), B: b.Matrix("b", 8, 8).All(), C: b.Matrix("c", 8, 8).All()}
	if !b.admits(op, MaxNodes-1) || b.admits(op, MaxNodes) {
		t.Errorf("the last operation that there is room for: %v", b.err)
	}
	if _, err := b.Schedule(); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
