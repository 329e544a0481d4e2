package cells

import (
	"slices"
	"sync"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
)

// Inners lists cells with inner gates for tests of techniques: two published ones, and those that
// cell.Inners has for tests alone. None is registered.
var Inners = sync.OnceValue(func() []*cell.Cell {
	return slices.Concat([]*cell.Cell{unregistered("gru-before"), unregistered("mgu")}, cell.Inners())
})

// unregistered is the cell of the file of that name, which must be one.
func unregistered(name string) *cell.Cell {
	text, err := files.ReadFile(name + equations.Extension)
	if err != nil {
		panic(err)
	}
	c, err := equations.Parse(name+equations.Extension, name, string(text))
	if err != nil {
		panic(err)
	}
	return c
}
