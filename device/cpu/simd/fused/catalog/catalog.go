// Package catalog lists the programs that have assembly. Package fused looks assembly up by its
// keys, and the generator in simd/_generate writes assembly for its entries.
//
// Cells that are not listed run in the interpreter of package fused, whose handlers it lists, too.
package catalog

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"rnnbench/cells"
	"rnnbench/rnn/cell"
)

// listedCells names the built-in cells that have assembly. To give a cell assembly, add its name and run make generate.
var listedCells = []string{
	"rnn-tanh", "rnn-relu", "gru", "lstm", "lstm-peephole", "lstm-c",
	"gilr", "sru", "qrnn", "qrnn2", "ls-lstm", "mingru", "rg-lru", "slstm",
}

// diagonals names the files of package cells whose serial scans have assembly: each unit of such a cell
// reads its own state alone.
var diagonals = []string{"gru-diag", "lstm-diag", "indrnn"}

// A Pass is one of a cell's programs.
type Pass int

// The passes. The last two compose steps of a linear recurrence (see cell.Recurrence).
const (
	Inference Pass = iota
	Forward
	Backward
	Compose
	ComposeBackward
)

// String returns the name of the constant.
func (p Pass) String() string {
	return [...]string{"Inference", "Forward", "Backward", "Compose", "ComposeBackward"}[p]
}

// A Key identifies a program.
type Key struct {
	Cell string
	Pass Pass
}

// An Entry is a program that has assembly.
type Entry struct {
	Cell    *cell.Cell
	Pass    Pass
	Program cell.Program
}

// Key returns the key of the entry's program.
func (e Entry) Key() Key { return Key{e.Cell.Name, e.Pass} }

// Kernels lists the programs that run over the units of one step.
func Kernels() []Entry {
	var all []Entry
	for _, c := range listed() {
		for _, p := range []Pass{Inference, Forward, Backward} {
			all = append(all, Entry{c, p, OfStep(c, p)})
		}
	}
	return all
}

// Loops lists the programs that run over many steps of a recurrence.
func Loops() []Entry {
	var all []Entry
	for _, c := range append([]*cell.Cell{cell.Linear}, Linear(listed())...) {
		for p := Inference; p <= ComposeBackward; p++ {
			all = append(all, Entry{c, p, OfScan(c, p)})
		}
	}
	for _, c := range Diagonals() {
		for _, p := range []Pass{Inference, Forward, Backward} {
			all = append(all, Entry{c, p, OfScan(c, p)})
		}
	}
	return all
}

// Diagonals lists the cells with a diagonal recurrence that have assembly.
func Diagonals() []*cell.Cell {
	var all []*cell.Cell
	for _, name := range diagonals {
		c, err := cells.Load(name)
		if err != nil {
			panic(err) // the files are part of the program
		}
		all = append(all, c)
	}
	return all
}

// Linear lists the linear recurrences among cells: cells without recurrent products, the two parts
// of linear surrogate cells, whose products are known ahead, and the forms of cells that scans run
// instead.
func Linear(cells []*cell.Cell) []*cell.Cell {
	var linear []*cell.Cell
	for _, c := range cells {
		switch {
		case c.Surrogate != nil:
			linear = append(linear, c.Surrogate, c.Core)
		case c.Scanned != nil:
			linear = append(linear, c.Scanned)
		case c.Recurrence != nil && c.Recurrent == 0:
			linear = append(linear, c)
		}
	}
	return linear
}

// Recurrences lists the programs that run over many steps together with their recurrent products.
func Recurrences() []Entry {
	var all []Entry
	for _, c := range listed() {
		if c.Recurrent > 0 {
			all = append(all, Entry{c, Inference, c.Inference}, Entry{c, Forward, c.Forward})
		}
	}
	return all
}

func listed() []*cell.Cell {
	return slices.DeleteFunc(cell.All(), func(c *cell.Cell) bool { return !slices.Contains(listedCells, c.Name) })
}

// OfStep returns the program of one step of c.
func OfStep(c *cell.Cell, p Pass) cell.Program {
	switch p {
	case Inference:
		return c.Inference
	case Forward:
		return c.Forward
	case Backward:
		return c.Backward
	}
	panic(fmt.Sprintf("catalog: %v is no pass over one step", p))
}

// OfScan returns the program of a step of c as a recurrence, linear or not.
func OfScan(c *cell.Cell, p Pass) cell.Program {
	r := c.Recurrence
	if r == nil {
		r = c.Serial
	}
	return [...]cell.Program{r.Inference, r.Forward, r.Backward, r.Compose, r.ComposeBackward}[p]
}

// Text returns a program as text, without operands that an instruction does not read.
func Text(p cell.Program) string {
	var lines []string
	for _, in := range p {
		lines = append(lines, in.String())
	}
	return strings.Join(lines, "; ")
}

// Hash returns the hash of a program's text. Assembly carries the hash of the program that it was
// written for.
func Hash(p cell.Program) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, Text(p)) // a hash returns no errors
	return h.Sum64()
}

// Vectors returns the order of a program's operands: those that it reads, by first use, and then
// those that it only writes.
func Vectors(p cell.Program) []cell.Ref {
	reads, writes := p.Vectors()
	known := map[cell.Ref]bool{}
	for _, r := range reads {
		known[r] = true
	}
	for _, w := range writes {
		if !known[w] {
			reads = append(reads, w)
		}
	}
	return reads
}
