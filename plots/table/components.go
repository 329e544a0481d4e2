package table

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/rnn/graph"
)

// Components returns a table of the strongly connected components of g.
func Components(g *graph.Graph, a *graph.Analysis) *Table {
	t := &Table{Title: g.Name, Columns: []Column{
		{Name: "component", Key: "component", Right: true}, {Name: "level", Key: "level", Right: true}, {Name: "kind", Key: "kind"},
		{Name: "layers in order of activation", Key: "layers"}, {Name: "reads", Key: "reads"},
	}}
	recurrent, inLoops := 0, 0
	for i, c := range a.Components {
		kind := "at once"
		switch {
		case c.Recurrent:
			kind = "recurrent"
			recurrent++
			inLoops += len(c.Layers)
		case g.Layers[c.Layers[0]].Input != graph.Hidden:
			kind = "input"
		}
		var names, reads []string
		for _, k := range c.Layers {
			names = append(names, g.Layers[k].Name)
			for _, m := range g.Into(k) {
				e := g.Connections[m]
				name := g.Layers[e.From].Name
				if e.Delay > 0 {
					name += fmt.Sprintf(" (%d ago)", e.Delay)
				}
				if (!a.Inside(e) || e.Delay > 0) && !slices.Contains(reads, name) {
					reads = append(reads, name)
				}
			}
		}
		t.Rows = append(t.Rows, []Cell{Int(i + 1), Int(c.Level), Text(kind), Text(strings.Join(names, ", ")), Text(strings.Join(reads, ", "))})
	}
	t.Notes = []string{fmt.Sprintf("%s, %s; %s in loops run step by step",
		quantity.Plural(len(g.Layers), "layer"), quantity.Plural(recurrent, "recurrent node"), quantity.Plural(inLoops, "layer"))}
	return t
}
