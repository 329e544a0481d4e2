package fused

import (
	"math"
	"sync/atomic"
	"unsafe"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// A Recurrence runs one program over steps of one sequence, so that a small layer is one call.
// Before each step it computes the products that the program reads, which stay in registers. It is
// immutable and safe for concurrent use.
type Recurrence struct {
	vectors []cell.Ref
	run     recurrenceFunc // nil: interpret
	machine *machine
	code    *Code
}

// NewRecurrence returns the recurrence of c, of so many units: assembly of level l if there is any,
// otherwise an interpreter. It returns nil if level l has neither, or the program or its units are
// too many to be interpreted.
func NewRecurrence(l simd.Level, c *cell.Cell, pass Pass, units int) *Recurrence {
	p := catalog.OfStep(c, pass)
	if run := recurrenceTable.find(l, p); run != nil {
		return &Recurrence{vectors: catalog.Vectors(p), run: run}
	}
	return interpretedRecurrence(l, c, p, units)
}

func interpretedRecurrence(l simd.Level, c *cell.Cell, p cell.Program, units int) *Recurrence {
	m := machines()[l.Base()]
	if m == nil || c.Recurrent == 0 {
		return nil
	}
	k := &Recurrence{vectors: catalog.Vectors(p), machine: m}
	if k.code = m.code(p, k.vectors, c.Recurrent); k.code == nil || units > k.code.Tile {
		return nil
	}
	return k
}

// Alone reports whether one band must have all units and Form takes no tiles, because the program is
// interpreted.
func (k *Recurrence) Alone() bool { return k.run == nil }

// Vectors lists the vectors that Start takes. Those of kind R are computed and need no memory.
func (k *Recurrence) Vectors() []cell.Ref { return k.vectors }

// Products are the recurrent products: weights times the state before each step, of Depth units.
// Weights are packed in single precision (see simd.StripWidth), from the band's first unit on.
type Products struct {
	Weights [][]float32
	State   Vector
	Depth   int
}

// A Band is the units From … From+N-1 of a state that one worker computes, and the other workers'
// bands. Before they start, Done must have the same value for all bands.
type Band struct {
	Span
	Others []Span // the other bands; none is empty
	Done   *atomic.Uint64
	Pairs  bool // compute two vectors of units at once: faster if the nearest cache holds the weights
}

// NewSteps returns the memory of a Recurrence of at most so many vectors and bands, with part
// floats. It shares no cache line with anything else, since every step writes to it.
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
		Sums:    make([]float32, TileRows*simd.StripWidth+4*apart)[2*apart:][:TileRows*simd.StripWidth],
		Vectors: make([]Vector, 0, 2*vectors+1),
	}}
	return &s.Steps
}

// StepsLen returns the size of NewSteps' memory, in floats.
func StepsLen(vectors, part int) int {
	const word, vector = int(unsafe.Sizeof(uintptr(0)) / 4), int(unsafe.Sizeof(Vector{}) / 4)
	return 3*vectors*word + (2*vectors+1)*vector + part + TileRows*simd.StripWidth
}

// PartLen returns how many floats so many products of so many units take in Steps.
func PartLen(products, units int) int {
	return products * ((units + simd.StripWidth - 1) / simd.StripWidth * simd.StripWidth)
}

// Start sets s up for so many steps of a band, and counts b.Done up. The vectors are those of
// Vectors(), one row a step, from the band's first unit on. They and the products must stay valid
// until the steps are done. No band may Run before all have started.
func (k *Recurrence) Start(s *Steps, v []Vector, p *Products, b *Band, steps int) {
	if k.run == nil {
		k.startAlone(s, v[:len(k.vectors)], p, b, steps)
		return
	}
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

// startAlone is Start of an interpreter.
func (k *Recurrence) startAlone(s *Steps, v []Vector, p *Products, b *Band, steps int) {
	if b.N != p.Depth {
		panic("fused: an interpreter runs all units")
	}
	s.Vectors = append(s.Vectors[:0], v...)
	for i := range v {
		if k.vectors[i].Kind != cell.R {
			v[i].check(b.N, 1, steps)
		}
	}
	p.State.check(p.Depth, 1, steps)
	s.Vectors = append(s.Vectors, p.State)
	for _, w := range p.Weights {
		s.Vectors = append(s.Vectors, Vector{Data: w[:PartLen(p.Depth, b.N)]})
	}
	s.Units, s.Count, s.Until = b.N, steps, 0
	s.Sure, s.Turn = 1, int(b.Done.Add(1))
}

// unset is the value of a state's units until their band has computed them: a signalling NaN, which
// no operation produces. Bands poll the state itself, so they wait once, and not for a signal and
// then for the data.
const unset = 0x7fa5a5a5

// Run runs the steps of s, or those of Form, and reports whether they are done. Otherwise another
// band has been awaited for so long that its worker may have lost its processor. Once all bands
// have counted up to s.Turn, call Resume and Run again.
func (k *Recurrence) Run(s *Steps) bool {
	if k.run == nil {
		k.interpret(s)
		return true
	}
	k.run(s)
	return s.Count == s.Until
}

// Resume tells s that all bands have computed the state before the next step.
func (k *Recurrence) Resume(s *Steps) { s.Sure = 1 }

// interpret runs the steps of s, or those of Form.
func (k *Recurrence) interpret(s *Steps) {
	steps := s.Count - s.Until
	if steps == 0 || s.Units == 0 {
		return
	}
	k.machine.run(k.code, &s.Vectors[0].Data, int(unsafe.Sizeof(s.Vectors[0])), s.Units, 1, steps)
	for i := range s.Vectors {
		s.Vectors[i].From += steps * s.Vectors[i].Step
	}
	s.Count = s.Until
}
