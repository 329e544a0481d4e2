package fused

import (
	"math"
	"sync/atomic"
	"unsafe"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// A Recurrence runs one program over steps of one sequence, and before each step the products that the
// program reads, which never leave the registers: a small layer in one call. It is immutable and safe
// for concurrent use.
type Recurrence struct {
	vectors []cell.Ref
	run     recurrenceFunc
}

// NewRecurrence returns the recurrence of c in assembly of level l; nil: there is none.
func NewRecurrence(l simd.Level, c *cell.Cell, pass Pass) *Recurrence {
	p := catalog.OfStep(c, pass)
	run := recurrenceTable.find(l, c, pass, p)
	if run == nil {
		return nil
	}
	return &Recurrence{catalog.Vectors(p), run}
}

// Vectors lists the vectors that Run takes; it computes those of kind R, which it does not touch.
func (k *Recurrence) Vectors() []cell.Ref { return k.vectors }

// Products are those of a Recurrence: of a state before each step, Depth units, with weights each, packed
// in single precision (see simd.StripWidth) from the first of the band's units on.
type Products struct {
	Weights [][]float32
	State   Vector
	Depth   int
}

// A Band is who computes units From … From+N-1 of a state: all, or one of several workers, each with a
// band of its own. What it counts in Done is the same for all bands before they start.
type Band struct {
	Span
	Others []Span // each with units
	Done   *atomic.Uint64
	Pairs  bool // two vectors of units at once: faster where the weights are in the nearest cache
}

// NewSteps returns the memory that a Recurrence of at most so many vectors and bands needs, with part floats.
// It shares no cache line with anything else, since every step writes to it.
func NewSteps(vectors, bands, part int) *Steps {
	const apart = 128 / 8
	words := make([]uintptr, 2*(vectors+apart)+apart)
	s := &struct {
		_ [apart]uintptr
		Steps
		_ [apart]uintptr
	}{Steps: Steps{
		At: words[apart:], Weights: words[vectors+2*apart:],
		By: make([]int, vectors), Last: make([]Span, bands), Part: make([]float32, part+4*apart)[2*apart:],
		Sums: make([]float32, TileRows*simd.StripWidth+4*apart)[2*apart:][:TileRows*simd.StripWidth],
	}}
	return &s.Steps
}

// PartLen returns how many floats so many products of so many units take in Steps.
func PartLen(products, units int) int {
	return products * ((units + simd.StripWidth - 1) / simd.StripWidth * simd.StripWidth)
}

// Start has s begin so many steps of a band, and counts that. The vectors are those of Vectors(), one row
// a step, from the band's first unit on. They and the products must outlive the steps. A band must not Run
// before all have started.
func (k *Recurrence) Start(s *Steps, v []Vector, p *Products, b *Band, steps int) {
	const float = 4
	v = v[:len(k.vectors)]
	s.At, s.By, s.Weights, s.Last = s.At[:0], s.By[:0], s.Weights[:0], s.Last[:0]
	for i := range v {
		if k.vectors[i].Kind == cell.R {
			s.At, s.By = append(s.At, 0), append(s.By, 0)
			continue
		}
		v[i].check(b.N, 1, steps)
		s.At, s.By = append(s.At, v[i].address()), append(s.By, float*v[i].Step)
	}
	p.State.check(p.Depth, 1, steps)
	for _, w := range p.Weights {
		_ = w[:PartLen(p.Depth, b.N)]
		s.Weights = append(s.Weights, uintptr(unsafe.Pointer(unsafe.SliceData(w))))
	}
	s.Strip = float * simd.StripWidth * p.Depth
	s.State, s.StateBy = p.State.address(), float*p.State.Step
	s.Units, s.Count = b.N, steps
	part := s.Part[:PartLen(len(p.Weights), b.N)]
	if s.Own = (Span{b.From, b.N}); b.N == p.Depth {
		s.Own = Span{}
		clear(part)
	}
	to := s.Own.From + s.Own.N
	s.After = p.Depth - to
	for _, o := range b.Others {
		whole := (o.N - 1) / simd.StripWidth * simd.StripWidth
		s.Last = append(s.Last, Span{o.From + whole, o.N - whole})
	}
	if s.Own.N > 0 && steps > 1 {
		row := p.State.Data[p.State.From+p.State.Step+b.From:][:b.N]
		for i := range row {
			row[i] = math.Float32frombits(unset)
		}
	}
	s.Pairs = 0
	if b.Pairs {
		s.Pairs = 1
	}
	s.Until, s.Tiles, s.Terms = 0, 0, 0
	s.Sure, s.Turn, s.Done = 1, int(b.Done.Add(1)), uintptr(unsafe.Pointer(b.Done))
}

// unset is what a state's units hold until their band has computed them: a signalling NaN, which no
// operation gives. Bands look for it, and so wait for a state once, not for word of it and then for it.
const unset = 0x7fa5a5a5

// Run runs the steps that s has begun, or those of a Form. It returns whether they are done, or another band has been awaited
// for so long that its worker may have lost its processor: once all have counted s.Turn, Resume.
func (k *Recurrence) Run(s *Steps) bool {
	k.run(s)
	return s.Count == s.Until
}

// Resume has s go on with a state that all bands have computed.
func (k *Recurrence) Resume(s *Steps) { s.Sure = 1 }
