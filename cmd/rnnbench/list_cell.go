package main

import (
	"fmt"
	"strings"

	"rnnbench/internal/exit"
	"rnnbench/internal/nearest"
	"rnnbench/plots/table"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
)

// derivedTable shows a cell with all that is derived from its equations.
func derivedTable(name string) (*table.Table, error) {
	c := cell.Lookup(name)
	if equations.IsFile(name) {
		var err error
		if c, err = equations.Load(name); err != nil {
			return nil, exit.Misuse(err, "docs/cells.md describes the language")
		}
	}
	if c == nil {
		return nil, exit.Misuse(nearest.Unknown("cell", name, cellNames()), "rnnbench list cells")
	}
	t := words("property", "value")
	add := func(property, value string) { t.Rows = append(t.Rows, row(property, value)) }
	add("cell", c.Name)
	add("about", c.Doc)
	for _, line := range strings.Split(c.Text, "\n") {
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) != "" {
			add("equation", strings.TrimSpace(line))
		}
	}
	add("gates with W x", strings.Join(c.Gates, " "))
	add("gates with R "+c.States[c.Through], strings.Join(c.Gates[:c.Recurrent], " "))
	add("states, the output first", strings.Join(c.States, " "))
	add("weights of each unit", strings.Join(c.Peeps, " "))
	add("input steps that a gate reads", fmt.Sprint(c.Window))
	add("linear recurrence", map[bool]string{true: "yes: it can be scanned", false: "no"}[c.Recurrence != nil && c.Recurrent == 0 || c.Scanned != nil || c.Surrogate != nil])
	add("values kept for training", fmt.Sprint(c.Saved))
	add("operations of a unit", fmt.Sprintf("%d forward, %d backward, besides the products", c.Inference.FLOPs(), c.Backward.FLOPs()))
	for _, p := range []struct {
		name    string
		program cell.Program
	}{{"forward pass", c.Forward}, {"backward pass", c.Backward}} {
		for _, in := range p.program {
			add(p.name, in.String())
		}
	}
	t.Notes = []string{"Operations name gates, states and weights by their number: x0 is W x of the first gate and bx0 its bias; r, br and p are R h, its bias and a weight; a name that begins with d is a gradient."}
	return t, nil
}
