package fused

import (
	"fmt"
	"slices"
	"unsafe"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// A Loop runs one program over the rows of several steps in one call, which saves a call for each
// short row. It is immutable and safe for concurrent use.
type Loop struct {
	rows *Kernel  // runs one row, if there is no assembly
	run  loopFunc // nil: interpret

	width int // units of a vector register
}

// NewLoop returns the loop of c, which has a recurrence: assembly of level l if there is any,
// otherwise the interpreter.
func NewLoop(l simd.Level, c *cell.Cell, pass Pass) *Loop {
	p := catalog.OfScan(c, pass)
	return madeLoops.of(l, p, func() *Loop {
		width := 16
		if l.Base() == simd.AVX2 {
			width = 8
		}
		return &Loop{rows: interpreter(l, p), run: loopTable.find(l, p), width: width}
	})
}

var madeLoops memo[*Loop]

// Assembled reports whether the loop is assembly.
func (k *Loop) Assembled() bool { return k.run != nil }

// Program returns the program that the loop runs.
func (k *Loop) Program() cell.Program { return k.rows.program }

// Vectors lists the vectors that Run takes.
func (k *Loop) Vectors() []cell.Ref { return k.rows.vectors }

// SideBySide counts the adjacent vectors that the program reads, from ref on. It returns 0 if ref
// is not the first of them, or if vectors of its kind are not prefetched.
func (k *Loop) SideBySide(ref cell.Ref) int {
	reads, _ := k.rows.program.Vectors()
	switch ref.Kind {
	case cell.DOut, cell.Prev, cell.Next:
		return 1
	case cell.X, cell.R, cell.Saved:
	default:
		return 0
	}
	next := func(by int) cell.Ref { return cell.Ref{Kind: ref.Kind, Index: ref.Index + by} }
	if !slices.Contains(reads, ref) || slices.Contains(reads, next(-1)) {
		return 0
	}
	n := 1
	for slices.Contains(reads, next(n)) {
		n++
	}
	return n
}

// Bypasses reports whether Run can store vectors of kind k past the caches: next states, which no
// later step of the loop reads.
func Bypasses(k cell.Kind) bool { return k == cell.Next }

// Run runs the program for units 0 … n-1 of each row. The vectors are those of Vectors(). Two may
// be the same if the program reads neither after it has written one. With stream, vectors that the
// program writes and that Bypasses accepts bypass the caches; they must be Aligned. at is memory for
// one word per vector.
func (k *Loop) Run(v []Vector, at []uintptr, n, rows, steps int, stream bool) {
	v = v[:len(k.rows.vectors)]
	for i := range v {
		v[i].check(n, rows, steps)
	}
	if n == 0 || rows == 0 || steps == 0 || len(v) == 0 { // an empty program has no vectors
		return
	}
	if k.run != nil {
		s := 0
		if stream {
			s = 1
		}
		k.run(v, at[:len(v)], n, rows, steps, s, nil)
		return
	}
	if c := k.rows.code; c != nil {
		k.rows.machine.run(c, &v[0].Data, int(unsafe.Sizeof(v[0])), n, rows, steps)
		return
	}
	k.rows.interpretRows(v, n, rows, steps)
}

// check panics if a row is outside the data.
func (v *Vector) check(n, rows, steps int) {
	if n == 0 || rows == 0 || steps == 0 {
		return
	}
	perStep := v.Step + (rows-1)*v.Row
	least := v.From + min(0, (rows-1)*v.Row) + min(0, (steps-1)*perStep)
	most := v.From + max(0, (rows-1)*v.Row) + max(0, (steps-1)*perStep)
	if least < 0 || most+n > len(v.Data) {
		panic(fmt.Sprintf("fused: rows from %d to %d of %d", least, most+n, len(v.Data)))
	}
}
